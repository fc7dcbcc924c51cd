"""What every triple does: sentences, rows with bars, tables. Pure."""

from collections.abc import Mapping, Sequence

from app.exports import csv_of
from app.models import ModelInfo
from app.texts import listed, sentences, t
from app.view_models.html import escape, scrolling
from app.view_models.targets import answer_name
from kbert_core.explain.attention import (
    FEWEST,
    Attended,
    AttentionEffect,
    Disagreement,
    Kind,
)
from kbert_core.explain.case import Piece
from kbert_core.explain.effects import Effect, Effects, Interactions, Shapley
from kbert_core.explain.result import NO_EFFECT, mention_text, name_of, nats
from kbert_core.explain.targets import NO_SPAN, Target
from kbert_core.knowledge.triple import Triple

SHOWN = 12  # rows before one asks for all
MOST_PAIRS = 20
REST = 0.1  # of the whole effect: more is said


# In a few sentences; plain text


def say_score(target: Target, sentences: Sequence[str], info: ModelInfo) -> str:
    """What is measured."""
    if target.start == NO_SPAN:
        return t("effects.score_class", label=info.label(target.label))
    if info.card.task in ("mask", "qa"):
        return t(f"effects.score_{info.card.task}", label=target.label)
    text = sentences[0][target.start : target.end]
    if info.card.task == "link":
        return t("effects.score_link", text=text, label=target.label)
    return t("effects.score_span", text=text, label=answer_name(target.label, info, text))


def say_now(found: Effects, info: ModelInfo) -> str:
    """What is predicted with knowledge and without, and what all of it does."""
    text = found.sentences[0]
    said = t(
        "effects.now",
        answer=answer_name(found.base.answer, info, text),
        plain=answer_name(found.plain.answer, info, text),
    )
    key = "effects.whole_one" if found.total == 1 else "effects.whole"
    whole = t(key, count=f"{found.total:,}", whole=nats(found.whole))
    return sentences([said, whole])


def say_most(found: Effects, info: ModelInfo) -> str:
    """The triple that does most; that nothing does anything; empty while none is known."""
    if not found.each:
        return ""
    first = found.ranked[0]
    if abs(first.effect) < NO_EFFECT:
        return t("effects.nothing") if len(found.each) == found.total else ""
    key = "effects.most_flips" if first.flips else "effects.most"
    answer = answer_name(first.without.answer, info, found.sentences[0])
    return t(key, triple=name_of(first.piece.triple), effect=nats(first.effect), answer=answer)


def say_rest(found: Effects) -> str:
    """That the single effects don't sum to the whole, where they don't by much."""
    total = sum(effect.effect for effect in found.each)
    if len(found.each) < 2 or len(found.each) < found.total:
        return ""
    if abs(total - found.whole) <= max(REST * abs(found.whole), 10 * NO_EFFECT):
        return ""
    return t("effects.rest", sum=nats(total), whole=nats(found.whole))


def say_attention(found: AttentionEffect) -> tuple[str, ...]:
    """What attention has to do with the effects."""
    if found.each and not found.attended():
        return (t("effects.unattended"),)
    rho = found.rank_correlation()
    if rho is not None:
        count = f"{len(found.each):,}"
        said = [t("effects.rho", rho=f"{rho:+.2f}".replace("-", "−"), count=count)]
    else:
        said = [t("effects.no_rho" if len(found.each) < FEWEST else "effects.rho_equal")]
    parts = found.disagreements()
    said += map(_disagreement, parts)
    if len(found.each) > 1 and found.acts and not parts:
        said.append(t("effects.agree"))
    return tuple(said)


def say_shapley(found: Shapley) -> str:
    """How the values were found, and their sum."""
    values = {"runs": f"{found.runs:,}", "whole": nats(found.whole)}
    if not found.each and found.whole:
        return t("effects.shapley_begun", **values)
    if found.exact:
        return t("effects.shapley_exact", **values)
    return t("effects.shapley_drawn", orders=f"{found.orders:,}", seed=found.seed, **values)


