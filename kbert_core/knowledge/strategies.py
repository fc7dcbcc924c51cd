"""How the triples of mentions are chosen: some are ruled out, the rest ranked, the first used."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from kbert_core.errors import OptionError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.names import is_word_character, normalise, normalise_name, simplified
from kbert_core.knowledge.selection import (
    SCORED,
    Candidates,
    InjectionOptions,
    LeftOut,
    Reason,
    Rule,
    Selection,
    Strategy,
    TripleScorer,
)
from kbert_core.knowledge.surface_forms import NameRules, agreement
from kbert_core.knowledge.triple import Triple

Scores = Sequence[float] | None  # None: the strategy gives none


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
    asked = [
        Candidates(text, mention, _triples(mention, graph))
        for text, mention in zip(texts, mentions, strict=True)
    ]
    parted = [_parted(one, graph, options) for one in asked]
    scores = _scores(asked, [ranked for ranked, _ in parted], graph, options, scorer)
    return [
        _selection(one, ranked, ruled_out, of_ranked, options)
        for one, (ranked, ruled_out), of_ranked in zip(asked, parted, scores, strict=True)
    ]


def _triples(mention: Mention, graph: KnowledgeGraph) -> tuple[Triple, ...]:
    """Return the triples of every entity that a name may mean, each once, in order."""
    if not mention.others:
        return graph.triples_of(mention.entity)
    return tuple(dict.fromkeys(t for e in mention.entities for t in graph.triples_of(e)))


def _parted(
    asked: Candidates, graph: KnowledgeGraph, options: InjectionOptions
) -> tuple[list[int], dict[int, LeftOut]]:
    """Return the numbers of a mention's triples that are ranked, and those that are ruled out.

    One that is switched off may be both: then its place is kept.
    """
    ranked: list[int] = []
    ruled_out: dict[int, LeftOut] = {}
    for number, triple in enumerate(asked.triples):
        on, rule = graph.is_on(triple), _rule(triple, asked, graph, options)
        if rule is None and (on or options.keep_places):
            ranked.append(number)
        if rule or not on:
            ruled_out[number] = LeftOut(triple, rule if rule and on else Rule.OFF)
    return ranked, ruled_out


def _rule(
    triple: Triple, asked: Candidates, graph: KnowledgeGraph, options: InjectionOptions
) -> Rule | None:
    """Return the rule that rules a triple out which is on, whatever others there are."""
    if not options.allows(triple.relation):
        return Rule.RELATION
    if options.names.alias and graph.aliases.aliases_in(triple) is not None:
        mention = asked.mention
        name = asked.sentences[mention.sentence][mention.start : mention.end]
        if agreement(name, [triple.tail], options.names) is not None:
            return Rule.OWN_NAME
    if options.strategy is Strategy.TAIL_IN_TEXT and not tail_in_text(triple, asked, options.names):
        return Rule.TAIL
    return None


def _scores(
    asked: Sequence[Candidates],
    ranked: Sequence[Sequence[int]],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    scorer: TripleScorer | None,
) -> Sequence[Scores]:
    """Score the triples of mentions that are ranked."""
    if options.strategy not in SCORED or options.max_triples == 0:
        return [None] * len(asked)
    waiting = [
        Candidates(one.sentences, one.mention, tuple(one.triples[i] for i in own))
        for one, own in zip(asked, ranked, strict=True)
    ]
    if options.strategy is Strategy.RARE:
        idf = graph.relation_idf  # of a relation whose triples are all off there is none
        return [[idf.get(t.relation, math.inf) for t in one.triples] for one in waiting]
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
    ranked: Sequence[int],
    ruled_out: Mapping[int, LeftOut],
    scores: Scores,
    options: InjectionOptions,
) -> Selection:
    """Divide the ranked triples of a mention by sense, threshold and limit."""
    left_out = dict(ruled_out)
    used: list[tuple[Triple, Reason]] = []
    free = options.max_triples
    least = -math.inf if options.threshold is None else options.threshold
    for number, reason, sense_fits in _best_first(asked, ranked, scores, options):
        rule = None
        if not sense_fits:
            rule = Rule.SENSE
        elif reason.score is not None and reason.score < least:
            rule = Rule.SCORE
        elif free <= 0:
            rule = Rule.LIMIT
        free -= rule is None
        if number in ruled_out:
            continue  # switched off, and its place is kept
        if rule is None:
            used.append((asked.triples[number], reason))
        else:
            left_out[number] = LeftOut(asked.triples[number], rule, reason)
    return Selection(
        tuple(triple for triple, _ in used),
        tuple(reason for _, reason in used),
        tuple(left_out[number] for number in sorted(left_out)),
    )


def _best_first(
    asked: Candidates, ranked: Sequence[int], scores: Scores, options: InjectionOptions
) -> Iterator[tuple[int, Reason, bool]]:
    """Yield the number of each triple, with its reason and whether its sense fits."""
    mention = asked.mention
    if scores is None and not options.first_relations and not mention.others:
        reason = _same_reason(options.strategy)
        yield from ((number, reason, True) for number in ranked)
        return
    first = {relation: place for place, relation in enumerate(options.first_relations)}
    triples = [asked.triples[number] for number in ranked]
    wanted = [first.get(triple.relation, len(first)) for triple in triples]
    values = scores if scores is not None else [0.0] * len(ranked)
    senses = [normalise_name(triple.head) if mention.others else "" for triple in triples]
    fitting = None
    if options.one_sense and ranked:
        fitting = senses[max(range(len(ranked)), key=lambda i: (values[i], -i))]
    order = sorted(range(len(ranked)), key=lambda i: (wanted[i], -values[i]))
    for rank, i in enumerate(order, start=1):
        reason = Reason(
            options.strategy,
            None if scores is None else scores[i],
            rank,
            len(order),
            preferred=triples[i].relation in first,
            sense=senses[i],
            threshold=options.threshold,
        )
        yield ranked[i], reason, fitting is None or senses[i] == fitting


_same_reason = lru_cache(Reason)


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
                0 < border < len(compared)
                and all(map(is_word_character, normal.text[border - 1 : border + 1]))
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
