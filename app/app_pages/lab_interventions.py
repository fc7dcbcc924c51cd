"""The Lab's interventions: block and open cells of the visible matrix, and see what it does."""

from functools import cache, partial
from typing import Any

import numpy as np
import streamlit as st

from app import services, state
from app.app_pages.parts import action, segments, select
from app.components import Message
from app.state import KEEP
from kbert_core import Intervention, KBertTrace, KnowledgeGraph
from kbert_core.kbert.flat_tree import PlacedBranch
from kbert_core.kbert.interventions import PRESETS, Action, Tokens
from kbert_lab.lab.commands import Intervene, RemoveIntervention
from kbert_lab.lab.scene import MOST_INTERVENTIONS, Scene
from kbert_lab.lab.selection import identity_of
from kbert_lab.lab.session import Standing
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import interventions, prediction
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.interventions import After, with_one_more
from kbert_lab.lab.views.prediction import before_and_now
from kbert_lab.lab.views.why import share
from kbert_lab.lab.words import IV_TEXTS

IV_PRESET = {
    "everything": N_("Everything visible: the paper's ablation"),
    "whole_link": N_("Every branch visible to the whole trunk, and back"),
    "no_link": N_("No link between trunk and branches"),
    "branches_alone": N_("Branches see no trunk: only themselves"),
    "cls_blind": N_("[CLS] sees no branch"),
}
ICONS: dict[Action, str] = {"block": "block", "open": "visibility"}

ss = st.session_state


def interventions_panel(now: Scene, window: int) -> None:
    """What can be blocked and opened at the chosen cell, what is, and what that does."""
    trace = services.laid(now, state.session().graph_of(now))
    layers = services.layer_count(now) or len(trace.visible_layers or (trace.visible,))
    after = cache(lambda them: interventions.of_trace(trace, them, layers))
    with st.container(border=True, key="lab_interventions", gap="small"):
        title()
        cell_controls(trace, layers, window, after)
        if now.interventions:
            made = after(now.interventions)
            for number, one in enumerate(made.interventions):
                cells = made.changed[number]
                count = t("1 cell") if cells == 1 else t("{count} cells", count=cells)
                said = interventions.describe(one, trace.rows[window])
                removable(number, one, said, count if cells else t("changes nothing here"))
            what_it_does(now)


def title() -> None:
    """Title, presets, clear."""
    with st.container(
        horizontal=True, vertical_alignment="center", gap="xsmall", key="lab_head_interventions"
    ):
        st.markdown(
            f"**{t('Block or open')}**",
            help=t(
                "Change which tokens may attend to which, and see what happens to the prediction: "
                "it shows directly which link does the work. A token always sees itself. "
                "Interventions belong to this text."
            ),
            width="stretch",
        )
        st.menu_button(
            t("Presets"),
            list(PRESETS),
            key="lab.iv_preset",
            format_func=lambda name: t(IV_PRESET[name]),
            on_click=lambda: state.act(Intervene(PRESETS[ss["lab.iv_preset"]])),
            icon=":material/tune:",
        )
        if state.session().standing:
            label = t(IV_TEXTS["clear"])
            action(label, "lab.iv_clear", state.act, Intervene(()), icon="clear_all")


def cell_controls(trace: KBertTrace, layers: int, window: int, after: After) -> None:
    """What the chosen cell is part of, and the buttons that block and open it."""
    row, cell = trace.rows[window], state.selection().cell
    kinds = interventions.scopes(row, cell) if cell else {}
    if not kinds:
        if cell is not None and cell[0] == cell[1] and cell[0] in row.identities:
            st.caption(t("A token always sees itself; choose another cell."))
        return
    named = lambda kind: interventions.scope_name(kinds[kind], row)  # noqa: E731
    scope = kinds[select(t("What"), list(kinds), "lab.iv_scope", named, width="stretch")]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        number = lambda n: t("layer {layer}", layer=n) if n else t("all")  # noqa: E731
        how: dict[str, Any] = {"disabled": layers == 1, "width": 110}
        layer = select(t("Layers"), range(layers + 1), "lab.iv_layer", number, **how)
        seer, seen = (interventions.tokens_name(tokens, row) for tokens in scope)
        said = N_("One direction: only that {seer} sees {seen}, not the other way round.")
        how = {"hidden": False, "default": "both", "help": markdown(t(said, seer=seer, seen=seen))}
        names = ["both", "one_way"]
        direction = segments(t("Direction"), names, "lab.iv_direction", IV_TEXTS, **how)
        for what, icon in ICONS.items():
            only = (layer,) if layer else ()
            new = Intervention(what, *scope, direction != "one_way", only)
            then, refused = tried(new, trace.interventions, after)
            help = markdown(refused or interventions.describe(new, row))
            how = {"icon": icon, "disabled": bool(refused), "help": help}
            action(t(IV_TEXTS[what]), f"lab.iv_{what}", state.act, Intervene(then), **how)