# Rows of effects


def largest(found: Effects) -> float:
    """The size that fills half a bar."""
    sizes = [abs(effect.effect) for effect in found.each]
    sizes += [abs(effect.deleted_effect or 0.0) for effect in found.each]
    return max(sizes, default=0.0)


def heads_html(*, deleted: bool, attention: bool) -> str:
    """The heads over the rows."""
    names = [("triple", ""), ("left_out", "effects.left_out_help")]
    names += [("deleted", "effects.deleted_help")] if deleted else []
    names += [("attention", "effects.attention_help")] if attention else []
    cells = "".join(
        f'<div title="{escape(t(help_)) if help_ else ""}">{escape(t(f"effects.column.{name}"))}'
        "</div>"
        for name, help_ in names
    )
    return f'<div class="kb-eff kb-eff-{len(names)} kb-eff-head">{cells}</div>'


def row_html(
    found: Effects, effect: Effect, info: ModelInfo, attended: Attended | None = None
) -> str:
    """One triple: its name, what leaving it out and deleting it do; escaped.

    Args:
        found: of which it is one.
        effect: of the triple.
        info: of the model.
        attended: the attention on it, where that is known.
    """
    most, text = largest(found), found.sentences[0]
    mentions = listed(
        t("effects.mention", text=mention_text(found.sentences, mention))
        for mention in effect.mentions
    )
    name = (
        f"<b>{escape(name_of(effect.piece.triple))}</b>"
        f'<span class="kb-eff-note">{escape(t("effects.at", mentions=mentions))}</span>'
    )
    left_out = _measured(effect.effect, most, effect.flips, effect.without.answer, info, text)
    cells = [name, _narrow("left_out") + left_out]
    if effect.deleted is not None and effect.deleted_effect is not None:
        notes = "".join(
            f'<span class="kb-eff-note">{escape(note)}</span>' for note in _moved(effect)
        )
        deleted = _measured(
            effect.deleted_effect,
            most,
            bool(effect.deleted_flips),
            effect.deleted.answer,
            info,
            text,
        )
        cells.append(_narrow("deleted") + deleted + notes)
    if attended is not None:
        cells.append(f"{_narrow('attention')}{100 * attended.mass():.2f} %")
    inside = "".join(f"<div>{cell}</div>" for cell in cells)
    return f'<div class="kb-eff kb-eff-{len(cells)}">{inside}</div>'


def bar_html(value: float, most: float, interval: tuple[float, float] | None = None) -> str:
    """A bar from the middle to the right where a value is positive, else to the left."""
    scale = 50 / most if most else 0.0
    side = "kb-raises" if value >= 0 else "kb-lowers"
    left = 50 + min(0.0, scale * value)
    line = ""
    if interval is not None:
        low, high = (min(100.0, max(0.0, 50 + scale * end)) for end in interval)
        line = f'<u style="left:{low:.1f}%;width:{high - low:.1f}%"></u>'
    return (
        f'<span class="kb-eff-bar" aria-hidden="true"><i class="{side}" '
        f'style="left:{left:.1f}%;width:{scale * abs(value):.1f}%"></i>{line}</span>'
    )


def effects_csv(found: Effects) -> bytes:
    """The effects with everything measured of them, in UTF-8 with a byte order mark."""
    rows = []
    for item in found.as_dict()["effects"]:
        rows.append(
            {
                **item["triple"],
                "mentions": "; ".join(mention["text"] for mention in item["mentions"]),
                "effect": item["effect"],
                "flips": item["flips"],
                "answer_without": item["without"]["answer"],
                "deleted_effect": item["deleted_effect"],
                "deleted_flips": item["deleted_flips"],
                "answer_deleted": (item["deleted"] or {}).get("answer"),
                **{
                    moved: "; ".join(name_of(Triple(**triple)) for triple in item[moved])
                    for moved in ("moved_up", "moved_out")
                },
            }
        )
    return csv_of(rows)


