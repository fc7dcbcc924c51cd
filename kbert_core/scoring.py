"""How similar a sentence and a triple are under an encoder: the strategy "context".

A text's vector is the mean of its tokens' hidden states, special tokens left
out, in the encoder's middle layer, less the mean of everyday texts. Measured
on homonyms (docs/selection.md): the last layer of a model trained for a task
knows more of its labels than of its texts, and all vectors of a BERT point
much the same way, so that without the mean taken off they tell little.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.errors import OptionError
from kbert_core.knowledge.names import is_word_character
from kbert_core.knowledge.selection import Candidates, InjectionOptions
from kbert_core.knowledge.triple import Triple
from kbert_core.layers import inputs_of, positions_of, twin_of
from kbert_core.text import Tokenizer, WordPieces
from kbert_core.text_rows import TextBatch, TextRow, text_rows

Floats = NDArray[np.float32]
Texts = tuple[str, ...]
CACHED = 20_000  # vectors, of sentences and triples together
AT_ONCE = 64  # texts
LONGEST = 512  # tokens of a text


class Similarity:
    """Scores a triple by the cosine of its vector and the text's.

    Args:
        model: a Hugging Face encoder, or a model built on one; read without
            any knowledge.
        tokenizer: the encoder's.
        layer: the layer whose hidden states are used; None: the middle one; 0: the embeddings.
        centred: whether to subtract the mean of everyday texts.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: Tokenizer,
        *,
        layer: int | None = None,
        centred: bool = True,
    ) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        self.layer, self.centred, self.cached = layer, centred, CACHED
        self._encoder: Any = twin_of(model.base_model)  # type: ignore[arg-type]
        self._cache: dict[tuple[bool, Texts], Floats] = {}

    def score(self, asked: Sequence[Candidates]) -> list[list[float]]:
        """Score the triples of many mentions; scores are cosines, from -1 to 1."""
        texts = self.vectors(one.sentences for one in asked)
        facts = self.vectors((verbalised(t) for one in asked for t in one.triples), facts=True)
        return [
            [float(texts[one.sentences] @ facts[verbalised(triple)]) for triple in one.triples]
            for one in asked
        ]

    def vectors(self, texts: Iterable[Texts], *, facts: bool = False) -> dict[Texts, Floats]:
        """Return the unit vectors (H,) of texts; a text is one sentence, two, or a triple in words.

        Args:
            facts: whether the texts are triples; a mean of their own is subtracted from these.
        """
        wanted = dict.fromkeys(texts)
        known = {text: self._cache.get((facts, text)) for text in wanted}
        found = {text: vector for text, vector in known.items() if vector is not None}
        if missing := [text for text in wanted if text not in found]:
            means = self._means(missing)
            if self.centred:
                means = means - np.stack([self._everyday[_spaced(text), facts] for text in missing])
            means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
            new = dict(zip(missing, means, strict=True))
            found |= new
            self._cache.update({(facts, text): vector for text, vector in new.items()})
            for oldest in [*self._cache][: -self.cached]:
                self._cache.pop(oldest, None)  # another thread may have been here
        return found

    @cached_property
    def _everyday(self) -> Mapping[tuple[bool, bool], Floats]:
        """Return the mean vectors (H,) by (spaces between words, text or fact)."""
        everyday = json.loads(files("kbert_core").joinpath("everyday.json").read_text("utf-8"))
        return {
            (language == "english", kind == "facts"): self._means([(t,) for t in texts]).mean(0)
            for language, kinds in everyday.items()
            for kind, texts in kinds.items()
        }

    def _means(self, texts: Sequence[Texts]) -> Floats:
        """Return the mean hidden state of every text (T, H); batches have similar lengths."""
        limit = min(LONGEST, positions_of(self.model) or LONGEST)
        rows = [
            text_rows(self.tokenizer.tokenize(text), self.tokenizer.layout(len(text)), limit)[0]
            for text in texts
        ]
        found: list[Floats] = [np.zeros(0, np.float32)] * len(rows)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for start in range(0, len(order), AT_ONCE):
            chosen = order[start : start + AT_ONCE]
            with torch.inference_mode():
                states = self._states([rows[i] for i in chosen])
                for state, i in zip(states.float(), chosen, strict=True):
                    parts = rows[i].trunk_parts
                    places = [n for part in parts for n in range(part.start, part.end)]
                    places = places or list(range(len(rows[i])))  # a text without any token
                    found[i] = state[places].mean(0).cpu().numpy().copy()
        return np.stack(found)

    def _states(self, rows: Sequence[TextRow]) -> Tensor:
        """Return a layer's hidden states (B, N, H) of rows padded to the longest."""
        batch = TextBatch.of(rows, self.tokenizer.pad_id).to(self.model.device)
        inputs = inputs_of(self._encoder, *vars(batch).values())
        output = self._encoder(**inputs, output_hidden_states=True)
        states: Sequence[Tensor] = output.hidden_states
        if self.layer is not None and not -len(states) <= self.layer < len(states):
            raise OptionError(
                f"The states of layer {self.layer} are asked for, and the encoder has "
                f"{len(states) - 1} layers. Name one from 0 to {len(states) - 1}, or -1."
            )
        return states[(len(states) - 1) // 2 if self.layer is None else self.layer]


def verbalised(triple: Triple) -> Texts:
    """Write a triple as words: head relation tail."""
    return (f"{triple.head} {triple.relation} {triple.tail}",)


def _spaced(texts: Texts) -> bool:
    """Say whether most letters belong to a script with spaces between words."""
    letters = [c for text in texts for c in text if c.isalpha()]
    return 2 * sum(map(is_word_character, letters)) > len(letters)


@lru_cache(maxsize=8)
def similarity_under(path: str, device: str = "auto") -> Similarity:
    """Open an encoder that scores triples: a folder, a hub name or package:NAME.

    Raises:
        CheckpointError: the encoder can't be read.
    """
    return Similarity(load_model(path, device=device), WordPieces(load_tokenizer(path)))


def scorer_of(
    options: InjectionOptions, own: Similarity | None = None, *, device: str = "auto"
) -> Similarity | None:
    """Open the scorer that the options ask for; None if they need no model.

    Args:
        own: makes the similarity under the encoder of the model that reads the text.

    Raises:
        OptionError: the options ask for the model's own encoder, but there is no model.
        CheckpointError: the encoder can't be read.
    """
    if not options.needs_model:
        return None
    scorer = similarity_under(options.scorer, device) if options.scorer else own
    if scorer is None:
        raise OptionError(
            "The model's own encoder must score the triples, but there is no model. Name a "
            "model, or an encoder as the scorer."
        )
    return scorer
