"""How often a graph has something to say about a data set, told before anything takes long."""

import logging
from collections.abc import Sequence

from kbert_core.data.labelled import Example
from kbert_core.kbert.sentence_tree import grow_tree
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions, TripleScorer

LOOKED_AT = 2000  # rows, evenly spread; more say the same
HARDLY = 0.01  # of the rows
log = logging.getLogger(__name__)


def tell_of_matches(
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    what: str,
    *,
    scorer: TripleScorer | None = None,
) -> None:
    """Log in what share of the rows the graph injects something; warn of hardly any.

    Args:
        what: which rows, for the message.
        scorer: for options that score triples with a model.
    """
    if not len(graph) or not examples:
        return
    some = examples[:: max(1, len(examples) // LOOKED_AT)]
    rows = sum(
        bool(grow_tree(example.sentences, graph, options, scorer=scorer).used) for example in some
    )
    seen = f"{len(some):,} rows" if len(some) == len(examples) else f"{len(some):,} rows looked at"
    share = f"{rows:,} of {seen} of {what} ({rows / len(some):.1%})"
    if rows < HARDLY * len(some):
        log.warning(
            "the graph injects something into %s, so knowledge can change hardly anything. See "
            "that text and graph are in one language and script%s; `kbert audit` shows more.",
            *(share, ", and that --relations names some it has" if options.relations else ""),
        )
    else:
        log.info("the graph injects something into %s", share)
