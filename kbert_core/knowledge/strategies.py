"""How the triples of mentions are chosen: some are ruled out, and of the rest the first stay."""

from collections.abc import Sequence

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.names import normalise_name
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
from kbert_core.knowledge.surface_forms import NameRules, agreement
from kbert_core.knowledge.triple import Triple

_FIRST = Reason()


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
    from kbert_core.knowledge import ranking

    parted = [_parted(one, graph, options) for one in candidates]
    scores = ranking.scores_of([usable for usable, _ in parted], graph, options, scorer)
    return [
        ranking.selection(one, usable, scored, ruled_out, options)
        for one, (usable, ruled_out), scored in zip(candidates, parted, scores, strict=True)
    ]


def _first(asked: Candidates, graph: KnowledgeGraph, options: InjectionOptions) -> Selection:
    """Take the first triples in graph order; a fast way to what :func:`ranking.selection` does."""
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
    if options.strategy is Strategy.TAIL_IN_TEXT:
        from kbert_core.knowledge.ranking import tail_in_text

        return None if tail_in_text(triple, asked, options.names) else Rule.TAIL
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
