"""Which columns of a table are head, relation and tail, by what its headings say.

In any order, with prefixes, numbers and properties: "x_name, relation, y_name", "a.name, type(r),
b.name", "实体1, 关系, 实体2". Head and tail are two headings that differ in one part, and this part
is a pair of opposites.
"""

import re
from collections.abc import Sequence, Set
from itertools import permutations

WHOLE = tuple(  # what a heading, or a key of an object, may be called
    set(names.split())
    for names in (
        "head subject subj source src from start entity item s h kopf subjekt quelle "
        "头 头实体 头节点 实体 主语 主体 源实体 起点",
        "relation relationship rel predicate pred property prop attribute type edge p r "
        "beziehung prädikat relationstyp 关系 关系类型 属性 谓语 谓词 边",
        "tail object obj target tgt to end dst value o t ziel objekt "
        "尾 尾实体 尾节点 值 属性值 宾语 客体 目标实体 终点",
    )
)
MOST = 100  # columns that are looked at
_SURE = "head/tail subject/object subj/obj source/target src/dst src/tgt"  # both in no fact
_PAIRS = (
    f"{_SURE} from/to start/end left/right kopf/ziel "
    "h/t s/o s/t a/b n/m x/y p/q 1/2 一/二 头/尾 主/宾 主/客 源/目标 起/终"
)
_OPPOSITES = {tuple(pair.split("/")) for pair in _PAIRS.split()}
_ENDS = {part for pair in _OPPOSITES for part in pair}
_RELATION = {"relation", "relationship", "rel", "predicate", "pred", "edge", "metaedge"}
_RELATION |= {"关系", "谓"}
# Facts have these too, as in "aspirin, type, drug".
_WEAK = {"type", "label", "kind", "verb", "property", "attribute", "association", "interaction"}
_WEAK |= {"link", "属性", "类型", "边"}
_NAME = {"name", "label", "title", "text", "term", "名", "名称"}
_THING = {"entity", "node", "concept", "item", "e", "n", "实体", "节点", "语", "词", "点"}
_KEYS = {"id", "index", "code", "iri", "uri", "cui"}
_PART = re.compile(r"关系|属性|类型|目标|名称|实体|节点|[\u4e00-\u9fff]|[^\W\d_\u4e00-\u9fff]+|\d+")
_WEAKER = 10  # added to the rank of a heading that a fact may say too
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def columns_of(cells: Sequence[str]) -> tuple[int, int, int] | None:
    """Return the places of head, relation and tail; None: the cells don't look like headings."""
    cells = cells[:MOST]
    plain = [cell.strip(" #").casefold() for cell in cells]
    parts = [*map(_parts, cells)]
    named = ["".join(own[:-1]) if {*own[-1:]} & _NAME else "" for own in parts]
    places = [_place(names, plain, named) for names in WHOLE]
    if len({*places} - {None}) == 3:
        return places[0], places[1], places[2]  # type: ignore[return-value]
    relations = sorted((rank, i) for i, own in enumerate(parts) if (rank := _relation_rank(own)))
    for rank, relation in relations:
        ends = [
            (rank_of_ends, head, tail)
            for head, tail in permutations(range(len(cells)), 2)
            if relation not in (head, tail)
            and (rank_of_ends := _rank_of_ends(parts[head], parts[tail], weak=rank > _WEAKER))
        ]
        if ends:
            _, head, tail = min(ends)
            return head, relation, tail
    if len(cells) == 3 and _relation_rank(parts[1]):
        sure = {*parts[1]} & _RELATION and {*parts[1]} <= _RELATION | _WEAK | _NAME | _THING
        if sure or {*parts[0]} & {*parts[2]} & (_NAME | _KEYS):
            return 0, 1, 2
    return None


def ends_of(cells: Sequence[str]) -> tuple[int, int] | None:
    """Return the places of "source" and "target" or their like, whatever else there is."""
    plain = [cell.strip(" #").casefold() for cell in cells[:MOST]]
    pairs = (pair.split("/") for pair in _SURE.split())
    return next(((plain.index(h), plain.index(t)) for h, t in pairs if {h, t} <= {*plain}), None)


def looks_like_headings(cells: Sequence[str]) -> bool:
    """Say whether cells have words that facts hardly have: "relation", "entity1"."""
    return ends_of(cells) is not None or any(
        own <= _RELATION or (len(own) > 1 and own & _ENDS and own <= _ENDS | _THING | _NAME | _KEYS)
        for own in map(set, map(_parts, cells))
        if any(len(part) > 1 for part in own)
    )


def _parts(heading: str) -> list[str]:
    return _PART.findall(_HUMP.sub("_", heading).casefold())


def _place(names: Set[str], plain: Sequence[str], named: Sequence[str]) -> int | None:
    """Where a heading is one of the names, or such a name with "name" or "label" after it.

    Of both, "subject" and "subject label", the latter has the text.
    """
    whole = next((heading for heading in plain if heading in names), None)
    wanted = names if whole is None else {whole}
    both = (*enumerate(named), *enumerate(plain))
    return next((place for place, heading in both if heading in wanted), None)


def _relation_rank(parts: Sequence[str]) -> int:
    """How surely a heading is that of relations, 1 most; 0: it isn't."""
    own = {*parts}
    if own & _ENDS or not own & (_RELATION | _WEAK):
        return 0
    return len(parts) + (0 if own & _RELATION else _WEAKER)


def _rank_of_ends(head: Sequence[str], tail: Sequence[str], *, weak: bool) -> int:
    """How well two headings name the two ends of a relation, 1 best; 0: they don't."""
    differ = [pair for pair in zip(head, tail, strict=False) if pair[0] != pair[1]]
    if len(head) != len(tail) or len(differ) != 1 or differ[0] not in _OPPOSITES:
        return 0
    rest = {*head} - {differ[0][0]}
    short = len(differ[0][0]) == 1 and differ[0][0].isascii()  # "1", "a": names may end so too
    if short and (not rest or (weak and not rest & (_NAME | _THING | _KEYS))):
        return 0
    if rest & _NAME:
        return 1
    return 3 if rest & _KEYS else 0 if rest & _WEAK else 2
