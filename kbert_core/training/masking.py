"""Masked language modelling: which tokens are hidden, and by what (BERT's 80/10/10)."""

import re

import numpy as np
from transformers import PreTrainedTokenizerBase

from kbert_core.labels import IGNORED

MASKED_SHARE = 0.15  # of the tokens
BECOME_MASK, STAY_FROM = 0.8, 0.9  # of the masked tokens; those between become a random token
UNUSED = re.compile(r"\[unused\d+\]")  # places that BERT's vocabularies keep free


class Masking:
    """Hides tokens of a vocabulary with a mask token."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.mask_id: int = tokenizer.mask_token_id
        self.specials = np.array(sorted(tokenizer.all_special_ids))  # never hidden
        unused = [i for token, i in tokenizer.get_vocab().items() if UNUSED.fullmatch(token)]
        self._is_word = np.ones(len(tokenizer), bool)
        self._is_word[[*self.specials, *unused]] = False
        self.words = np.flatnonzero(self._is_word)  # which random tokens are drawn from

    def special(self, ids: np.ndarray) -> np.ndarray:
        """Say which of some ids are special tokens."""
        return np.isin(ids, self.specials)

    def hide(
        self,
        ids: np.ndarray,
        chosen: np.ndarray,
        random: np.random.Generator,
        first: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hide tokens: of those chosen 80 % become [MASK], 10 % a random token, 10 % stay.

        Args:
            ids, chosen: (N,) int64, and bool: the tokens to predict.
            first: (N,) the first token of each token's word, so that a word's
                tokens are hidden in one manner; None: each by itself.

        Returns:
            What the model reads, and its labels, ``IGNORED`` elsewhere; (N,) int64 each.
        """
        labels = np.where(chosen, ids, IGNORED)
        dice = random.random(len(ids))
        if first is not None:
            dice = dice[first]
        read = np.where(chosen & (dice < BECOME_MASK), self.mask_id, ids)
        other = chosen & (dice >= STAY_FROM)
        read[other] = self.words[random.integers(0, len(self.words), other.sum())]
        return read, labels

    def stand_ins(self, count: int, random: np.random.Generator) -> list[int]:
        """Draw ids for so many hidden tokens: all the mask token, or all random words or masks."""
        if random.random() < 0.5:
            return [self.mask_id] * count
        drawn = [int(random.integers(len(self._is_word))) for _ in range(count)]
        return [token if self._is_word[token] else self.mask_id for token in drawn]
