"""How the triples of mentions are chosen: some are ruled out, and the rest is ranked."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from kbert_core.errors import OptionError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.names import is_word_character, normalise, normalise_name, simplified
from kbert_core.knowledge.selection import InjectionOptions, LeftOut, Reason, Rule, Strategy
from kbert_core.knowledge.surface_forms import NameRules, agreement
from kbert_core.knowledge.triple import Triple

_FIRST = Reason()


@dataclass(frozen=True, slots=True)
class Candidates:
    """A mention with the triples that may be used for it."""

    sentences: tuple[str, ...]  # the text, one or two
    mention: Mention  # in one of them
    triples: tuple[Triple, ...]  # in graph order, of every entity that the name may mean


class TripleScorer(Protocol):
    """Scores how well a triple fits a mention in its text; a higher score is better."""

    def score(self, asked: Sequence[Candidates]) -> list[list[float]]:
        """Score the triples of many mentions at once; a list of scores for each mention."""
        ...


@dataclass(frozen=True, slots=True)
class Selection:
    """A mention's triples, divided into those used and those left out."""

    used: tuple[Triple, ...]  # to inject, the best first; in graph order where none is better
    reasons: tuple[Reason, ...]  # of each that is used
    left_out: tuple[LeftOut, ...]  # the others, in graph order


def select(
    entity: str,
    graph: KnowledgeGraph,
    options: InjectionOptions,
    *,
    others: Sequence[str] = (),
    name: str = "",
) -> tuple[tuple[Triple, ...], tuple[LeftOut, ...]]:
    """Choose an entity's triples to inject, and those left out, by a strategy that needs no text.

    Args:
        entity: in the form in which names are compared.
        others: other entities that the same name may mean.
        name: the name as it stands in a text; "" if there is no text.
    """
    mention = Mention(0, len(name), entity, others=tuple(others))
    (selection,) = select_triples([(name,)], [mention], graph, options)
    return selection.used, selection.left_out


def select_triples(
    texts: Sequence[tuple[str, ...]],
    mentions: Sequence[Mention],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    scorer: TripleScorer | None = None,
) -> list[Selection]:
    """Choose the triples of many mentions.

    Args:
        texts: for each mention its text, of one or two sentences.
        mentions: M mentions.
        scorer: for the strategy "context".

    Raises:
        OptionError: the strategy needs a scorer, and there is none.
    """
    candidates = [
        Candidates(text, mention, _triples(mention, graph))
        for text, mention in zip(texts, mentions, strict=True)
    ]
    if options.strategy is Strategy.FIRST and not options.first_relations:
        return [_first(one, graph, options) for one in candidates]
    parted = [_parted(one, graph, options) for one in candidates]
    scores = _scores([usable for usable, _ in parted], graph, options, scorer)
    return [
        _selection(one, usable, scored, ruled_out, options)
        for one, (usable, ruled_out), scored in zip(candidates, parted, scores, strict=True)
    ]


def _first(asked: Candidates, graph: KnowledgeGraph, options: InjectionOptions) -> Selection:
    """Take the first triples in graph order; a fast way to what :func:`_selection` does."""
    used: list[Triple] = []
    left_out: list[LeftOut] = []
    free = options.max_triples
    for triple in asked.triples:
        rule = _rule(triple, asked, graph, options)
        if rule is None and free > 0:
            used.append(triple)
        else:
            left_out.append(LeftOut(triple, rule or Rule.LIMIT))
        free -= rule is None or (rule is Rule.OFF and _holds_place(triple, asked, graph, options))
    reasons = (_FIRST,) * len(used)
    if asked.mention.others:
        reasons = tuple(Reason(sense=normalise_name(triple.head)) for triple in used)
    return Selection(tuple(used), reasons, tuple(left_out))


def _parted(
    asked: Candidates, graph: KnowledgeGraph, options: InjectionOptions
) -> tuple[Candidates, dict[Triple, LeftOut]]:
    """Divide a mention's triples: those that may be used, and those ruled out without a text."""
    rules = {triple: _rule(triple, asked, graph, options) for triple in asked.triples}
    usable = tuple(t for t in rules if _holds_place(t, asked, graph, options))
    ruled_out = {triple: LeftOut(triple, rule) for triple, rule in rules.items() if rule}
    return Candidates(asked.sentences, asked.mention, usable), ruled_out


def _rule(
    triple: Triple, asked: Candidates, graph: KnowledgeGraph, options: InjectionOptions
) -> Rule | None:
    """Return the rule that rules a triple out, no matter which others there are."""
    return _other_rule(triple, asked, graph, options) if graph.is_on(triple) else Rule.OFF


def _holds_place(
    triple: Triple, asked: Candidates, graph: KnowledgeGraph, options: InjectionOptions
) -> bool:
    """Say whether a triple takes one of the first places; a switched-off one may, too."""
    on = options.keep_places or graph.is_on(triple)
    return on and _other_rule(triple, asked, graph, options) is None


def _other_rule(
    triple: Triple, asked: Candidates, graph: KnowledgeGraph, options: InjectionOptions
) -> Rule | None:
    if not options.allows(triple.relation):
        return Rule.RELATION
    if _says_name(triple, asked, graph, options.names):
        return Rule.OWN_NAME
    if options.strategy is Strategy.TAIL_IN_TEXT and not tail_in_text(triple, asked, options.names):
        return Rule.TAIL
    return None


