"""What every triple and every token does: sentences, a table, a chart. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from kbert_core.explain.attributions import Attributions
from kbert_core.explain.effects import Effect, Effects
from kbert_core.explain.result import NO_EFFECT, mention_text, name_of
from kbert_core.explain.targets import NO_SPAN, Target
from kbert_lab.explain.attention import FEWEST, AttentionEffect, Disagreement, Kind
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.texts import N_, listed, sentences, t
from kbert_lab.lab.views.html import escape, plain
from kbert_lab.lab.views.prediction import percent
from kbert_lab.lab.views.styles import BRANCH, TRUNK
from kbert_lab.lab.views.targets import answer_name

MOVED = {  # one triple, several
    "moved_up": (N_("{triples} moves up"), N_("{triples} move up")),
    "moved_out": (N_("{triples} goes as well"), N_("{triples} go as well")),
}

EFFECTS_CHANCE = {
    "classify": N_("Shown: the probability of “{label}”."),
    "ner": N_(
        "Shown: the probability that “{text}” is {label} (the geometric mean over its tokens)."
    ),
    "mask": N_("Shown: the probability of “{label}” at the mask."),
    "qa": N_("Shown: the probability of the answer “{label}”."),
    "link": N_("Shown: the weight of {label} among the candidates of “{text}”."),
}

REST = 0.1  # of the whole effect: more is said
LEFT = 0.05  # of the whole difference that shares may lack before it is said
Chance = Callable[[float], float]  # a score's probability


@dataclass(frozen=True)
class View:
    """What was found of one prediction, as it is shown: scores as probabilities."""

    found: Effects
    info: ModelInfo
    chance: Chance
    attention: AttentionEffect | None = None
    shares: Attributions | None = None

    def points(self, effect: Effect, *, deleted: bool = False) -> float | None:
        """What a triple adds to the probability, in percentage points."""
        less = effect.deleted if deleted else effect.without
        return (
            None
            if less is None
            else 100 * (self.chance(effect.base.score) - self.chance(less.score))
        )

    @property
    def ranked(self) -> list[Effect]:
        """The effects, the largest first."""
        return sorted(self.found.each, key=lambda effect: -abs(self.points(effect) or 0.0))

    @property
    def whole(self) -> float:
        """What all triples add together, in points."""
        return 100 * (self.chance(self.found.base.score) - self.chance(self.found.plain.score))

    def answer(self, answer: str) -> str:
        """An answer as people read it."""
        return answer_name(answer, self.info, self.found.sentences[0])

    def change(self, before: float, after: float) -> str:
        """Two scores as probabilities: 94.9 % → 6.0 %."""
        return f"{percent(self.chance(before))} → {percent(self.chance(after))}"

    # In a few sentences; plain text

    def say(self) -> str:
        """With knowledge and without; the triple that does most; that the sum isn't the whole."""
        return sentences(
            part for part in (self.say_now(), self.say_most(), self.say_rest()) if part
        )

    def say_now(self) -> str:
        """What is predicted with knowledge and without, and what all of it does."""
        base, less = self.found.base, self.found.plain
        text = N_("With knowledge: {answer}. Without any: {plain}.")
        said = t(text, answer=self.answer(base.answer), plain=self.answer(less.answer))
        change = self.change(less.score, base.score)
        key = (
            N_("The one triple there is: {change} ({points}).")
            if self.found.total == 1
            else N_("All {count} triples together: {change} ({points}).")
        )
        whole = t(key, count=f"{self.found.total:,}", change=change, points=points(self.whole))
        return sentences([said, whole])

    def say_most(self) -> str:
        """The triple that does most; that nothing does anything; empty while none is known."""
        if not self.found.each:
            return ""
        first = self.ranked[0]
        if abs(first.effect) < NO_EFFECT:
            every = len(self.found.each) == self.found.total
            return t("No triple changes this prediction.") if every else ""
        return t(
            "{triple} does most: without it {change} ({points}), and the prediction becomes "
            "{answer}."
            if first.flips
            else "{triple} does most: without it {change} ({points}); the prediction stays "
            "{answer}.",
            triple=name_of(first.piece.triple),
            change=self.change(first.base.score, first.without.score),
            points=points(-(self.points(first) or 0.0)),
            answer=self.answer(first.without.answer),
        )

    def say_rest(self) -> str:
        """That the single effects don't sum to the whole, where they don't by much."""
        total = sum(self.points(effect) or 0.0 for effect in self.found.each)
        if len(self.found.each) < 2 or len(self.found.each) < self.found.total:
            return ""
        if abs(total - self.whole) <= max(REST * abs(self.whole), 0.1):
            return ""
        return t(
            "The single effects sum to {sum}, not to {whole}: triples need or replace each other.",
            sum=points(total),
            whole=points(self.whole),
        )

    def say_attention(self) -> tuple[str, ...]:
        """What attention has to do with the effects."""
        found = self.attention
        if found is None:
            return ()
        if found.each and not found.attended():
            text = N_(
                "The trunk gives no triple any attention, so there is nothing to compare the "
                "effects with."
            )
            return (t(text),)
        rho, count = found.rank_correlation(), f"{len(found.each):,}"
        text = N_(
            "Rank correlation of attention and size of the effect: {rho}, over {count} triples."
        )
        if len(found.each) < FEWEST:
            text = N_("A rank correlation needs three triples.")
        elif rho is None:
            text = N_(
                "There is no rank correlation: all triples get the same attention, or all have the "
                "same effect."
            )
        said = [t(text, rho=f"{rho or 0:+.2f}".replace("-", "−"), count=count)]
        parts = found.disagreements()
        said += map(self._disagreement, parts)
        if len(found.each) > 1 and found.acts and not parts:
            said.append(
                t(
                    "Here attention and effect agree: the triple with the most attention has an "
                    "effect, and the one with the largest effect gets attention."
                )
            )
        return tuple(said)

    def _disagreement(self, item: Disagreement) -> str:
        values = {
            "triple": name_of(item.attended.piece.triple),
            "effect": points(self.points(item.attended.effect)),
            "rank": item.rank,
            "count": item.count,
            "strongest": name_of(item.strongest.piece.triple),
            "strongest_effect": points(self.points(item.strongest.effect)),
        }
        return t(
            "Attention is not explanation: {triple} does most ({effect}), and is only number "
            "{rank} of {count} by attention."
            if item.kind is Kind.OVERLOOKED
            else "Attention is not explanation: {triple} gets the most, and adds {effect} only; "
            "{strongest} adds {strongest_effect}.",
            **values,
        )

    def say_shares(self) -> str:
        """From where to where the shares lead, and what they lack; plain text."""
        found = self.shares
        if found is None:
            return ""
        change = f"{percent(found.masked)} → {percent(found.score)}"
        said = [
            t(
                "Integrated gradients, from a text of [MASK]s to this one: {change}. A token's "
                "share is measured along that way; the effects above compare two readings.",
                change=change,
            )
        ]
        if abs(found.remainder) > LEFT * abs(found.score - found.masked):
            said.append(
                t("The shares leave {points} unexplained.", points=points(100 * found.remainder))
            )
        return sentences(said)

    # The table: a column a list, in the order of ``ranked``

    def table(self) -> dict[str, list[Any]]:
        """Every triple with what it adds, exactly and by its tokens, and what deleting it does."""
        ranked = self.ranked
        columns: dict[str, list[Any]] = {}
        columns[t("triple")] = [self.found.name(effect) for effect in ranked]
        columns[t("at")] = [self.mentions(effect) for effect in ranked]
        columns[t("left out")] = [self.change(e.base.score, e.without.score) for e in ranked]
        columns[t("adds")] = [self.points(effect) for effect in ranked]
        if self.shares is not None:
            columns[t("its tokens add")] = [100 * self.shares.of(effect.piece) for effect in ranked]
        columns[t("becomes")] = [self.answer(e.without.answer) if e.flips else "" for e in ranked]
        if any(effect.deleted is not None for effect in ranked):
            columns[t("adds, if deleted")] = [
                self.points(effect, deleted=True) for effect in ranked
            ]
            columns[t("then")] = [self.after_deleting(effect) for effect in ranked]
        if self.attention is not None:
            mass = {one.piece: 100 * one.mass() for one in self.attention.each}
            columns[t("attention")] = [mass.get(effect.piece) for effect in ranked]
        return columns

    def mentions(self, effect: Effect) -> str:
        """Where a triple hangs."""
        names = (mention_text(self.found.sentences, mention) for mention in effect.mentions)
        return listed(t("“{text}”", text=name) for name in names)

    def after_deleting(self, effect: Effect) -> str:
        """What the graph's next triples do, and what then is predicted."""
        said = []
        if effect.deleted is not None and effect.deleted_flips:
            said.append(t("becomes {answer}", answer=self.answer(effect.deleted.answer)))
        for moved, one_or_more in MOVED.items():
            if triples := getattr(effect, moved):
                key = one_or_more[len(triples) > 1]
                said.append(t(key, triples=listed(map(name_of, triples))))
        return " · ".join(said)


