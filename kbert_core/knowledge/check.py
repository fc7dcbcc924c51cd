"""What a curator wants to know of a graph: triples that are probably not meant so."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triples import Triple

TYPE_RELATIONS = ("类别", "类型", "type", "is_a", "instance of", "instance_of", "rdf:type")
ALIAS_RELATIONS = (
    *("别名", "别称", "又名", "简称", "又称", "俗称", "全称", "英文名", "同义词"),
    *("alias", "aliases", "synonym", "synonym_of", "also called", "also known as", "altLabel"),
)
LONG_TAIL = 40  # characters: a branch of so many tokens pushes the sentence out
EXAMPLES = 5
# Words that stand in nearly every text: a head like these is matched where nothing is meant.
_CHINESE = """
的 了 和 是 在 有 我 他 她 它 这 那 不 也 都 就 很 还 要 会 能 说 去 来 上 下 中 大 小 多 少
到 对 从 以 为 与 及 或 而 但 被 把 给 让 向 于 之 其 所 者 个 们 着 过 得 地 吗 呢 吧 啊
一个 我们 你们 他们 这个 那个 什么 怎么 因为 所以 但是 如果 可以 没有 已经 非常 现在 时候
自己 知道 出现 可能 进行 使用 情况 问题
"""
_ENGLISH = """
a an the and or but if of in on at to for from by with as is are was were be been it its this that
these those he she they we you i not no do does did has have had can could will would may might
one two other some any all more most such only own same so than too very new now
"""
STOP_WORDS = frozenset(f"{_CHINESE} {_ENGLISH}".split())


@dataclass
class Finding:
    """One kind of doubt, with the triples it is about.

    Attributes:
        kind: its name, as in JSON.
        title: what it is, in words.
        remedy: what to do about it.
        count: how many entities, triples or relations.
        examples: the first of them.
        heads: of each example, the head it is about.
    """

    kind: str
    title: str
    remedy: str
    count: int = 0
    examples: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)

    def add(self, example: object, head: str, most: int = EXAMPLES) -> None:
        """Count one more."""
        self.count += 1
        if len(self.examples) < most:
            self.examples.append(str(example))
            self.heads.append(head)


def check(
    graph: KnowledgeGraph,
    *,
    type_relations: Collection[str] = TYPE_RELATIONS,
    alias_relations: Collection[str] = ALIAS_RELATIONS,
    examples: int = EXAMPLES,
    progress: Callable[[int], None] = lambda triples: None,
) -> list[Finding]:
    """Look a graph through once.

    Args:
        graph: any size; entities are held one at a time.
        type_relations: whose tails are types, of which an entity should have one.
        alias_relations: whose tails are other names of the head.
        examples: of each kind, at most so many.
        progress: called now and then with the number of triples seen.

    Returns:
        What was found, most doubtful first; kinds without any are left out.
    """
    types, aliases = set(type_relations), set(alias_relations)
    findings = {kind: Finding(kind, title, remedy) for kind, (title, remedy) in _KINDS.items()}
    relations: Counter[str] = Counter()
    first: dict[str, Triple] = {}
    seen = 0
    for entity, triples in graph.items():
        for kind, example in _doubts(graph, entity, triples, types, aliases):
            findings[kind].add(example, triples[0].head, examples)
        for triple in triples:
            relations[triple.relation] += 1
            first.setdefault(triple.relation, triple)
        if seen // 100_000 != (seen := seen + len(triples)) // 100_000:
            progress(seen)
    for relation, count in relations.items():
        if count == 1 and len(relations) > 1:
            findings["relation_once"].add(first[relation], first[relation].head, examples)
    return [finding for finding in findings.values() if finding.count]


_KINDS = {
    "several_types": (
        "entities with several types",
        "Keep the right one, or give the meanings different names.",
    ),
    "duplicate": (
        "triples that differ only in case, width or spaces",
        "Keep one of each: the others take the place of other triples at a mention.",
    ),
    "stop_word": (
        "heads that are everyday words",
        "Remove or switch off: they are found where nothing is meant.",
    ),
    "one_character": (
        "heads of one character",
        "Remove or switch off unless they are meant: they are found inside other words.",
    ),
    "dangling_alias": (
        "entities of which only other names are known, and nothing of those either",
        "Add what is known of them: these names lead to nothing.",
    ),
    "own_tail": ("triples whose tail is their head", "Remove: they add nothing to a text."),
    "long_tail": (
        f"tails of over {LONG_TAIL} characters",
        "Shorten: a branch takes as many tokens, and the length limit cuts it.",
    ),
    "relation_once": (
        "relations used only once",
        "Look for a relation of the same meaning, or a slip of the pen.",
    ),
}


def _doubts(
    graph: KnowledgeGraph,
    entity: str,
    triples: tuple[Triple, ...],
    types: set[str],
    aliases: set[str],
) -> Iterator[tuple[str, object]]:
    """What is doubtful about one entity."""
    shown = triples[0].head
    found = dict.fromkeys(normalise_name(t.tail) for t in triples if t.relation in types)
    if len(found) > 1:
        yield "several_types", f"{shown}: {', '.join(found)}"
    known: dict[tuple[str, str], Triple] = {}
    for triple in triples:
        key = normalise_name(triple.relation), normalise_name(triple.tail)
        if known.setdefault(key, triple) is not triple:
            yield "duplicate", f"{known[key]} and {triple}"
        if key[1] == entity:
            yield "own_tail", triple
        if len(triple.tail) > LONG_TAIL:
            yield "long_tail", f"{shown} · {triple.relation} · {triple.tail[:LONG_TAIL]}…"
    if entity in STOP_WORDS:
        yield "stop_word", shown
    elif len(entity) == 1:
        yield "one_character", shown
    if all(triple.relation in aliases for triple in triples) and not any(
        other.relation not in aliases
        for triple in triples
        for other in graph.triples_of(triple.tail)
    ):
        yield "dangling_alias", triples[0]
