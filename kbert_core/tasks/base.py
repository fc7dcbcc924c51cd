"""Task: the base class of all tasks; a task turns logits into a prediction, and has a loss."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from kbert_core.labels import IGNORED, Labels
from kbert_core.reader import Reading
from kbert_core.text import WordPieces


class Task(ABC):
    """A kind of prediction made from a system's output on a text.

    Attributes:
        name: on the command line and in cards.
        title: for people.
        sentences: how many sentences one input has.
        auto_class: the ``transformers`` class that loads its model.
        windows: whether a long text can be read in windows, so that every token gets logits.
        labels: names of the logits, where every model of the task has the same.
        problem_type: what its models' config calls it, where ``transformers`` has a word for it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    sentences: ClassVar[int] = 1
    auto_class: ClassVar[type]
    windows: ClassVar[bool] = False
    labels: ClassVar[tuple[str, ...]] = ()
    problem_type: ClassVar[Literal["multi_label_classification"] | None] = None

    def tokenizer(self, tokenizer: PreTrainedTokenizerBase) -> WordPieces:
        """Wrap a checkpoint's tokenizer in the way in which this task reads texts."""
        return WordPieces(tokenizer)

    @abstractmethod
    def decode(self, text: Reading, logits: Tensor, labels: Labels) -> Any:
        """Turn the logits of one text into a prediction.

        Args:
            text: the sentences, and their T tokens.
            logits: (T, K) for token tasks, a row for each token of the text; else (K,).
            labels: the names of the K labels; for fill-mask the vocabulary.
        """

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Sum up the cross entropy, in nats.

        Args:
            logits: (..., K).
            targets: (...) int64; ``IGNORED`` where there is none.
        """
        return nn.functional.cross_entropy(
            logits.float().flatten(0, -2), targets.flatten(), ignore_index=IGNORED, reduction="sum"
        )

    def counted(self, targets: Tensor) -> Tensor:
        """Return the targets over which the loss is averaged; ``IGNORED`` ones don't count."""
        return targets
