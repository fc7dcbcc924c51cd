"""The released K-BERT's way from a sentence to its tokens, positions and matrix.

Written anew after its description, for comparison: per sentence it segments
the text, builds three trees of words with entities (what they say, their
positions, their indices), reads them out, and fills an N x N matrix in nested
loops, padded to a fixed length. The release segments words with pkuseg, to
which it gives the graph's heads. Where that isn't asked for, this takes the
longest match over the heads, which gives the same words on these sentences and
is several times faster; and triples come in file order, not in the order of a set.
"""

from collections.abc import Iterable

import numpy as np

from kbert_core import Triple

SPECIAL = ("[CLS]", "[SEP]")
PAD = "[PAD]"


class ReleasedKnowledge:
    """The release's knowledge layer.

    Args:
        triples: K.
        pkuseg: whether words are segmented as in the release; it has to be installed.
    """

    def __init__(self, triples: Iterable[Triple], *, pkuseg: bool = False) -> None:
        self.entities: dict[str, list[str]] = {}
        for triple in triples:
            values = self.entities.setdefault(triple.head, [])
            if triple.relation + triple.tail not in values:
                values.append(triple.relation + triple.tail)
        self.longest: dict[str, int] = {}
        for head in self.entities:
            self.longest[head[0]] = max(self.longest.get(head[0], 0), len(head))

        self.segmenter = None
        if pkuseg:
            from pkuseg import pkuseg as Segmenter

            self.segmenter = Segmenter(
                model_name="default", postag=False, user_dict=[*self.entities, *SPECIAL, PAD]
            )

    def words(self, text: str) -> list[str]:
        if self.segmenter is not None:
            return self.segmenter.cut(text)
        words = []
        start, size = 0, len(text)
        while start < size:
            end = min(size, start + self.longest.get(text[start], 1))
            while end > start + 1 and text[start:end] not in self.entities:
                end -= 1
            words.append(text[start:end])
            start = end
        return words

    def inject(self, text: str, *, max_entities: int = 2, max_length: int = 256):
        """Return tokens, soft positions, segment tags and the visible matrix, all padded."""
        sentence_tree = []
        position_tree = []
        index_tree = []
        trunk = []
        position = index = -1
        for word in [SPECIAL[0], *self.words(text), SPECIAL[1]]:
            entities = self.entities.get(word, [])[:max_entities]
            size = 1 if word in SPECIAL else len(word)
            word_positions = [position + i for i in range(1, size + 1)]
            word_indices = [index + i for i in range(1, size + 1)]
            index = word_indices[-1]
            entity_positions = []
            entity_indices = []
            for entity in entities:
                entity_positions.append([word_positions[-1] + i for i in range(1, len(entity) + 1)])
                entity_indices.append([index + i for i in range(1, len(entity) + 1)])
                index = entity_indices[-1][-1]
            sentence_tree.append((word, entities))
            position_tree.append((word_positions, entity_positions))
            index_tree.append((word_indices, entity_indices))
            position = word_positions[-1]
            trunk += word_indices

        tokens, positions, segments = [], [], []
        for (word, entities), (word_positions, entity_positions) in zip(
            sentence_tree, position_tree, strict=True
        ):
            characters = [word] if word in SPECIAL else list(word)
            tokens += characters
            segments += [0] * len(characters)
            positions += word_positions
            for entity, own in zip(entities, entity_positions, strict=True):
                tokens += list(entity)
                segments += [1] * len(entity)
                positions += own

        count = len(tokens)
        visible = np.zeros((count, count))
        for word_indices, entity_indices in index_tree:
            for one in word_indices:
                visible[one, trunk + [i for entity in entity_indices for i in entity]] = 1
            for entity in entity_indices:
                for one in entity:
                    visible[one, entity + word_indices] = 1

        padding = max_length - count
        if padding > 0:
            tokens += [PAD] * padding
            segments += [0] * padding
            positions += [max_length - 1] * padding
            visible = np.pad(visible, ((0, padding), (0, padding)))
        cut = slice(max_length)
        return tokens[cut], positions[cut], segments[cut], visible[cut, cut]
