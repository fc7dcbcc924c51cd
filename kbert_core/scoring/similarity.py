"""How similar a sentence and a triple are under an encoder: the strategy "context".

A text's vector is the mean of its tokens' hidden states, special tokens left
out, in the encoder's middle layer, less the mean of everyday texts. Measured
on homonyms (docs/selection.md): the last layer of a model trained for a task
knows more of its labels than of its texts, and without the mean taken off all
vectors point one way.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray

from kbert_core.kbert.flat_tree import collate, flatten
from kbert_core.kbert.mask_transformer import MaskTransformer
from kbert_core.kbert.sentence_tree import SentenceTree
from kbert_core.knowledge.names import is_word_character
from kbert_core.knowledge.selection import Candidates
from kbert_core.knowledge.triple import Triple
from kbert_core.scoring.reference import (
    CHINESE_FACTS,
    CHINESE_SENTENCES,
    ENGLISH_FACTS,
    ENGLISH_SENTENCES,
)
from kbert_core.text import Tokenizer

Floats = NDArray[np.float32]
Texts = tuple[str, ...]
CACHED = 20_000  # vectors, of sentences and triples together
AT_ONCE = 64  # texts
LONGEST = 512  # tokens of a text


class Similarity:
    """Scores a triple by the cosine of its vector and the text's.

    Args:
        encoder: read without any knowledge.
        tokenizer: the encoder's.
        layer: whose hidden states; None: the middle one. 0 is the embeddings.
        centred: whether the mean of everyday texts is taken off.
        cached: vectors kept, those used last.
    """

    def __init__(
        self,
        encoder: MaskTransformer,
        tokenizer: Tokenizer,
        *,
        layer: int | None = None,
        centred: bool = True,
        cached: int = CACHED,
    ) -> None:
        self.encoder, self.tokenizer = encoder, tokenizer
        self.layer, self.centred, self.cached = layer, centred, cached
        self._cache: OrderedDict[tuple[bool, Texts], Floats] = OrderedDict()
        self._lock = Lock()

    def score(self, asked: Sequence[Candidates]) -> list[list[float]]:
        """Score the triples of many mentions: cosines, -1 to 1."""
        texts = self.vectors(one.sentences for one in asked)
        facts = self.facts(triple for one in asked for triple in one.triples)
        return [
            [float(texts[one.sentences] @ facts[triple]) for triple in one.triples] for one in asked
        ]

    def facts(self, triples: Iterable[Triple]) -> dict[Triple, Floats]:
        """Return the unit vectors (H,) of triples."""
        said = {triple: (verbalised(triple),) for triple in triples}
        found = self.vectors(said.values(), facts=True)
        return {triple: found[text] for triple, text in said.items()}

    def vectors(self, texts: Iterable[Texts], *, facts: bool = False) -> dict[Texts, Floats]:
        """Return the unit vectors (H,) of texts, each one sentence or two.

        Args:
            facts: whether they are verbalised triples, which have a mean of
                their own.
        """
        found: dict[Texts, Floats] = {}
        missing: list[Texts] = []
        with self._lock:
            for text in dict.fromkeys(texts):
                vector = self._cache.get((facts, text))
                if vector is None:
                    missing.append(text)
                else:
                    self._cache.move_to_end((facts, text))
                    found[text] = vector
        if missing:
            made = self._means(missing)
            if self.centred:
                made = made - np.stack([self._everyday[_spaced(text), facts] for text in missing])
            made /= np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)
            new = dict(zip(missing, made, strict=True))
            found |= new
            with self._lock:
                self._cache.update({(facts, text): vector for text, vector in new.items()})
                while len(self._cache) > self.cached:
                    self._cache.popitem(last=False)
        return found

    @cached_property
    def _everyday(self) -> Mapping[tuple[bool, bool], Floats]:
        """The mean vectors (H,), by whether words are spaced and whether they are facts."""
        texts = {
            (False, False): CHINESE_SENTENCES,
            (False, True): CHINESE_FACTS,
            (True, False): ENGLISH_SENTENCES,
            (True, True): ENGLISH_FACTS,
        }
        return {
            key: self._means([(text,) for text in some]).mean(axis=0) for key, some in texts.items()
        }

    def _means(self, texts: Sequence[Texts]) -> Floats:
        """(T, H) the mean hidden state of every text, those of similar length together."""
        most = self.encoder.max_length
        limit = LONGEST if most is None else min(LONGEST, most)
        rows = [flatten(SentenceTree(text, ()), self.tokenizer, max_length=limit) for text in texts]
        found: list[Floats] = [np.zeros(0, np.float32)] * len(rows)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for start in range(0, len(order), AT_ONCE):
            chosen = order[start : start + AT_ONCE]
            batch = collate([rows[i] for i in chosen], pad_id=self.tokenizer.pad_id)
            states = self.encoder(batch, hidden_states=True)["hidden_states"]
            layer = (len(states) - 1) // 2 if self.layer is None else self.layer
            hidden = states[layer].float()
            for row, i in zip(hidden, chosen, strict=True):
                kept = [k for k, (_, place) in enumerate(rows[i].trunk_places) if place >= 0]
                kept = kept or list(range(len(rows[i])))  # a text without any token
                with torch.inference_mode():
                    found[i] = row[kept].mean(0).cpu().numpy().copy()
        return np.stack(found)


def verbalised(triple: Triple) -> str:
    """Say a triple in words: 'head relation tail'."""
    return f"{triple.head} {triple.relation} {triple.tail}"


def _spaced(texts: Texts) -> bool:
    """Whether most letters are of a script with spaces between its words."""
    letters = [c for text in texts for c in text if c.isalpha()]
    return 2 * sum(map(is_word_character, letters)) > len(letters)
