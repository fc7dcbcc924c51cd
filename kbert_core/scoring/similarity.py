"""How similar a sentence and a triple are under an encoder: the strategy "context".

A text's vector is the mean of its tokens' hidden states, special tokens left
out, in the encoder's middle layer, less the mean of everyday texts. Measured
on homonyms (docs/selection.md): the last layer of a model trained for a task
knows more of its labels than of its texts, and all vectors of a BERT point
much the same way, so that without the mean taken off they tell little.
"""

import inspect
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from kbert_core.knowledge.names import is_word_character
from kbert_core.knowledge.strategies import Candidates
from kbert_core.knowledge.triple import Triple
from kbert_core.text import Tokenizer

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
        layer: whose hidden states; None: the middle one. 0 is the embeddings.
        centred: whether the mean of everyday texts is taken off.
        cached: vectors kept, those used last.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: Tokenizer,
        *,
        layer: int | None = None,
        centred: bool = True,
        cached: int = CACHED,
    ) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        self.layer, self.centred, self.cached = layer, centred, cached
        self._encoder: Any = model.base_model
        self._takes = inspect.signature(self._encoder.forward).parameters
        self._cache: OrderedDict[tuple[bool, Texts], Floats] = OrderedDict()
        self._lock = Lock()

    def score(self, asked: Sequence[Candidates]) -> list[list[float]]:
        """Score the triples of many mentions: cosines, -1 to 1."""
        texts = self.vectors(one.sentences for one in asked)
        facts = self.vectors((verbalised(t) for one in asked for t in one.triples), facts=True)
        return [
            [float(texts[one.sentences] @ facts[verbalised(triple)]) for triple in one.triples]
            for one in asked
        ]

    def vectors(self, texts: Iterable[Texts], *, facts: bool = False) -> dict[Texts, Floats]:
        """Return the unit vectors (H,) of texts, each one sentence or two, or a triple in words.

        Args:
            facts: whether they are triples, which have a mean of their own.
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
            means = self._means(missing)
            if self.centred:
                means = means - np.stack([self._everyday[_spaced(text), facts] for text in missing])
            means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
            new = dict(zip(missing, means, strict=True))
            found |= new
            with self._lock:
                self._cache.update({(facts, text): vector for text, vector in new.items()})
                while len(self._cache) > self.cached:
                    self._cache.popitem(last=False)
        return found

    @cached_property
    def _everyday(self) -> Mapping[tuple[bool, bool], Floats]:
        """The mean vectors (H,), by whether words are spaced and whether they are facts."""
        file = files("kbert_core.scoring").joinpath("everyday.json")
        everyday = json.loads(file.read_text(encoding="utf-8"))
        return {
            (language == "english", kind == "facts"): self._means([(t,) for t in texts]).mean(0)
            for language, kinds in everyday.items()
            for kind, texts in kinds.items()
        }

    def _means(self, texts: Sequence[Texts]) -> Floats:
        """(T, H) the mean hidden state of every text, those of similar length together."""
        rows = [self._row(text) for text in texts]
        found: list[Floats] = [np.zeros(0, np.float32)] * len(rows)
        order = sorted(range(len(rows)), key=lambda i: rows[i].shape[1])
        for start in range(0, len(order), AT_ONCE):
            chosen = order[start : start + AT_ONCE]
            with torch.inference_mode():
                states = self._states([rows[i] for i in chosen]).float()
                for state, i in zip(states, chosen, strict=True):
                    ours = rows[i][2].bool()
                    ours = ours if ours.any() else ~ours  # a text without any token
                    found[i] = state[: len(ours)][ours].mean(0).cpu().numpy().copy()
        return np.stack(found)

    def _row(self, sentences: Texts) -> Tensor:
        """(3, N): ids, segments, and 1 where a token is the text's own; a long text is cut."""
        layout = self.tokenizer.layout(len(sentences))
        ids = [list(tokens.ids) for tokens in self.tokenizer.tokenize(sentences)]
        while sum(map(len, ids)) > self._limit - layout.count:
            max(ids, key=len).pop()
        row: list[tuple[int, int, int]] = []
        for before, own, segment in zip(layout.before, ids, layout.segments, strict=True):
            row += [(special.id, special.segment, 0) for special in before]
            row += [(token, segment, 1) for token in own]
        row += [(special.id, special.segment, 0) for special in layout.after]
        return torch.tensor(row).reshape(-1, 3).T

    @property
    def _limit(self) -> int:
        """Tokens of a text; a RoBERTa begins to count its positions after the padding's."""
        config = self.model.config
        most, pad = getattr(config, "max_position_embeddings", None), config.pad_token_id
        if not isinstance(most, int) or most <= 0:
            return LONGEST
        return min(LONGEST, most - (pad + 1 if pad else 0))

    def _states(self, rows: Sequence[Tensor]) -> Tensor:
        """(B, N, H) the hidden states of a layer, of rows padded to the longest."""
        padded = torch.nn.utils.rnn.pad_sequence([row.T for row in rows], batch_first=True)
        sizes = torch.tensor([row.shape[1] for row in rows])
        there = torch.arange(padded.shape[1]) < sizes[:, None]
        inputs = {
            "input_ids": padded[..., 0].masked_fill(~there, self.tokenizer.pad_id),
            "attention_mask": there.long(),
        }
        if "token_type_ids" in self._takes:
            inputs["token_type_ids"] = padded[..., 1]
        device = self.model.device
        output = self._encoder(
            **{name: value.to(device) for name, value in inputs.items()}, output_hidden_states=True
        )
        states: Sequence[Tensor] = output.hidden_states
        return states[(len(states) - 1) // 2 if self.layer is None else self.layer]


def verbalised(triple: Triple) -> Texts:
    """Say a triple in words: head relation tail."""
    return (f"{triple.head} {triple.relation} {triple.tail}",)


def _spaced(texts: Texts) -> bool:
    """Whether most letters are of a script with spaces between its words."""
    letters = [c for text in texts for c in text if c.isalpha()]
    return 2 * sum(map(is_word_character, letters)) > len(letters)
