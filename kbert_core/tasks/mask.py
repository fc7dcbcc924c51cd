"""Fill-mask: which word stands where the text says [MASK]."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerBase

from kbert_core.errors import CheckpointError, TextError
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.tasks.base import Task
from kbert_core.text import WordPieces

SHOWN = 10
MASK_TOKENS = ("[MASK]", "<mask>")


@dataclass(frozen=True)
class Filling:
    """Candidates for one [MASK].

    Attributes:
        start, end: the mask in the text, in characters, end exclusive.
        candidates: (token, probability), the most probable first.
    """

    start: int
    end: int
    candidates: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class MaskPrediction:
    """What stands at each [MASK] of a text, in reading order."""

    fillings: tuple[Filling, ...]


class FillMask(Task):
    """Fill-mask: [MASK] in the text is special, and there only."""

    name = "mask"
    title = "Fill-mask"
    auto_class: ClassVar[type] = AutoModelForMaskedLM

    def tokenizer(self, tokenizer: PreTrainedTokenizerBase) -> WordPieces:
        """Wrap a checkpoint's tokenizer so that its mask token is read in a text."""
        return WordPieces(tokenizer, masks=True)

    def decode(
        self, rows: Sequence[FlatTree], logits: Sequence[Tensor], labels: Mapping[int, str]
    ) -> MaskPrediction:
        """The likeliest tokens at every mask."""
        row, scores = rows[0], logits[0]
        tokens = row.trunk_tokens[0]
        text = row.tree.sentences[0]
        mask_id = mask_id_of(labels)
        fillings = []
        for index, (_, at) in enumerate(row.trunk_places):
            if at < 0 or row.input_ids[index] != mask_id:
                continue
            best = scores[index].float().softmax(-1).topk(min(SHOWN, scores.shape[-1]))
            candidates = tuple(
                (labels[i], p)
                for i, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            )
            fillings.append(Filling(tokens.starts[at], tokens.ends[at], candidates))
        if not fillings:
            raise TextError(
                f"No {labels[mask_id]} to fill in '{text[:40]}'. "
                f"Write {labels[mask_id]} where a token is wanted."
            )
        return MaskPrediction(tuple(fillings))


def mask_id_of(labels: Mapping[int, str]) -> int:
    """Find the mask token in a vocabulary."""
    found = next((i for i, token in labels.items() if token in MASK_TOKENS), None)
    if found is None:
        raise CheckpointError(
            f"The vocabulary has no mask token ({' or '.join(MASK_TOKENS)}); fill-mask needs one."
        )
    return found