# Pairs, Shapley values, attention


def pairs_html(found: Interactions) -> str:
    """The largest interactions, as a table."""
    ranked = found.ranked[:MOST_PAIRS]
    most = max((abs(pair.value) for pair in ranked), default=0.0)
    rows = [
        [
            "<br>".join(escape(name_of(piece.triple)) for piece in pair.pieces),
            bar_html(pair.value, most) + _number(pair.value),
        ]
        for pair in ranked
    ]
    return _table([t("effects.pair"), t("effects.interaction")], rows)


def shapley_html(found: Shapley) -> str:
    """The values with their intervals, as a table."""
    ends = [abs(end) for s in found.each for end in (s.value, s.low or 0.0, s.high or 0.0)]
    most = max(ends, default=0.0)
    rows = []
    for share in found.ranked:
        interval = None
        said = ""
        if not found.exact and share.low is not None and share.high is not None:
            interval = (share.low, share.high)
            said = f"{nats(share.low)} – {nats(share.high)}"
        bar = bar_html(share.value, most, interval) + _number(share.value)
        rows.append([escape(name_of(share.piece.triple)), bar, escape(said)])
    heads = [t("effects.column.triple"), t("effects.value"), t("effects.interval")]
    if found.exact:
        heads, rows = heads[:2], [row[:2] for row in rows]
    return _table(heads, rows)


def attention_html(found: AttentionEffect) -> str:
    """Attention beside effect, the most attended first."""
    ranked = sorted(found.each, key=lambda one: -one.mass())
    most = max((abs(one.effect.effect) for one in ranked), default=0.0)
    rows = [
        [
            escape(name_of(one.piece.triple)),
            f"{100 * one.mass('trunk'):.2f} %",
            f"{100 * one.mass('target'):.2f} %",
            bar_html(one.effect.effect, most) + _number(one.effect.effect),
        ]
        for one in ranked
    ]
    heads = ("effects.column.triple", "effects.by_trunk", "effects.by_target", "effects.size")
    return _table([t(head) for head in heads], rows)


def attended_of(found: AttentionEffect | None) -> Mapping[Piece, Attended]:
    """The attention by piece."""
    return {one.piece: one for one in found.each} if found is not None else {}


def _measured(
    value: float, most: float, flips: bool, answer: str, info: ModelInfo, text: str
) -> str:
    badge = ""
    if flips:
        becomes = t("effects.becomes", answer=answer_name(answer, info, text))
        badge = f' <span class="kb-badge">{escape(becomes)}</span>'
    return bar_html(value, most) + _number(value) + badge


def _narrow(column: str) -> str:
    """A column's head in its cell, shown where a narrow window has no heads."""
    return f'<span class="kb-eff-of">{escape(t(f"effects.column.{column}"))}</span>'


def _number(value: float) -> str:
    return f'<span class="kb-eff-value">{escape(nats(value))}</span>'


def _moved(effect: Effect) -> list[str]:
    said = []
    for key, triples in (("moved_up", effect.moved_up), ("moved_out", effect.moved_out)):
        if triples:
            several = "_several" if len(triples) > 1 else ""
            said.append(t(f"effects.{key}{several}", triples=listed(map(name_of, triples))))
    return said


def _disagreement(item: Disagreement) -> str:
    triple = name_of(item.attended.piece.triple)
    effect = nats(item.attended.effect.effect)
    if item.kind is Kind.IDLE:
        return t(
            "effects.idle",
            triple=triple,
            effect=effect,
            strongest=name_of(item.strongest.piece.triple),
            strongest_effect=nats(item.strongest.effect.effect),
        )
    return t("effects.overlooked", triple=triple, effect=effect, rank=item.rank, count=item.count)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    table = f'<table class="kb-table kb-narrow kb-effs"><tr>{top}</tr>{body}</table>'
    return scrolling(table, "kb-effs-scroll")