def say_chance(target: Target, sentences: Sequence[str], info: ModelInfo) -> str:
    """Whose probability is shown; plain text."""
    label, text = target.label, sentences[0][target.start : target.end]
    said = EFFECTS_CHANCE.get(info.card.task or "", EFFECTS_CHANCE["ner"])
    if target.start == NO_SPAN:
        said, label = EFFECTS_CHANCE["classify"], info.label(label)
    elif info.card.task not in ("mask", "qa", "link"):
        label = answer_name(label, info, text)
    return t(said, text=text, label=label)


def points(value: float | None) -> str:
    """Percentage points with their sign; plain text."""
    rounded = f"{value or 0.0:+.1f}".replace("-", "−")
    return t("{value} points", value="0.0" if rounded[1:] == "0.0" else rounded)


def tokens_chart(found: Attributions) -> go.Figure:
    """A bar a token, in reading order; each triple's tokens after the text's."""
    groups: dict[Any, list[int]] = {}  # by the triple at its mention; None: of the text
    for at, own in enumerate(found.each):
        groups.setdefault(own.piece, []).append(at)
    x: list[int] = []
    figure = go.Figure()
    for number, (piece, places) in enumerate(groups.items()):
        first = len(x) + number  # a gap before each group
        here = list(range(first, first + len(places)))
        x += here
        values = [100 * found.each[at].share for at in places]
        words = [plain(found.each[at].text) for at in places]
        total = points(sum(values))
        title = escape(name_of(piece.triple) if piece else t("text"))
        figure.add_bar(
            x=here,
            y=values,
            marker_color=TRUNK if not number else BRANCH,
            customdata=[escape(word) for word in words],
            hovertemplate="%{customdata}: %{y:+.1f}<extra>" + title + "</extra>",
            showlegend=False,
        )
        figure.add_annotation(
            x=(here[0] + here[-1]) / 2,
            y=1.02,
            yref="paper",
            yanchor="bottom",
            showarrow=False,
            text=f"{title.replace(' · ', '<br>') if number else title}<br><b>{escape(total)}</b>",
            font={"size": 12},
        )
    figure.update_layout(
        height=330,
        bargap=0.15,
        margin={"l": 8, "r": 8, "t": 76, "b": 8},
        yaxis={"title": t("percentage points"), "zeroline": True},
        xaxis={
            "tickvals": x,
            "ticktext": [escape(plain(own.text)) for own in found.each],
            "tickangle": 0 if max(len(own.text) for own in found.each) < 3 else -45,
            "showgrid": False,
        },
    )
    return figure
