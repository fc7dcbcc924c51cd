"""Checks of a graph for its curator: likely mistakes."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import pairwise
from typing import Any

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.respelling import WORD_PARTS, spellings
from kbert_core.knowledge.surface_forms import is_acronym, without_sense
from kbert_core.knowledge.triple import TYPE_RELATIONS, AliasRelations, Triple

LONG_TAIL = 40  # characters: a branch of so many tokens pushes the sentence out
MANY = 10  # triples of a relation
EXAMPLES = 5
NAMES_SHOWN = 6  # of one example
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
us who what when how where his her their our my me him them
"""
STOP_WORDS = frozenset(f"{_CHINESE} {_ENGLISH}".split())


@dataclass(frozen=True, slots=True)
class Example:
    """One doubtful thing, in words, and the triples by which it is found."""

    text: str
    triples: tuple[Triple, ...]

    def __str__(self) -> str:
        return self.text


@dataclass
class Finding:
    """One kind of likely mistake: name in JSON, meaning, remedy, count, and first examples."""

    kind: str
    title: str
    remedy: str
    count: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, text: str, *triples: Triple, most: int) -> None:
        """Count one more, and keep it as an example if there are few so far."""
        self.count += 1
        if len(self.examples) < most:
            self.examples.append(Example(text, triples))


def check(
    graph: KnowledgeGraph,
    *,
    alias_relations: AliasRelations | None = None,
    examples: int = EXAMPLES,
    progress: Callable[[int], None] = lambda triples: None,
) -> list[Finding]:
    """Look for likely mistakes in a graph of any size; switched-off triples don't count.

    Args:
        alias_relations: None: those of the graph.
        examples: how many examples of each kind to keep.
        progress: called now and then with the number of triples seen.

    Returns:
        The kinds that were found, the most serious first.
    """
    looked = _Looked(graph, alias_relations or graph.aliases)
    findings = {kind: Finding(kind, title, remedy) for kind, (title, remedy) in _KINDS.items()}
    relations: Counter[str] = Counter()
    first: dict[str, Triple] = {}
    varied: set[str] = set()  # relations with several tails
    seen = 0
    for entity, found in graph.items():
        triples = found if not graph.off else tuple(filter(graph.is_on, found))
        for kind, text, *of in looked.doubts(entity, triples) if triples else ():
            findings[kind].add(text, *of, most=examples)
        for triple in triples:
            relations[triple.relation] += 1
            if first.setdefault(triple.relation, triple).tail != triple.tail:
                varied.add(triple.relation)
        if seen // 100_000 != (seen := seen + len(found)) // 100_000:
            progress(seen)
    for names in _cycles(looked.leads):
        ring = [looked.naming(*pair) for pair in pairwise([*names, names[0]])]
        last = "…" if ring[-1] is None else names[0]  # "…": the beginning of very many
        text = " → ".join([*names, last])
        findings["alias_cycle"].add(text, *filter(None, ring), most=examples)
    for relation, count in relations.items():
        if count == 1 and len(relations) > 1:
            once = first[relation]
            findings["relation_once"].add(str(once), once, most=examples)
        elif count >= MANY and relation not in varied:
            findings["one_tail"].add(f"{relation} → {first[relation].tail}", most=examples)
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
    "acronym": (
        "heads in capitals that are everyday words in small letters",
        "They are found in capitals only, and with the name rules 'basic' in small letters, too: "
        "remove or switch off what nobody means.",
    ),
    "number": (
        "heads that are only a number",
        "Remove or switch off unless they are meant: they are found at every such number.",
    ),
    "word_part": (
        "heads that are only parts of words (non, -itis)",
        "Write whole words: a name is found as one, not smoker in non-smoker.",
    ),
    "unlike_text": (
        "heads written as no text is: with underscores, or characters as in HTML",
        "Write spaces and the characters themselves: other programs find them so.",
    ),
    "other_spelling": (
        "heads that are other spellings of a head (α and alpha, II and 2, Crohn's and Crohn, "
        "bacteria and bacterium)",
        "If they are the same thing, move the triples to one of them: both are found at each name.",
    ),
    "one_character": (
        "heads of one character",
        "Remove or switch off unless they are meant: they are found inside other words.",
    ),
    "alias_cycle": (
        "names that are other names of each other",
        "Keep one direction: from the name that has the knowledge to the others.",
    ),
    "alias_entity": (
        "other names of an entity that are entities themselves",
        "If both are the same thing, move the triples to one of them; if not, the name has two "
        "meanings, and both entities' triples compete at a mention.",
    ),
    "own_alias": ("entities that are another name of themselves", "Remove: it says nothing."),
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
    "one_tail": (
        f"relations of {MANY} triples or more, all with the same tail",
        "They tell no names apart: leave such a relation out (--not-relations), or switch it off.",
    ),
}


