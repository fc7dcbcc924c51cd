"""The systems: one drawing for all, what each makes of names, and why two readings are equal."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from kbert_core.kbert.kbert import KBertTrace
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_core.reader import Reading
from kbert_core.roof.roof_bert import RoofReading
from kbert_core.systems import K_BERT
from kbert_lab.explain.compare import Comparison, Why
from kbert_lab.explain.drawing import HEADS, SHOWN, linked_html
from kbert_lab.lab.comparing import Panel
from kbert_lab.lab.scene import NO_GRAPH, Scene
from kbert_lab.lab.selection import code_of
from kbert_lab.lab.texts import N_, listed, sentences, t
from kbert_lab.lab.views.html import TRUNK, plain
from kbert_lab.lab.views.knowledge import NO_NAME, TripleRow
from kbert_lab.lab.views.matrix import Status, row_of
from kbert_lab.lab.views.prediction import percent
from kbert_lab.lab.views.tree import BranchView, NodeView, TokenView, TreeView, ablated, tree_view
from kbert_lab.lab.words import SIDES_SYSTEM
from kbert_lab.lab.written import Identity

if TYPE_CHECKING:
    import plotly.graph_objects as go

NAMES = {
    "k-bert": N_("K-BERT"),
    "knowbert": N_("KnowBert"),
    "roof-bert": N_("Roof-BERT"),
    "plain-text": N_("Plain text"),
    "bert": N_("BERT"),
    "kbert": N_("K-BERT"),
    "hard": N_("Hard positions"),
    "all": N_("Everything visible"),
    "untouched": N_("Matrix by the tree"),
    "intervened": N_("Matrix as edited"),
    "now": N_("Now"),
    "off": N_("Graph off"),
    "twin": N_("Twin"),
    "loaded": N_("Graph as loaded"),
    "edited": N_("Graph as edited"),
}
ENTERS = {  # what each system does with knowledge
    "": N_("The text alone, without a graph."),
    K_BERT: N_(
        "K-BERT hangs each triple on its name as a branch, which only the name sees: {count} more "
        "tokens in the row."
    ),
    "plain-text": N_(
        "The triples stand after the text, and every token sees every other: {count} more tokens "
        "in the row."
    ),
    "knowbert": N_(
        "KnowBert mixes a vector of the entity into the word, between two layers: no more tokens."
    ),
    "roof-bert": N_(
        "Roof-BERT reads the triples in a second row, and joins the two above: {count} tokens "
        "there."
    ),
}
SYSTEM = {name: NAMES[name] for name in ("k-bert", "knowbert", "roof-bert", "plain-text")}
TOKENS = {  # titles of matrices
    "visible": N_("token × token: who may look at whom"),
    "attention": N_("token × token: attention"),
}
MAPS = {  # titles, and what the columns are
    "knowbert": (N_("token × entity: share of the vector"), N_("entity")),
    "roof-bert": (N_("token × triple token: attention"), N_("triple token")),
}
EQUAL = {
    Why.NO_BRANCH: N_(
        "no triple of the graph stands in this text, so there is no branch to place or to hide, "
        "and K-BERT reads what BERT reads"
    ),
    Why.SAME_TRIPLES: N_("the same triples hang at the same mentions"),
    Why.SAME_MATRIX: N_("positions and visible matrix come out the same for this tree"),
}
DETACHED = ("plain-text", "roof-bert")  # whose triples don't stand at their mention
FEW = 2  # entities that a name may mean, as drawn
Knowledge = dict[tuple[int, int], list[tuple[str, Triple]]]  # by sentence and first character


def names_of(panels: Sequence[Panel]) -> list[str]:
    """What every panel is called, each another."""
    return [
        t(NAMES[panel.name]) if panel.name else t("Panel {number}", number=number)
        for number, panel in enumerate(panels, start=1)
    ]


def about(scene: Scene, model: str, triples: int) -> str:
    """What a panel reads, and how, as far as it isn't as usual; plain text.

    Args:
        model: what its model is called; empty where all panels have the same.
        triples: how many stand in the text.
    """
    parts = [model] if model else []
    if scene.graph == NO_GRAPH:
        return listed([*parts, t("no graph")])
    parts.append(t("1 triple") if triples == 1 else t("{count} triples", count=triples))
    parts += [t(SIDES_SYSTEM[scene.system])] if scene.system else []
    return listed([*parts, *ablated(scene.ablation)])


# Text, where knowledge enters: one drawing for all systems


def system_of(trace: Any) -> str:
    """The system that read a trace."""
    return str(trace.reading.config.system)


def enters(trace: Any) -> str:
    """Say in a sentence where knowledge enters, and what it costs in tokens; plain text."""
    row = trace.rows[0]
    beside = len(getattr(row, "kb_ids", ()))
    count = beside or sum(branch > 0 for branch in getattr(row, "branch_ids", ()))
    return t(ENTERS[system_of(trace) if trace.used or beside else ""], count=count)


def flow_view(trace: Any, window: int, before: Any = None) -> TreeView:
    """Lay out a text and the knowledge that is read with it, whatever the system.

    Args:
        window: which row of a sentence tree.
        before: an earlier trace, whose triples that are gone are drawn as removed.
    """
    system = system_of(trace)
    if system == K_BERT:
        earlier = row_of(before, window, trace.rows[window]) if before is not None else None
        return tree_view(trace, window, earlier)
    now, was = _knowledge(trace), _knowledge(before) if before is not None else {}
    nodes, every = [], list[BranchView]()
    for sentence, start, tokens in _runs(trace.reading):
        place = (sentence, start)
        branches = _branches(place, now.get(place, []), was.get(place, []), before is not None)
        every += branches
        mention = place in now or place in was
        nodes.append(
            NodeView(
                tokens, mention, () if system in DETACHED else tuple(branches), sentence=sentence
            )
        )
    if system in DETACHED:  # after the text, or in a row of their own
        nodes.append(NodeView((), branches=tuple(every), sentence=nodes[-1].sentence))
    return TreeView(tuple(nodes), 1, False)


def identities(trace: Any) -> list[Identity]:
    """The text's tokens, as :func:`flow_view` numbers them."""
    tokens = enumerate(trace.reading.tokens)
    return [("trunk", number, place) for number, own in tokens for place in range(len(own))]


