"""Masked language modelling: which tokens are hidden, and by what (BERT's 80/10/10)."""

import re

import numpy as np
from transformers import PreTrainedTokenizerBase

from kbert_core.labels import IGNORED

MASKED_SHARE = 0.15  # of the tokens
BECOME_MASK, STAY_FROM = 0.8, 0.9  # of the masked tokens; those between become a random token
UNUSED = re.compile(r"\[unused\d+\]")  # places that BERT's vocabularies keep free


class Masking:
    """Hides tokens of a vocabulary.

    Args:
        tokenizer: with a mask token.

    Attributes:
        mask_id: of the mask token.
        specials: ids of special tokens, which are never hidden.
        words: ids that a random token is drawn from: neither special nor unused, rising.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.mask_id: int = tokenizer.mask_token_id
        self.specials = np.array(sorted(tokenizer.all_special_ids))
        unused = [i for token, i in tokenizer.get_vocab().items() if UNUSED.fullmatch(token)]
        self._is_word = np.ones(len(tokenizer), bool)
        self._is_word[[*self.specials, *unused]] = False
        self.words = np.flatnonzero(self._is_word)

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
            ids: (N,) int64.
            chosen: (N,) bool, the tokens to predict.
            first: (N,) the first token of each token's word, so that a word's
                tokens are hidden in one manner; None: each by itself.

        Returns:
            What the model reads, and its labels: the old ids of the chosen
            tokens, ``IGNORED`` elsewhere; (N,) int64 each.
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
        """Draw what stands for so many hidden tokens: the mask token, or random ones.

        Returns:
            Ids; of random tokens those that are no word are the mask token.
        """
        if random.random() < 0.5:
            return [self.mask_id] * count
        drawn = [int(random.integers(len(self._is_word))) for _ in range(count)]
        return [token if self._is_word[token] else self.mask_id for token in drawn]
