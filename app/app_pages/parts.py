"""What several pages draw alike: buttons, choices, files to take away, tables, charts, a notice."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views.html import markdown

if TYPE_CHECKING:  # not imported to run: the router draws with this before PyTorch is loaded
    from kbert_core import KnowledgeGraph

T = TypeVar("T", bound=Hashable)
ss = st.session_state
ROW, HEAD = 33, 37  # pixels of a table's row, and of its head


def action(label: str, key: str, do: Callable[..., Any], *args: Any, **how: Any) -> None:
    """A button that does something.

    Args:
        label, key: as Streamlit's.
        do, args: what it does.
        how: more of ``st.button``; an ``icon`` by its bare name.
    """
    if icon := how.pop("icon", None):
        how["icon"] = f":material/{icon}:"
    st.button(label, key=key, on_click=do, args=args, **how)


def bind(
    widget: Callable[..., Any], key: str, value: Any, change: Callable[[Any], object], **how: Any
) -> None:
    """A widget that shows a value of the session and asks for another; it keeps none of its own.

    Args:
        widget: of Streamlit, with its label and options.
        key: as Streamlit's.
        value: of the session.
        change: what is done with another value.
        how: more of the widget.
    """
    if key not in ss or ss[key] != value:
        ss[key] = value
    widget(key=key, on_change=lambda: change(ss[key]), **how)


def segments(
    label: str,
    options: Iterable[T],
    key: str,
    names: Callable[[Any], str] | Mapping[Any, str] | None = None,
    *,
    hidden: bool = True,
    **how: Any,
) -> T:
    """Options side by side, one of which is chosen.

    Args:
        label, key: as Streamlit's; the label is for screen readers where it is ``hidden``.
        options: to choose from.
        names: of the options, to be translated; or what names one.
        how: more of ``st.segmented_control``.
    """
    called = names if callable(names) else lambda own: t(names[own]) if names else str(own)
    how |= {"required": True, "label_visibility": "collapsed" if hidden else "visible"}
    chosen: Any = st.segmented_control(label, list(options), key=key, format_func=called, **how)
    return chosen


def told_apart(names: Mapping[T, str]) -> dict[T, str]:
    """Number those that are called the same: a page answers with a name, and of two with the last.

    Args:
        names: of a chooser's options.
    """
    counts: Counter[str] = Counter()
    apart = {}
    for option, name in names.items():
        counts[name] += 1
        apart[option] = name if counts[name] == 1 else f"{name} ({counts[name]})"
    return apart


def select(
    label: str,
    options: Sequence[T],
    key: str,
    name: Callable[[T], str],
    first: T | None = None,
    **how: Any,
) -> T:
    """A box that begins anew where what was chosen is no option any more.

    Args:
        label, options, key: as Streamlit's.
        name: of an option.
        first: what is chosen at first, if it is an option.
        how: more of ``st.selectbox``.
    """
    if ss.get(key) not in options:
        ss[key] = first if first in options else options[0]
    names = told_apart({option: name(option) for option in options})
    called = lambda option: names.get(option, str(option))  # noqa: E731
    return st.selectbox(label, options, key=key, format_func=called, **{"width": 320, **how})


def window_name(count: int, number: int) -> str:
    """What one of so many windows of a long text is called; the number is from 0."""
    return t("{number} of {count}", number=number + 1, count=count)


def undo_button(page: str, take_back: Callable[[], Any], what: str | None) -> None:
    """Undo.

    Args:
        page: whose name the key begins with.
        take_back: what the button does.
        what: would be taken back; None: there is nothing.
    """
    said = markdown(t("Undo: {what}", what=what) if what else t("Nothing to undo."))
    how = {"icon": "undo", "disabled": what is None, "shortcut": "Mod+Shift+U"}
    action(t("Undo"), f"{page}.undo", take_back, help=said, **how)


def redo_button(page: str, make_again: Callable[[], Any], what: str | None) -> None:
    """Redo; the arguments as for :func:`undo_button`."""
    said = markdown(t("Redo: {what}", what=what)) if what else None
    how = {"icon": "redo", "disabled": what is None, "shortcut": "Mod+Shift+Y"}
    action(t("Redo"), f"{page}.redo", make_again, help=said, **how)


def download(
    key: str,
    label: str,
    data: Callable[[], bytes],
    file_name: str,
    mime: str,
    *,
    help: str | None = None,
    disabled: bool = False,
) -> None:
    """A button for a file that is made when it is pressed."""
    st.download_button(
        label,
        data,
        file_name=file_name,
        mime=mime,
        key=key,
        icon=":material/download:",
        on_click="ignore",
        help=help,
        disabled=disabled,
    )


def graph_download(
    graph: "KnowledgeGraph",
    label: str,
    *,
    key: str,
    file_name: str,
    help: str | None = None,
    switched_off: bool = False,
) -> None:
    """A button for the graph as its file's name says; a large one is for the command line.

    Args:
        graph, label, key, file_name, help: of :func:`download`.
        switched_off: whether the file has what is switched off as well.
    """
    from app import export

    large, ending = len(graph) > export.MOST_TRIPLES, PurePath(file_name).suffix
    if large:
        said = N_("A graph of over {most} triples is better exported on the command line:")
        help = f"{t(said, most=f'{export.MOST_TRIPLES:,}')} `kbert kg export GRAPH.kg FILE.spo.gz`"
    data = lambda: export.graph_as(graph, ending, switched_off=switched_off)  # noqa: E731
    mime = "application/octet-stream"
    download(key, t(label), data, file_name, mime, help=help, disabled=large)


def table(
    columns: Mapping[str, Sequence[Any]],
    key: str = "",
    *,
    choose: Callable[[int | None], object] | None = None,
    most: int | None = None,
    config: Mapping[str, Any] | None = None,
) -> None:
    """A table of columns by their heads.

    Args:
        columns: head → cells.
        key: of the table.
        choose: what is done with the number of the row that is chosen; None: no row.
        most: pixels it takes at the most.
        config: of some columns, see ``st.dataframe``.
    """

    def chosen() -> None:
        rows = ss[key]["selection"]["rows"] if key in ss else []
        if choose is not None:
            choose(rows[0] if rows else None)

    rows = len(next(iter(columns.values()), ()))
    st.dataframe(
        columns,
        key=key or None,
        hide_index=True,
        width="stretch",
        height=min(most, HEAD + ROW * rows) if most else "auto",
        on_select=chosen if choose else "ignore",
        selection_mode="single-row",
        column_config=config,
    )


def the_first(shown: int, count: int) -> None:
    """Say that a table has only the first of more rows, where that is so."""
    if count > shown:
        st.caption(t("The first {shown} of {count}.", shown=f"{shown:,}", count=f"{count:,}"))


def chart(figure: Any, key: str) -> None:
    """A figure of Plotly, without its bar of buttons."""
    st.plotly_chart(figure, key=key, config={"displayModeBar": False})


def told_once() -> None:
    """Say what could not be had here, see ``state.tell``."""
    for said in ss.pop("told", ()):
        st.error(markdown(said), icon=":material/link_off:")


def refused() -> None:
    """Say once why what was asked for wasn't done."""
    if problem := ss.pop("lab.problem", None):
        st.error(markdown(problem))


def no_triple(graph: "KnowledgeGraph") -> None:
    """Say that there is nothing to explain."""
    said = t(
        "This text contains no triple of {graph}, so there is no knowledge to explain. Choose "
        "another text or graph in the Lab, or add a triple there.",
        graph=graph.name,
    )
    st.info(markdown(said), icon=":material/info:")
