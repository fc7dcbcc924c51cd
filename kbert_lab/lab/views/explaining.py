"""Explain in words, tables and charts: effects, what flips a prediction, paths. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.express as px
import plotly.graph_objects as go

from kbert_core.explain.attributions import Attributions
from kbert_core.explain.effects import Effect, Effects
from kbert_core.explain.result import NO_EFFECT, mention_text, name_of
from kbert_core.kbert.flat_tree import FlatTree
from kbert_lab.explain.attention import AttentionEffect, Kind
from kbert_lab.explain.counterfactuals import MOST_READ, Counterfactual, Counterfactuals
from kbert_lab.explain.influence import Influence
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.texts import N_, listed, sentences, t, tn
from kbert_lab.lab.views.html import BRANCH, CHANGED, ENTITY_TINTS, TRUNK, escape, faint, plain
from kbert_lab.lab.views.prediction import percent
from kbert_lab.lab.views.targets import answer_name

COLUMNS = {  # of the table of effects, and what each says
    N_("triple"): N_("Head · relation · tail."),
    N_("at"): N_("The mentions it hangs from."),
    N_("left out"): N_(
        "The probability with the triple and without it, all else the same; of several tokens the "
        "geometric mean."
    ),
    N_("adds"): N_(
        "Percentage points: the probability as it is minus the one without the triple. Exact."
    ),
    N_("its tokens add"): N_(
        "Percentage points: the sum of its tokens' shares, by integrated gradients."
    ),
    N_("becomes"): N_("The prediction without the triple, where it is another."),
    N_("adds, if deleted"): N_(
        "Percentage points, where the triple is deleted from the graph and the next one of its "
        "name moves up."
    ),
    N_("then"): N_("What deleting it brings in (+) or takes away (−), and what is predicted then."),
    N_("attention"): N_(
        "Attention of the whole trunk on the triple's branch, mean of all layers and heads."
    ),
}
SEARCH_DO = {
    "remove": N_("delete {triple}"),
    "replace": N_("replace {triple} with {new}"),
    "add": N_("add {triple}"),
}
SEARCH_ENDED = {
    "all": N_("Everything in question was tried, in {runs} runs."),
    "budget": N_("The budget of {runs} runs is used up."),
    "enough": N_("Stopped after {runs} runs, as enough were found."),
}
SHADES = (TRUNK, BRANCH, CHANGED, *ENTITY_TINTS)
ROW = 24  # pixels of a token
Chance = Callable[[float], float]  # a score's probability


def points(value: float) -> str:
    """Percentage points with their sign; plain text."""
    rounded = f"{value:+.1f}".replace("-", "−")
    return t("{value} points", value="0.0" if rounded[1:] == "0.0" else rounded)


# Effects


@dataclass(frozen=True)
class View:
    """What was found of one prediction, as it is shown: scores as probabilities."""

    found: Effects
    info: ModelInfo
    chance: Chance
    attention: AttentionEffect | None = None
    shares: Attributions | None = None

    def points(self, effect: Effect) -> float:
        """What a triple adds to the probability, in percentage points."""
        return 100 * (self.chance(effect.base.score) - self.chance(effect.without.score))

    @property
    def ranked(self) -> list[Effect]:
        """The effects, the largest first."""
        return sorted(self.found.each, key=lambda effect: -abs(self.points(effect)))

    def answer(self, answer: str) -> str:
        """An answer as people read it."""
        return answer_name(answer, self.info, self.found.sentences[0])

    def change(self, before: float, after: float) -> str:
        """Two scores as probabilities: 94.9 % → 6.0 %."""
        return f"{percent(self.chance(before))} → {percent(self.chance(after))}"

    def say(self) -> str:
        """With knowledge and without; the triple that does most; plain text."""
        base, less = self.found.base, self.found.plain
        whole = t(
            "With knowledge: {answer}. Without any: {plain}. All triples together ({count}): "
            "{change} ({points}).",
            answer=self.answer(base.answer),
            plain=self.answer(less.answer),
            count=f"{self.found.total:,}",
            change=self.change(less.score, base.score),
            points=points(100 * (self.chance(base.score) - self.chance(less.score))),
        )
        if not self.found.each:
            return whole
        first = self.ranked[0]
        if abs(first.effect) < NO_EFFECT:
            every = len(self.found.each) == self.found.total
            return sentences([whole, t("No triple changes this prediction.")]) if every else whole
        most = t(
            "{triple} does most: without it {change} ({points}), and the prediction is {answer}.",
            triple=name_of(first.fact.triple),
            change=self.change(first.base.score, first.without.score),
            points=points(-self.points(first)),
            answer=self.answer(first.without.answer),
        )
        return sentences([whole, most])

    def say_attention(self) -> tuple[str, ...]:
        """How far attention and effect agree, and where they part; plain text."""
        assert self.attention is not None
        said, rho = [], self.attention.rank_correlation()
        if rho is not None:
            text = N_("Rank correlation of attention and size of the effect: {rho} ({count}).")
            rounded = f"{rho:+.2f}".replace("-", "−")
            said.append(t(text, rho=rounded, count=len(self.found.each)))
        for item in self.attention.disagreements():
            text = N_("{triple} gets the most attention, and adds {effect} only.")
            if item.kind is Kind.OVERLOOKED:
                text = N_("{triple} does most ({effect}), and is only number {rank} by attention.")
            values = {"triple": name_of(item.attended.fact.triple), "rank": item.rank}
            said.append(t(text, effect=points(self.points(item.attended.effect)), **values))
        return tuple(said)

    def say_shares(self) -> str:
        """From where to where the shares lead; plain text."""
        assert self.shares is not None
        return t(
            "Integrated gradients, from a text of [MASK]s to this one: {change}. A token's share "
            "is measured along that way; the effects above compare two readings.",
            change=f"{percent(self.shares.masked)} → {percent(self.shares.score)}",
        )

    def table(self) -> dict[str, list[Any]]:
        """A column a list, in the order of ``ranked``; those of which anything is known."""
        rows = [self._row(effect) for effect in self.ranked]
        columns = {name: [row[name] for row in rows] for name in COLUMNS}
        known = {
            name: own for name, own in columns.items() if any(x not in (None, "") for x in own)
        }
        return {t(name): cells for name, cells in known.items()}

    def _row(self, effect: Effect) -> dict[str, Any]:
        base, deleted = effect.base.score, effect.deleted
        mentions = (mention_text(self.found.sentences, own) for own in effect.mentions)
        masses = {own.fact: own.mass() for own in self.attention.each} if self.attention else {}
        then = [self.answer(deleted.answer)] if deleted and effect.deleted_flips else []
        then += [f"+ {name_of(triple)}" for triple in effect.moved_up]
        then += [f"− {name_of(triple)}" for triple in effect.moved_out]
        return {
            "triple": self.found.name(effect),
            "at": listed(t("“{text}”", text=name) for name in mentions),
            "left out": self.change(base, effect.without.score),
            "adds": self.points(effect),
            "its tokens add": 100 * self.shares.of(effect.fact) if self.shares else None,
            "becomes": self.answer(effect.without.answer) if effect.flips else "",
            "adds, if deleted": deleted and 100 * (self.chance(base) - self.chance(deleted.score)),
            "then": " · ".join(then),
            "attention": 100 * masses[effect.fact] if effect.fact in masses else None,
        }


def tokens_chart(found: Attributions) -> go.Figure:
    """A bar a token, in reading order; the tokens of each triple in a colour of their own."""
    names = {
        own.fact: escape(name_of(own.fact.triple) if own.fact else t("text")) for own in found.each
    }
    legend = {fact: f"{name} {points(100 * found.of(fact))}" for fact, name in names.items()}
    words = [escape(plain(own.text)) for own in found.each]
    figure = px.bar(
        x=list(range(len(words))),
        y=[100 * own.share for own in found.each],
        color=[legend[own.fact] for own in found.each],
        color_discrete_sequence=SHADES,
        hover_name=words,
        labels={"x": "", "y": t("percentage points"), "color": ""},
        height=330,
    )
    figure.update_traces(hovertemplate="%{hovertext}: %{y:+.1f}")
    figure.update_xaxes(tickvals=list(range(len(words))), ticktext=words, showgrid=False)
    figure.update_layout(legend={"orientation": "h", "y": 1.18}, margin={"t": 40, "b": 8})
    return figure


# What flips it


def say_edits(one: Counterfactual) -> str:
    """A set of edits; plain text."""
    edits = (t(SEARCH_DO[own.action], triple=own.triple, new=own.new or "") for own in one.edits)
    return listed(edits)


def say_outcome(
    one: Counterfactual, found: Counterfactuals, info: ModelInfo, chance: Chance
) -> str:
    """What becomes of the prediction; plain text."""
    answer = answer_name(one.after.answer, info, found.sentences[0])
    changed = one.after.answer != one.before.answer  # if not to what was wished for
    said = t("becomes {answer}" if changed else "stays {answer}", answer=answer)
    before, after = (percent(chance(own.score)) for own in (one.before, one.after))
    return f"{said} · {answer_name(found.target.label, info, '')} {before} → {after}"


def say_found(found: Counterfactuals) -> str:
    """How many sets of edits flip the prediction; plain text."""
    if found.found:
        count = len(found.found)
        return tn(
            "1 set of changes flips it.", "{n} sets of changes flip it, the smallest first.", count
        )
    if found.ended:
        return t("Nothing found flips it. The closest:" if found.nearest else "Nothing flips it.")
    return ""


def say_end(found: Counterfactuals) -> str:
    """Why the search ended, and what it left out; plain text."""
    if not found.ended:
        return ""
    said = [t(SEARCH_ENDED[found.ended], runs=found.runs)]
    if not found.complete:
        words = N_("The graph is large: candidates come from its first {most} triples.")
        said.append(t(words, most=f"{MOST_READ:,}"))
    return sentences(said)


# Paths: tokens are rows, so that the tree can be read down the page, and layers are columns.


def change_chart(found: Influence, fact: int, *, dark: bool = False) -> go.Figure:
    """What leaving one triple out changes, in per cent of each token's state, by layer."""
    changes, reached = found.measured[fact].T.nan_to_num().numpy(), found.reached[fact].T.numpy()
    own = np.zeros(changes.shape, bool)
    own[list(found.own(fact))] = True
    shown = np.where(reached.astype(bool) & ~own, 100 * changes, np.nan)
    figure = px.imshow(
        shown,
        x=list(range(shown.shape[1])),
        color_continuous_scale=[faint(TRUNK, 0.06), TRUNK],
        zmin=0,
        text_auto=".0f",
        aspect="auto",
        height=ROW * len(found.flat) + 70,
        labels={"x": t("after layer"), "y": "", "color": "%"},
    )
    figure.update_traces(xgap=1, ygap=1, hovertemplate="%{z:.1f} %<extra></extra>")
    if dark:
        figure.update_traces(textfont_color="#FFFFFF")
    gone = np.where(own, 1.0, np.nan)
    colour = [[0, faint(BRANCH, 0.55)], [1, faint(BRANCH, 0.55)]]
    figure.add_heatmap(z=gone, colorscale=colour, showscale=False, hoverinfo="skip", xgap=1, ygap=1)
    figure.update_layout(coloraxis_showscale=False, margin={"l": 8, "r": 8, "t": 50, "b": 8})
    names = {"tickvals": list(range(len(found.flat))), "ticktext": [*_beside(found.flat)]}
    figure.update_yaxes(showgrid=False, zeroline=False, **names)
    figure.update_xaxes(showgrid=False, zeroline=False, side="top", dtick=1)
    return figure


def say_reach(found: Influence, fact: int) -> str:
    """By which layer a triple's information can be everywhere, and where it changes most."""
    own = list(found.own(fact))
    reached = found.reached[fact].clone()
    reached[:, own] = False
    counts = reached.sum(dim=1).tolist()
    last = found.measured[fact, -1].nan_to_num(-1.0)
    at = int(last.argmax())
    return t(
        "The information of {triple} can reach {count} of {others} other tokens, the last of them "
        "in layer {layer}. It changes “{text}” most: by {value} after the last layer.",
        triple=found.facts[fact].triple,
        count=counts[-1],
        others=len(found.flat) - len(own),
        layer=counts.index(counts[-1]),
        text=plain(found.flat.tokens[at]),
        value=percent(float(last[at])),
    )


def _beside(flat: FlatTree) -> Iterable[str]:
    """Tokens down the page: mentions bold, branches set in."""
    for text, branch, anchor in zip(flat.tokens, flat.branch_ids, flat.anchor_ids, strict=True):
        name = escape(plain(text))
        yield f"<i>– {name}</i>" if branch else f"<b>{name}</b>" if anchor else name