def _knowledge(trace: Any) -> Knowledge:
    """The triples that are read, by where their mention begins, each with what stands before it."""
    found: Knowledge = {}
    if hasattr(trace, "links"):
        for own in trace.links:
            mention = own.span.mention
            for one in sorted(own.candidates, key=lambda c: -c.weight)[:FEW]:
                said = f"{one.candidate.entity} {percent(one.weight).replace(' ', '')}"
                triples = found.setdefault((mention.sentence, mention.start), [])
                triples += [(said, triple) for triple in one.candidate.triples]
        return found
    for mention, triples in trace.reading.by_mention:
        named = [(triple.head, triple) for triple in triples]
        found.setdefault((mention.sentence, mention.start), []).extend(named)
    return found


def _runs(reading: Reading) -> Iterator[tuple[int, int, tuple[TokenView, ...]]]:
    """Sentence, first character and tokens of every mention, and of every token between them."""
    number = count()
    for sentence, tokens in enumerate(reading.tokens):
        mentions = [own for own in reading.mentions if own.sentence == sentence]

        def begun(place: int, starts: Sequence[int] = tokens.starts, within: Any = mentions) -> int:
            at = starts[place]
            return next((own.start for own in within if own.start <= at < own.end), at)

        for start, places in groupby(range(len(tokens)), begun):
            run = [
                TokenView(
                    reading.sentences[sentence][tokens.starts[place] : tokens.ends[place]],
                    hard=next(number),
                    name=code_of(("trunk", sentence, place)),
                    joined=place > 0 and tokens.ends[place - 1] == tokens.starts[place],
                )
                for place in places
            ]
            yield sentence, start, tuple(run)


def _branches(
    place: tuple[int, int],
    now: Sequence[tuple[str, Triple]],
    was: Sequence[tuple[str, Triple]],
    compared: bool,
) -> list[BranchView]:
    """What is read of a mention, and what is gone since, in order."""
    here, there = ({triple for _, triple in own} for own in (now, was))
    found = [*now, *(own for own in was if own[1] not in here)]
    made = []
    for label, triple in found:
        status: Status = "removed" if triple not in here else "same"
        if compared and triple in here and triple not in there:
            status = "added"
        words = [text.replace("_", " ").split() for text in (label, triple.relation, triple.tail)]
        said, relation, tail = (tuple(map(TokenView, text)) for text in words)
        name = code_of(("branch", *place, triple))
        made.append(BranchView(triple, name, ((*said, *relation), tail), status))
    return made


