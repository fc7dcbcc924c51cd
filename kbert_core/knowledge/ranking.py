"""How triples are ranked: by a score, by relations that come first, by one sense of a name."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from kbert_core.errors import OptionError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import is_word_character, normalise, normalise_name, simplified
from kbert_core.knowledge.selection import (
    Candidates,
    InjectionOptions,
    LeftOut,
    Reason,
    Rule,
    Selection,
    Strategy,
    TripleScorer,
)
from kbert_core.knowledge.surface_forms import NameRules
from kbert_core.knowledge.triple import Triple


def scores_of(
    waiting: Sequence[Candidates],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    scorer: TripleScorer | None,
) -> Sequence[Sequence[float] | None]:
    """Score the triples of mentions; None where the strategy needs no scores.

    Raises:
        OptionError: the strategy needs a scorer, and there is none.
    """
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


def selection(
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
