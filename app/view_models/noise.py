"""Knowledge noise: a table at the dial, a chart as noise grows, and what they show, in words."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from app.models import ModelInfo
from app.texts import listed, sentences, t
from app.view_models.html import escape, plain, scrolling
from app.view_models.prediction import percent
from app.view_models.styles import BRANCH, LINK, TRUNK
from app.view_models.targets import answer_name
from kbert_core.explain.noise import K_BERT, NoiseCurve
from kbert_core.knowledge.triple import Triple

COLOURS = (TRUNK, BRANCH, LINK)
DASHES = ("solid", "dash", "dashdot")
SYMBOLS = ("circle", "square", "diamond")
ALIKE = 0.02  # of total variation: less isn't told apart in words
MEASURES = ("variation", "moved", "probability")


def way_name(way: str) -> str:
    """What a way of reading is called."""
    return t("noise.way." + way)


def dial_html(curve: NoiseCurve, count: int, seed: int, info: ModelInfo, label: str) -> str:
    """Draw the readings at one count, with plain BERT's above them.

    Args:
        curve: that has run the count with the seed.
        count, seed: of the dial.
        info: of the model.
        label: whose probability is shown.
    """
    text = curve.sentences[0]
    plain_answer = answer_name(curve.plain.answer, info, text)
    p = percent(curve.plain_probability)
    rows = [_row(t("noise.plain"), plain_answer, p, "–", "–", flips=False)]
    for way in curve.ablations:
        quiet = curve.at(way, 0)[0]
        point = next(p for p in curve.at(way, count) if p.seed == seed or not count)
        rows.append(
            _row(
                way_name(way),
                answer_name(point.outcome.answer, info, text),
                percent(point.probability),
                f"{point.variation:.2f}",
                f"{point.moved:.2f}",
                flips=point.outcome.answer != quiet.outcome.answer,
            )
        )
    heads = [
        (t("noise.reading"), ""),
        (t("noise.answer"), ""),
        (t("noise.probability_of", label=label), ""),
        (t("noise.distance"), t("noise.distance_help")),
        (t("noise.moved"), t("noise.moved_help")),
    ]
    cells = "".join(
        f'<th class="{"kb-num" if n > 1 else ""}" title="{escape(help_)}">{escape(name)}</th>'
        for n, (name, help_) in enumerate(heads)
    )
    return f'<table class="kb-table kb-noise"><tr>{cells}</tr>{"".join(rows)}</table>'


def _row(way: str, answer: str, probability: str, apart: str, moved: str, *, flips: bool) -> str:
    said = escape(answer)
    if flips:
        said = f'<span class="kb-badge">{said}</span>'
    numbers = "".join(
        f'<td class="kb-num">{escape(value)}</td>' for value in (probability, apart, moved)
    )
    return f"<tr><td>{escape(way)}</td><td>{said}</td>{numbers}</tr>"


def say_injected(curve: NoiseCurve, count: int) -> str:
    """Say how many unrelated triples stand in the text at the dial; plain text."""
    if not count:
        return t("noise.none_yet")
    injected = min(point.injected for point in curve.points if point.count == count)
    asked = count * curve.mentions
    if injected < asked:
        said = t("noise.injected_fewer", count=injected, asked=asked)
    else:
        said = t("noise.injected_one") if injected == 1 else t("noise.injected", count=injected)
    return sentences([said, t("noise.ringed")])


def drawn_html(drawn: Sequence[tuple[str, Sequence[Triple]]]) -> str:
    """Draw a table of what was drawn: by mention, relation and tail."""
    rows = "".join(
        f"<tr><td>{escape(plain(mention))}</td><td>"
        f"{escape(listed(f'{x.relation} {x.tail}' for x in triples))}</td></tr>"
        for mention, triples in drawn
    )
    heads = f"<th>{escape(t('noise.mention'))}</th><th>{escape(t('noise.triples'))}</th>"
    return scrolling(f'<table class="kb-table"><tr>{heads}</tr>{rows}</table>')


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
            y=[*(s.high for s in spreads), *(s.low for s in reversed(spreads))],
            mode="lines",
            fill="toself",
            fillcolor=_faint(colour),
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
        )
        figure.add_scatter(
            x=x,
            y=[s.mean for s in spreads],
            name=escape(way_name(way)),
            mode="lines+markers",
            line={"color": colour, "dash": DASHES[number % len(DASHES)]},
            marker={"symbol": SYMBOLS[number % len(SYMBOLS)], "size": 8},
            hovertemplate="%{x}: %{y:.3f}<extra>%{fullData.name}</extra>",
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
        title=t("noise.x"),
        type="category",
        categoryorder="array",
        categoryarray=[str(count) for count in curve.counts],
        range=[-0.3, len(curve.counts) - 0.7],
    )
    axis = t("noise.axis_" + measure, label=escape(label))
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
    said = [
        t(
            "noise.says_moved",
            count=most,
            seeds=seeds,
            values=listed(
                t("noise.value", value=f"{value:.2f}", way=way_name(way))
                for way, value in values.items()
            ),
        )
    ]
    if len(values) > 1:
        said.append(_say_least(values))
    flips = _flips(curve, most)
    said.append(t("noise.says_flips", flips=listed(flips)) if flips else t("noise.says_none"))
    return sentences([*said, t("noise.one_text")])


def _say_least(moved: Mapping[str, float]) -> str:
    """Say which way of reading noise moves least, ties by as much as can be told apart."""
    least = min(moved.values())
    near = [way for way, value in moved.items() if value - least < ALIKE]
    if len(near) == len(moved):
        return t("noise.says_alike")
    if near == [K_BERT]:
        return t("noise.says_kbert")
    names = listed(map(way_name, (way for way in near if way != K_BERT)))
    return t("noise.says_tied" if K_BERT in near else "noise.says_other", way=names)


def _flips(curve: NoiseCurve, count: int) -> list[str]:
    """In how many draws of a count each way's prediction is another than without noise."""
    found = []
    for way in curve.ablations:
        quiet = curve.at(way, 0)
        points = curve.at(way, count)
        flips = sum(point.outcome.answer != quiet[0].outcome.answer for point in points)
        if flips:
            found.append(t("noise.flips", count=flips, total=len(points), way=way_name(way)))
    return found


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.14)"
