"""The knowledge side of Roof-BERT: which triples, in which order, as which string.

``[CLS] unit [SEP] unit [SEP] ...``; a unit is a triple, or with ``expand`` 2 all of one entity that
stand together. The paper's figure shows only [SEP]; an encoder wants its [CLS].
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kbert_core.knowledge.triple import Triple
from kbert_core.text import WordPieces

EXPANDS = (0, 1, 2)
CJK = range(0x2E80, 0xA000)
AT_ONCE = 64  # triples that are tokenized together
# per language: a triple by itself (expand 0; 1 and 2), and what follows one of the same entity (2)
CHINESE = ("{head} {relation} {tail}", "{head}的{relation}是{tail}", "，它的{relation}是{tail}")
ENGLISH = (
    "{head} {relation} {tail}",
    "the {relation} of {head} is {tail}",
    ", its {relation} is {tail}",
)


@dataclass(frozen=True)
class KbText:
    """The triples of a text as the knowledge encoder reads them.

    Attributes:
        text: the string, special tokens included.
        ids: of its N' tokens.
        triples: that are in, in their order.
        places: of each its tokens, as indices along N', end exclusive.
        left_out: those that the length limit leaves no room for.
    """

    text: str
    ids: tuple[int, ...]
    triples: tuple[Triple, ...]
    places: tuple[tuple[int, int], ...]
    left_out: tuple[Triple, ...]

    def __len__(self) -> int:
        return len(self.ids)


def said(triples: Sequence[Triple], expand: int) -> Iterator[tuple[bool, str]]:
    """Return for each triple whether it begins a unit, and its words."""
    head = None
    for triple in triples:
        begins = expand < 2 or triple.head != head
        words = CHINESE if _is_chinese(triple) else ENGLISH
        template = words[0 if not expand else 1 if begins else 2]
        head = triple.head
        yield begins, template.format(head=head, relation=triple.relation, tail=triple.tail)


def kb_text(
    triples: Iterable[Triple], tokenizer: WordPieces, *, expand: int = 2, max_length: int = 512
) -> KbText:
    """Write triples as one string for the knowledge encoder.

    The paper cuts the string at its limit. Here the first triple that doesn't fit completely is
    left out with all after it, so that no triple is cut in two.

    Args:
        triples: in the order of their entities in the text; each counts once.
        expand: 0: ``head relation tail``; 1: a sentence of each; 2: of an entity's triples one
            sentence, in which a pronoun stands for its name.
        max_length: of N', special tokens included.
    """
    every = tuple(dict.fromkeys(triples))
    layout = tokenizer.layout(1)
    before, after = layout.before[0], layout.after
    closing = [special.id for special in after[:1]]
    ids = [special.id for special in before]
    words = [special.text for special in before]
    places: list[tuple[int, int]] = []
    phrases = list(said(every, expand))
    for start in range(0, len(phrases), AT_ONCE):
        some = phrases[start : start + AT_ONCE]
        cut = tokenizer.tokenize_branches([phrase for _, phrase in some])
        for (begins, phrase), tokens in zip(some, cut, strict=True):
            parting = closing if begins and places else []
            first = len(ids) + len(parting)
            if first + len(tokens) + len(closing) > max_length:
                break
            ids += [*parting, *tokens.ids]
            words += [*(special.text for special in after[:1] if parting), phrase]
            places.append((first, len(ids)))
        else:
            continue
        break
    ids += closing
    words += [special.text for special in after[:1]]
    count = len(places)
    return KbText(_joined(words), tuple(ids), every[:count], tuple(places), every[count:])


def _joined(words: Sequence[str]) -> str:
    """Join phrases by spaces; a phrase that continues the unit before it gets none."""
    return " ".join(words).replace(" ，它", "，它").replace(" , its", ", its")


def _is_chinese(triple: Triple) -> bool:
    said = triple.head + triple.relation + triple.tail
    return any(ord(character) in CJK for character in said)
