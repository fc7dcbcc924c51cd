"""Fill-mask: which word stands where the text says [MASK]."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerBase

from kbert_core.errors import CheckpointError, TextError
from kbert_core.labels import MASK_TOKENS, Labels
from kbert_core.reader import Reading
from kbert_core.tasks.base import Task
from kbert_core.text import WordPieces

SHOWN = 10


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

    def _repr_html_(self) -> str:
        from kbert_core.markup import table

        heads = ("token", "probability")
        return "".join(table(heads, filling.candidates) for filling in self.fillings)


class FillMask(Task):
    """Fill-mask: [MASK] in the text is special, and there only."""

    name = "mask"
    title = "Fill-mask"
    auto_class: ClassVar[type] = AutoModelForMaskedLM

    def tokenizer(self, tokenizer: PreTrainedTokenizerBase) -> WordPieces:
        """Wrap a checkpoint's tokenizer so that its mask token is read in a text."""
        return WordPieces(tokenizer, masks=True)

    def decode(self, text: Reading, logits: Tensor, labels: Labels) -> MaskPrediction:
        """The likeliest tokens at every mask."""
        mask, tokens = mask_of(labels), text.tokens[0]
        places = [at for at, token in enumerate(tokens.ids) if token == labels.numbers[mask]]
        if not places:
            raise TextError(
                f"No {mask} to fill in '{text.sentences[0][:40]}'. "
                f"Write {mask} where a token is wanted."
            )
        best = logits[places].float().softmax(-1).topk(min(SHOWN, logits.shape[-1]))
        likeliest = zip(places, best.indices.tolist(), best.values.tolist(), strict=True)
        fillings = []
        for at, ids, probabilities in likeliest:
            candidates = tuple(zip(map(labels.__getitem__, ids), probabilities, strict=True))
            fillings.append(Filling(tokens.starts[at], tokens.ends[at], candidates))
        return MaskPrediction(tuple(fillings))


def mask_of(labels: Labels) -> str:
    """Name the mask token of a vocabulary.

    Raises:
        CheckpointError: it has none.
    """
    if labels.mask_id is None:
        raise CheckpointError(
            f"The vocabulary has no mask token ({' or '.join(MASK_TOKENS)}); fill-mask needs one."
        )
    return labels[labels.mask_id]