def map_chart(reading: Reading, weights: np.ndarray, columns: Sequence[str]) -> "go.Figure":
    """Draw how each token of the text attends to the knowledge beside it, (T, C)."""
    import plotly.express as px  # of the app's packages: a notebook draws the rest without

    title, across = MAPS[reading.config.system]
    rows = [
        plain(reading.sentences[number][start:end])
        for number, tokens in enumerate(reading.tokens)
        for start, end in zip(tokens.starts, tokens.ends, strict=True)
    ]
    chart = px.imshow(
        weights,
        zmin=0,
        aspect="auto",
        title=t(title),
        color_continuous_scale=["rgba(0, 114, 178, .04)", TRUNK],
        labels={"x": t(across), "y": t("token of the text"), "color": ""},
    )
    ticks = {"tickfont": {"size": 10}, "showgrid": False, "fixedrange": True}
    chart.update_xaxes(ticks, tickvals=[*range(len(columns))], ticktext=[*columns])
    chart.update_yaxes(ticks, tickvals=[*range(len(rows))], ticktext=rows)
    chart.update_traces(hovertemplate="%{y} → %{x}: %{z:.1%}<extra></extra>", xgap=1, ygap=1)
    chart.update_coloraxes(colorbar={"tickformat": ".0%", "thickness": 10})
    margin = {"l": 8, "r": 8, "t": 36, "b": 8}
    return chart.update_layout(
        title_font_size=13, height=min(440, 130 + 16 * len(rows)), margin=margin
    )


# What names may mean, and the triples read beside a text, as tables


def has_more(links: Sequence[Any]) -> bool:
    """Whether a span has more candidates than are shown at first."""
    return any(len(own.candidates) > SHOWN for own in links)


def linked_table(links: Sequence[Any], sentences: Sequence[str], *, every: bool = False) -> str:
    """The spans of a trace with their candidates, the best first; escaped."""
    words = {
        "entity": t("entity"),
        "prior": t("prior"),
        "dot": t("dot product"),
        "score": HEADS["score"],
        "weight": t("weight"),
        "says": t("what it says"),
        "more": t("and {count} more"),
        "base": t("knowledge base {number}"),
        "none": t(NO_NAME),
    }
    return linked_html(links, sentences, most=None if every else SHOWN, words=words)


def beside_table(rows: Sequence[TripleRow], reading: RoofReading) -> dict[str, list[str]]:
    """Each name of a text with its triples, and whether they are read or why not; as columns."""
    names: dict[str, dict[str, None]] = {}  # in reading order, with the entities they name
    for mention in reading.mentions:
        text = reading.sentences[mention.sentence][mention.start : mention.end]
        names.setdefault(text, {}).update(dict.fromkeys(mention.entities))
    lines = [
        (name, row)
        for name in names
        for row in rows
        if normalise_name(row.triple.head) in names[name]
    ]
    return {
        t("name"): [name for name, _ in lines],
        t("triple"): [str(row.triple) for _, row in lines],
        t("read?"): [row.state for _, row in lines],
    }


# Why two are equal


def say_equal(comparison: Comparison, names: Mapping[str, str]) -> str:
    """Say which readings are equal and why, those equal for one reason together; plain text."""
    said = []
    for why in dict.fromkeys(pair.why for pair in comparison.equal):
        pairs = [pair for pair in comparison.equal if pair.why is why]
        largest = max(pair.largest or 0.0 for pair in pairs)
        text = N_(
            "{names} are equal: {why}. Their states were compared: the largest difference of any "
            "number in the last layer is {largest}."
        )
        named = dict.fromkeys(name for pair in pairs for name in (pair.one, pair.other))
        called = listed(names[name] for name in names if name in named)
        small = f"{largest:.2g}"
        said.append(t(text, names=called, why=t(EQUAL[why]) if why else "", largest=small))
    return sentences(said)


def has_trees(trace: Any) -> bool:
    """Whether a trace is one of sentence trees."""
    return isinstance(trace, KBertTrace)
