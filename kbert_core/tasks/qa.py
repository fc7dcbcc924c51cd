"""Reading comprehension: which part of a paragraph answers a question."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoModelForTokenClassification

from kbert_core.errors import TextError
from kbert_core.labels import IGNORED, Labels
from kbert_core.reader import Reading
from kbert_core.tasks.base import Task
from kbert_core.tokens import Tokens

MOST_TOKENS = 30  # of an answer
SHOWN = 5  # answers
START, END = 1, 2  # added up in a token's target


@dataclass(frozen=True, slots=True)
class Answer:
    """A part of the paragraph, in its characters, end exclusive.

    Attributes:
        probability: that an answer starts at its first token, times that it ends at its last.
    """

    start: int
    end: int
    text: str
    probability: float


@dataclass(frozen=True)
class AnswerPrediction:
    """The likeliest answers, the best first.

    Attributes:
        answers: all different parts of the paragraph.
        tokens: of the paragraph: T, as far as it is read.
        start_probabilities, end_probabilities: per token, that the answer starts or ends there.
    """

    answers: tuple[Answer, ...]
    tokens: Tokens
    start_probabilities: tuple[float, ...]
    end_probabilities: tuple[float, ...]

    def _repr_html_(self) -> str:
        from kbert_core.markup import table

        return table(("answer", "probability"), ((a.text, a.probability) for a in self.answers))


class AnswerQuestion(Task):
    """Question and paragraph; per token of the paragraph, does the answer start or end there."""

    name = "qa"
    title = "Reading comprehension"
    sentences = 2
    labels = ("start", "end")
    auto_class: ClassVar[type] = AutoModelForTokenClassification
    windows = True

    def decode(self, text: Reading, logits: Tensor, labels: Labels) -> AnswerPrediction:
        """Return the best answers of at most ``MOST_TOKENS`` tokens, all from the paragraph.

        Raises:
            TextError: the paragraph has no token.
        """
        paragraph, tokens = text.sentences[1], text.tokens[1]
        if not len(tokens):
            raise TextError(
                f"The paragraph '{paragraph[:40]}' has no token, so no answer can stand in it. "
                "Give the text that is asked about."
            )
        likely = paragraph_log_probabilities(text, logits)
        sums = torch.full((len(tokens), MOST_TOKENS), -torch.inf, dtype=likely.dtype)
        for more in range(min(MOST_TOKENS, len(tokens))):
            sums[: len(tokens) - more, more] = likely[: len(tokens) - more, 0] + likely[more:, 1]
        answers: dict[tuple[int, int], Answer] = {}  # two tokens may be of one character
        for place in sums.flatten().argsort(descending=True, stable=True).tolist():
            first, more = divmod(place, MOST_TOKENS)
            if len(answers) == SHOWN or first + more >= len(tokens):
                break
            start, end = tokens.starts[first], tokens.ends[first + more]
            probability = float(sums[first, more].exp())
            answers.setdefault((start, end), Answer(start, end, paragraph[start:end], probability))
        starts, ends = likely.exp().T.tolist()
        return AnswerPrediction(tuple(answers.values()), tokens, tuple(starts), tuple(ends))

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Half the cross entropy of the start, half that of the end, summed up over the rows.

        In each row the paragraph's tokens compete with a 0, the score of "the answer isn't here",
        so that logits of several windows can be compared.

        Args:
            logits: (B, N, 2).
            targets: (B, N) ``START`` where the answer starts, ``END`` where it ends, their sum for
                both, and 0 for other tokens of the paragraph; ``IGNORED`` for tokens outside the
                paragraph, and for all tokens of a row that isn't trained.
        """
        rows = (targets != IGNORED).any(1)
        targets, scores = targets[rows], logits[rows].float()
        scores = scores.masked_fill((targets == IGNORED)[..., None], -torch.inf)
        likely = nn.functional.pad(scores, (0, 0, 0, 1)).log_softmax(1)
        starts, ends = _starts(targets), (targets == END) | (targets == START + END)
        nowhere = likely[:, -1][~starts.any(1)].sum()
        found = likely[:, :-1, 0][starts].sum() + likely[:, :-1, 1][ends].sum()
        return -(found + nowhere) / 2

    def counted(self, targets: Tensor) -> Tensor:
        """Return one label for each row that is trained: the first one."""
        first = ((targets != IGNORED).cumsum(1) == 1) & (targets != IGNORED)
        return targets.masked_fill(~first, IGNORED)


def _starts(targets: Tensor) -> Tensor:
    return (targets == START) | (targets == START + END)


def paragraph_log_probabilities(text: Reading, logits: Tensor) -> Tensor:
    """Return (T, 2) for the paragraph's tokens: that the answer starts, or ends, there."""
    return logits[len(text.tokens[0]) :].double().log_softmax(0).cpu()