def _triples(mention: Mention, graph: KnowledgeGraph) -> tuple[Triple, ...]:
    """Return the triples of every entity that a name may mean, each once, in order."""
    if not mention.others:
        return graph.triples_of(mention.entity)
    return tuple(dict.fromkeys(t for e in mention.entities for t in graph.triples_of(e)))


def _says_name(triple: Triple, asked: Candidates, graph: KnowledgeGraph, rules: NameRules) -> bool:
    """Say whether a branch would only repeat the name by which its mention was found."""
    if not rules.alias or graph.aliases.aliases_in(triple) is None:
        return False
    mention = asked.mention
    name = asked.sentences[mention.sentence][mention.start : mention.end]
    return agreement(name, [triple.tail], rules) is not None


def _scores(
    waiting: Sequence[Candidates],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    scorer: TripleScorer | None,
) -> Sequence[Sequence[float] | None]:
    if options.max_triples == 0:
        return [None] * len(waiting)
    if options.strategy is Strategy.RARE:
        idf = graph.relation_idf  # of a relation whose triples are all off there is none
        return [[idf.get(t.relation, math.inf) for t in one.triples] for one in waiting]
    if not options.needs_model:
        return [None] * len(waiting)
    if scorer is None:
        raise OptionError(
            f"The strategy '{options.strategy}' needs a model to score with. Name a model, or an "
            "encoder as the scorer."
        )
    some = [one for one in waiting if one.triples]
    found = iter(scorer.score(some) if some else [])
    return [next(found) if one.triples else [] for one in waiting]


def _selection(
    asked: Candidates,
    usable: Candidates,
    scores: Sequence[float] | None,
    left_out: dict[Triple, LeftOut],
    options: InjectionOptions,
) -> Selection:
    """Rank the triples that may be used, and divide them by sense, threshold and limit."""
    used: list[tuple[Triple, Reason]] = []
    free = options.max_triples
    for triple, reason, sense_fits in _ranked(usable, scores, options):
        rule = None
        if not sense_fits:
            rule = Rule.SENSE
        elif reason.below:
            rule = Rule.SCORE
        elif free <= 0:
            rule = Rule.LIMIT
        free -= rule is None
        if triple in left_out:
            continue  # switched off, and its place is kept
        if rule is None:
            used.append((triple, reason))
        else:
            left_out[triple] = LeftOut(triple, rule, reason)
    return Selection(
        tuple(triple for triple, _ in used),
        tuple(reason for _, reason in used),
        tuple(left_out[triple] for triple in asked.triples if triple in left_out),
    )


def _ranked(
    candidates: Candidates, scores: Sequence[float] | None, options: InjectionOptions
) -> Iterator[tuple[Triple, Reason, bool]]:
    """Yield each triple, the best first, with its reason and whether its sense fits."""
    triples, mention = candidates.triples, candidates.mention
    if scores is None and not options.first_relations and not mention.others:
        same = Reason(options.strategy)
        yield from ((triple, same, True) for triple in triples)
        return
    places = {relation: place for place, relation in enumerate(options.first_relations)}
    wanted = [places.get(triple.relation, len(places)) for triple in triples]
    values = scores if scores is not None else [0.0] * len(triples)
    order = sorted(range(len(triples)), key=lambda i: (wanted[i], -values[i]))
    senses = [normalise_name(triple.head) if mention.others else "" for triple in triples]
    fitting = None
    if options.one_sense and order:
        fitting = senses[max(range(len(triples)), key=lambda i: (values[i], -i))]
    for rank, i in enumerate(order, start=1):
        reason = Reason(
            options.strategy,
            None if scores is None else scores[i],
            rank,
            len(order),
            preferred=triples[i].relation in places,
            sense=senses[i],
            threshold=options.threshold,
        )
        yield triples[i], reason, fitting is None or senses[i] == fitting


def tail_in_text(triple: Triple, asked: Candidates, rules: NameRules) -> bool:
    """Say whether a text contains a triple's tail outside of the mention itself.

    Texts are compared as names are, in both Chinese scripts if the rules allow it. A tail that
    begins or ends with a Latin letter or digit needs a word boundary there.
    """
    tail = normalise_name(triple.tail)
    if not tail:
        return False
    if rules.script:
        tail = _in_simplified(tail)
    mention = asked.mention
    for number, text in enumerate(asked.sentences):
        normal = _normalised(text)
        compared = _in_simplified(normal.text) if rules.script else normal.text
        for found in re.finditer(f"(?={re.escape(tail)})", compared):
            start, end = found.start(), found.start() + len(tail)
            inside = (
                number == mention.sentence
                and normal.starts[start] >= mention.start
                and normal.ends[end - 1] <= mention.end
            )
            in_word = any(
                0 < border < len(normal.text)
                and is_word_character(normal.text[border - 1])
                and is_word_character(normal.text[border])
                for border in (start, end)
            )
            if not inside and not in_word:
                return True
    return False


_normalised = lru_cache(maxsize=64)(normalise)


@lru_cache(maxsize=4096)
def _in_simplified(text: str) -> str:
    """Replace traditional characters by simplified ones, one for one."""
    return "".join(map(simplified, text))