Doubt = tuple[Any, ...]  # kind, text, and the triples that it is about


@dataclass
class _Looked:
    """Finds likely mistakes of one entity after the other."""

    graph: KnowledgeGraph
    aliases: AliasRelations
    leads: dict[str, list[str]] = field(default_factory=dict)  # alias → the entities it names

    def doubts(self, entity: str, triples: tuple[Triple, ...]) -> Iterator[Doubt]:
        """Every doubt about an entity."""
        shown = triples[0].head
        typed: dict[str, Triple] = {}
        for triple in triples:
            if triple.relation in TYPE_RELATIONS:
                typed.setdefault(normalise_name(triple.tail), triple)
        if len(typed) > 1:
            types = ", ".join(t.tail for t in typed.values())
            yield "several_types", f"{shown}: {types}", *typed.values()
        known: dict[tuple[str, str], Triple] = {}
        for triple in triples:
            key = normalise_name(triple.relation), normalise_name(triple.tail)
            first = known.setdefault(key, triple)
            if first is not triple:
                yield "duplicate", f"{first} and {triple}", first, triple
            if len(triple.tail) > LONG_TAIL:
                text = f"{shown} · {triple.relation} · {triple.tail[:LONG_TAIL]}…"
                yield "long_tail", text, triple
            if key[1] == entity:
                kind = "own_alias" if self.aliases.aliases_in(triple) else "own_tail"
                yield kind, str(triple), triple
        if entity in STOP_WORDS:
            yield "acronym" if is_acronym(shown) else "stop_word", shown, triples[0]
        elif entity.isdecimal() and len(entity) > 1:
            yield "number", shown, triples[0]
        elif len(entity) == 1:
            yield "one_character", shown, triples[0]
        if entity.rstrip("-") in WORD_PARTS or (entity[0] == "-" and entity[1:].isalpha()):
            yield "word_part", shown, triples[0]
        if "_" in entity or unescape(entity) != entity:
            yield "unlike_text", shown, triples[0]
        for other in map(normalise_name, _spellings(entity)[1:]):
            said = other < entity and entity in _spellings(other)  # of the other entity
            if not said and (named := self._known(other)) is not None:
                yield "other_spelling", f"{shown} and {named.head}", triples[0], named
        yield from self._alias_doubts(triples)

    def _alias_doubts(self, triples: tuple[Triple, ...]) -> Iterator[Doubt]:
        dangling = True
        for triple in triples:
            found = self.aliases.aliases_in(triple)
            if found is None:
                dangling = False
                continue
            alias, named = map(normalise_name, found)
            if alias == named:
                continue
            dangling = dangling and self._known(triple.tail) is None
            known = self._known(found[0])
            if known is not None:
                text = f"{found[0]}: another name of {found[1]}, and {known}"
                yield "alias_entity", text, triple, known
            self.leads.setdefault(alias, []).append(named)
        if dangling:
            yield "dangling_alias", str(triples[0]), triples[0]

    def naming(self, alias: str, named: str) -> Triple | None:
        """The triple by which one name is another of an entity."""
        for triple in (*self.graph.triples_of(alias), *self.graph.triples_of(named)):
            if (alias, named) == tuple(map(normalise_name, self.aliases.aliases_in(triple) or ())):
                return triple
        return None

    def _known(self, name: str) -> Triple | None:
        """Return the first triple of a name that isn't an alias."""
        for triple in filter(self.graph.is_on, self.graph.triples_of(name)):
            if self.aliases.aliases_in(triple) is None:
                return triple
        return None


def _spellings(name: str) -> list[str]:
    return spellings(name, without_sense(name))


def _cycles(leads: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Yield paths that return to where they began, as many as are shown; depth first."""
    done: set[str] = set()
    for start in leads:
        if start in done:
            continue
        way, places, ahead = [start], {start: 0}, [iter(leads[start])]
        while way:
            following = next(ahead[-1], None)
            if following is None:
                ahead.pop()
                done.add(way[-1])
                del places[way.pop()]
            elif following in places:
                at = places[following]
                yield way[at : at + NAMES_SHOWN]
            elif following not in done:
                places[following] = len(way)
                way.append(following)
                ahead.append(iter(leads.get(following, ())))
