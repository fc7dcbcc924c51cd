"""What every task says about itself."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor
from transformers import PreTrainedTokenizerBase

from kbert_core.errors import TextError
from kbert_core.kbert.flat_tree import FlatTree, flatten
from kbert_core.kbert.sentence_tree import SentenceTree
from kbert_core.text import Tokenizer, WordPieces


class Task(ABC):
    """A kind of prediction made from the mask-transformer's output.

    Attributes:
        name: on the command line and in cards.
        title: for people.
        sentences: how many sentences one input has.
        auto_class: the ``transformers`` class that loads its model.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    sentences: ClassVar[int] = 1
    auto_class: ClassVar[type]

    def tokenizer(self, tokenizer: PreTrainedTokenizerBase) -> WordPieces:
        """Wrap a checkpoint's tokenizer as this task reads texts."""
        return WordPieces(tokenizer)

    def check(self, sentences: Sequence[str]) -> None:
        """Refuse an input of the wrong number of sentences.

        Raises:
            TextError: see above.
        """
        if len(sentences) != self.sentences:
            wanted = "one sentence" if self.sentences == 1 else "two sentences"
            raise TextError(f"{self.title} takes {wanted}, got {len(sentences)}.")

    def flatten(
        self, tree: SentenceTree, tokenizer: Tokenizer, *, max_length: int | None
    ) -> list[FlatTree]:
        """Put a tree into reading order, as one or several rows for the encoder."""
        return [flatten(tree, tokenizer, max_length=max_length)]

    @abstractmethod
    def decode(
        self, rows: Sequence[FlatTree], logits: Sequence[Tensor], labels: Mapping[int, str]
    ) -> Any:
        """Turn the logits of one input into a prediction.

        Args:
            rows: what :meth:`flatten` made of the input.
            logits: per row, (N, K) for token tasks or (K,), padding removed.
            labels: the K labels' names; for fill-mask the vocabulary's.
        """