def tried(new: Intervention, now: Standing, after: After) -> tuple[Standing, str]:
    """What stands with one more, and why it can't be made; empty: it can."""
    then = with_one_more(now, new, after)
    if len(then) > MOST_INTERVENTIONS:
        said = N_("{most} interventions are the most at once. Remove one first.")
        return then, t(said, most=MOST_INTERVENTIONS)
    pairs = zip(after(then).layers, after(now).layers, strict=True)
    idle = all(one.equal(other) for one, other in pairs)
    return then, t("It would change nothing: it is already so.") if idle else ""


def switch_link(trace: KBertTrace, window: int, sent: Message) -> None:
    """Block a cell of the matrix clicked twice in both directions, or open it."""
    cell = identity_of(sent["looks"]), identity_of(sent["at"])
    state.act(Intervene(interventions.turned(trace, window, cell)))


def removable(number: int, one: Intervention, said: str, note: str = "") -> None:
    """One line of the list."""
    with st.container(
        horizontal=True,
        wrap=False,
        vertical_alignment="center",
        gap="small",
        key=f"lab_iv_line_{number}",
    ):
        note = f" · :gray[{markdown(note)}]" if note else ""
        st.markdown(f"{number + 1}\\. {markdown(said)}{note}", width="stretch")
        remove = partial(state.act, RemoveIntervention(one))
        how: dict[str, Any] = {"icon": "close", "type": "tertiary"}
        how["help"] = markdown(t("Remove: {what}", what=said))
        action(t("Remove"), f"lab.iv_remove_{number}", remove, **how)


def what_it_does(now: Scene) -> None:
    """Say where the prediction is the one without interventions, or that of no graph."""
    found, untouched, plain = (
        services.trace(scene, state.session().graph_of(scene)).prediction
        for scene in (now, now.without_interventions(), now.without_knowledge())
    )
    if found is None:
        return
    info = services.model_info(now.model)
    written = [
        prediction.drawn(now.sentences, before_and_now(info, own))
        for own in (found, untouched, plain)
    ]
    if written[0] == written[1]:
        st.info(t("The prediction is the same without interventions, to the last shown digit."))
    elif written[0] == written[2]:
        said = N_(
            "Equal to the model without any graph: nothing of a branch reaches what the prediction "
            "is read from. The link that is cut does all the work here."
        )
        st.info(t(said), icon=":material/equal:")


def refused_list(now: Scene) -> None:
    """Where a scene can't be run: the interventions that it may be because of, to be removed."""
    if not now.interventions:
        return
    with st.container(border=True, key="lab_interventions"):
        st.markdown(t("These interventions could not be made:"))
        for number, one in enumerate(now.interventions):
            removable(number, one, interventions.describe(one, None))
        action(t("Clear all"), "lab.iv_clear", state.act, Intervene(()), icon="clear_all")


def head_patch(
    now: Scene,
    graph: KnowledgeGraph,
    window: int,
    chosen: tuple[int, int],
    branch: PlacedBranch,
    shares: np.ndarray,
) -> None:
    """Keep one attention head from looking at a branch, and say what that does.

    Args:
        chosen: layer and head, from 1; nothing is offered of a mean.
        shares: (L, A), how much of its attention the mention pays to the branch in each head.
    """
    trace = services.trace(now, graph)
    if trace.prediction is None or not all(chosen):
        return
    label, key = t("Block this head's link to the branch"), "lab.head_blocked"
    if not st.toggle(label, key=key, **KEEP):
        return
    mention = trace.tree.nodes[branch.node].mention
    seers = Tokens("mention", mention.sentence, mention.start).among(trace.rows[window])
    seen = range(branch.start, branch.end)
    cut = services.without_link(now, graph, window, *chosen, seers, seen)
    info, at = services.model_info(now.model), (mention.start, mention.end)
    turned = prediction.turning(info, now.sentences[-1], cut, trace.prediction, sure=True)
    points = abs(100 * prediction.points(info, trace.prediction, cut, at))
    layer, head = chosen
    said = t(
        "{share} of the mention's attention in this head; without this link, in this head alone, "
        "the prediction changes by {points} points.",
        share=share(float(shares[layer - 1, head - 1])),
        points=f"{points:.1f}",
    )
    st.markdown(markdown(f"{said} {turned}"))
