"""Knowledge noise: a table at the dial, a chart as noise grows, and what they show, in words."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from app.models import ModelInfo
from app.texts import N_, listed, sentences, t, tn
from app.view_models.html import escape, plain
from app.view_models.prediction import percent
from app.view_models.styles import BRANCH, LINK, TRUNK, faint
from app.view_models.targets import answer_name
from kbert_core.knowledge.triple import Triple
from kbert_lab.explain.noise import K_BERT, NoiseCurve, Point

NOISE_WAY = {
    "K-BERT": N_("K-BERT"),
    "hard positions": N_("hard positions"),
    "everything visible": N_("everything visible"),
    "plain-text": N_("triples as plain text"),
}

NOISE_AXIS = {
    "variation": N_("distance from plain BERT, %"),
    "moved": N_("moved by noise, %"),
    "probability": N_("probability of {label}, %"),
}

COLOURS = (TRUNK, BRANCH, LINK)
DASHES = ("solid", "dash", "dashdot")
SYMBOLS = ("circle", "square", "diamond")
ALIKE = 0.02  # of total variation: less isn't told apart in words
MEASURES = ("moved", "probability", "variation")


def way_name(way: str) -> str:
    """What a way of reading is called."""
    return t(NOISE_WAY[way])


def dial(
    curve: NoiseCurve, count: int, seed: int, info: ModelInfo, label: str
) -> dict[str, list[str]]:
    """The readings at one count, plain BERT's above them; as columns.

    Args:
        curve: that has run the count with the seed.
        count, seed: of the dial.
        label: whose probability it is.
    """
    text = curve.sentences[0]
    rows = [(t("BERT, no knowledge"), curve.plain.answer, "", curve.plain_probability, "", "")]
    for way, point in at_dial(curve, count, seed).items():
        flips = point.outcome.answer != curve.at(way, 0)[0].outcome.answer
        moved = percent(point.moved), percent(point.variation)
        flash = " ⚡" if flips else ""
        rows.append((way_name(way), point.outcome.answer, flash, point.probability, *moved))
    return {
        t("Read as"): [row[0] for row in rows],
        t("Prediction"): [answer_name(row[1], info, text) + row[2] for row in rows],
        t("Probability of {label}", label=label): [percent(row[3]) for row in rows],
        t("Moved by noise"): [row[4] for row in rows],
        t("From plain BERT"): [row[5] for row in rows],
    }


def dial_help() -> dict[str, str]:
    """What two of the columns are."""
    return {
        t("Moved by noise"): t(
            "Total variation from the same reading without noise: the share of probability that "
            "moves."
        ),
        t("From plain BERT"): t(
            "Total variation between the two distributions of labels: the share of probability "
            "that differs; of a span, the mean over its tokens."
        ),
    }


def at_dial(curve: NoiseCurve, count: int, seed: int) -> dict[str, Point]:
    """Each way of reading with what it gives at the dial."""
    return {
        way: next(point for point in curve.at(way, count) if point.seed == seed or not count)
        for way in curve.ablations
    }


def say_dial(curve: NoiseCurve, count: int, seed: int) -> str:
    """Say which way of reading this noise moves least, in this text; plain text."""
    if not count:
        return t("No noise: every reading has only its own triples.")
    moved = {way: point.moved for way, point in at_dial(curve, count, seed).items()}
    values = _values(moved)
    said = [t("Here this noise moves the prediction by {values}.", values=values)]
    return sentences([*said, _say_least(moved)] if len(moved) > 1 else said)


def _values(moved: Mapping[str, float]) -> str:
    return listed(
        t("{value} ({way})", value=percent(value), way=way_name(way))
        for way, value in moved.items()
    )


def say_injected(curve: NoiseCurve, count: int) -> str:
    """Say how many unrelated triples stand in the text at the dial; plain text."""
    if not count:
        return ""
    injected = min(point.injected for point in curve.points if point.count == count)
    said = tn(
        "1 unrelated triple is in the text.", "{n} unrelated triples are in the text.", injected
    )
    if injected < count * curve.mentions:
        text = N_(
            "{count} of {asked} unrelated triples are in the text: the source has no more that say "
            "something new, or the length limit leaves no room."
        )
        said = t(text, count=injected, asked=count * curve.mentions)
    return sentences([said, t("⚡: another prediction than the same reading makes without noise.")])


def drawn(drawn: Sequence[tuple[str, Sequence[Triple]]]) -> dict[str, list[str]]:
    """What was drawn, as columns: mention, relations and tails."""
    return {
        t("Mention"): [plain(mention) for mention, _ in drawn],
        t("Unrelated triples"): [
            listed(f"{x.relation} {x.tail}" for x in triples) for _, triples in drawn
        ],
    }


def chart(curve: NoiseCurve, measure: str, dial: int, label: str) -> go.Figure:
    """Draw one measure against the number of unrelated triples, a line a way of reading."""
    figure = go.Figure()
    for number, way in enumerate(curve.ablations):
        found = [(str(c), curve.spread(way, c, measure)) for c in curve.counts]
        x = [count for count, spread in found if spread]
        spreads = [spread for _, spread in found if spread]
        colour = COLOURS[number % len(COLOURS)]
        figure.add_scatter(
            x=[*x, *reversed(x)],
            y=[100 * y for y in (*(s.high for s in spreads), *(s.low for s in reversed(spreads)))],
            mode="lines",
            fill="toself",
            fillcolor=faint(colour, 0.14),
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
        )
        figure.add_scatter(
            x=x,
            y=[100 * s.mean for s in spreads],
            name=escape(way_name(way)),
            mode="lines+markers",
            line={"color": colour, "dash": DASHES[number % len(DASHES)]},
            marker={"symbol": SYMBOLS[number % len(SYMBOLS)], "size": 8},
            hovertemplate="%{x}: %{y:.1f} %<extra>%{fullData.name}</extra>",
        )
    if dial in curve.counts:
        figure.add_vline(
            x=curve.counts.index(dial), line={"dash": "dot", "width": 1, "color": "#8a8f94"}
        )
    figure.update_layout(
        height=360,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"orientation": "h", "yanchor": "top", "y": -0.22, "x": 0},
    )
    figure.update_xaxes(
        title=t("unrelated triples per mention"),
        type="category",
        categoryorder="array",
        categoryarray=[str(count) for count in curve.counts],
        range=[-0.3, len(curve.counts) - 0.7],
    )
    axis = t(NOISE_AXIS[measure], label=escape(label))
    figure.update_yaxes(title=axis, range=[0, None], rangemode="tozero")
    return figure


def say_curve(curve: NoiseCurve) -> str:
    """Say what a whole curve shows: who is moved least, and what flips; plain text."""
    most = curve.counts[-1]
    seeds = len({point.seed for point in curve.points if point.count == most})
    moved = {way: curve.spread(way, most, "moved") for way in curve.ablations}
    values = {way: spread.mean for way, spread in moved.items() if spread is not None}
    if len(values) < len(curve.ablations):
        return ""
    text = N_(
        "With {count} unrelated triples per mention, noise moves the prediction by {values} (total "
        "variation, mean of {seeds} draws)."
    )
    said = [t(text, count=most, seeds=seeds, values=_values(values))]
    if len(values) > 1:
        said.append(_say_least(values))
    flips = _flips(curve, most)
    words = N_("The prediction flips in {flips}.")
    said.append(t(words, flips=listed(flips)) if flips else t("No draw flips the prediction."))
    return sentences([*said, t("One text shows how noise works, not how often.")])


def _say_least(moved: Mapping[str, float]) -> str:
    """Say which way of reading noise moves least, ties by as much as can be told apart."""
    least = min(moved.values())
    near = [way for way, value in moved.items() if value - least < ALIKE]
    if len(near) == len(moved):
        return t("All are moved alike here.")
    if near == [K_BERT]:
        return t("K-BERT is moved least here.")
    names = listed(map(way_name, (way for way in near if way != K_BERT)))
    return t(
        "K-BERT and {way} are moved least here."
        if K_BERT in near
        else "Here {way} is moved least, not K-BERT.",
        way=names,
    )


def _flips(curve: NoiseCurve, count: int) -> list[str]:
    """In how many draws of a count each way's prediction is another than without noise."""
    found = []
    for way in curve.ablations:
        quiet = curve.at(way, 0)
        points = curve.at(way, count)
        flips = sum(point.outcome.answer != quiet[0].outcome.answer for point in points)
        if flips:
            text = N_("{count} of {total} draws for {way}")
            found.append(t(text, count=flips, total=len(points), way=way_name(way)))
    return found
