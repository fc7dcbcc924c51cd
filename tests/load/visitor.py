"""A visitor without a browser: speaks with the app as its page does, over a websocket.

Much lighter than a browser, so that many fit beside the server on two cores.
Messages are Streamlit's own, see its ``proto`` folder.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.sync.client import connect

PATIENCE = 180  # seconds for one answer
PARTS = "FINISHED_FRAGMENT_RUN_SUCCESSFULLY"  # the rest of the page stays
_MARKUP = re.compile(r"<[^>]*>")


class Visitor:
    """One page that is open.

    Attributes:
        received: the bytes of every message of the last run.
        problems: what the app showed as an error or exception in any run.
    """

    def __init__(
        self,
        stream: str,
        query: str = "example=gastroscopy",
        headers: Mapping[str, str] | None = None,
        **how: Any,
    ) -> None:
        """Connect.

        Args:
            stream: of the server.
            query: of the page's address, what stands after "?".
            headers: further ones of the request.
            how: to connect, such as ``ssl``; see ``websockets.sync.client.connect``.
        """
        self._socket = connect(
            stream,
            subprotocols=["streamlit"],
            max_size=None,
            open_timeout=PATIENCE,
            ping_interval=None,  # a busy machine may be slow to answer; PATIENCE says how slow
            additional_headers=headers,
            **how,
        )
        self._query = query
        self._page = ""
        self._values: dict[str, WidgetState] = {}
        self._shown: dict[tuple[int, ...], Any] = {}
        self._part: dict[tuple[int, ...], str] = {}  # of the page, by what stands there
        self._folds: set[str] = set()  # expanders, by their ids
        self.pages: dict[str, str] = {}
        self.received: list[bytes] = []
        self.problems: list[str] = []

    def __enter__(self) -> "Visitor":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    # What is seen

    def elements(self, kind: str) -> list[Any]:
        """The elements of a kind on the page, such as "markdown"."""
        return [
            getattr(element, kind)
            for _, element in sorted(self._shown.items())
            if element.WhichOneof("type") == kind
        ]

    def html(self) -> str:
        """Every piece of HTML on the page, but that in components."""
        return "\n".join(element.body for element in self.elements("html"))

    def text(self) -> str:
        """What can be read on the page, without its tables and canvases."""
        bodies = [element.body for kind in ("markdown", "alert") for element in self.elements(kind)]
        return "\n".join([*bodies, _MARKUP.sub(" ", self.html())]).replace("\\", "")

    def tree(self) -> list[str]:
        """The tokens of the sentence tree."""
        drawn = self.elements("bidi_component")
        data = next(e.json for e in drawn if e.component_name.endswith("kbert_tree"))
        return re.findall(r'class="kb-text">([^<]*)<', json.loads(data)[0]["html"])

    def has(self, key: str) -> bool:
        """Whether there is a widget with a key."""
        return self._found(key) is not None

    # What is done

    def open(self, page: str = "") -> None:
        """Go to a page by its name in the address; "" is the first."""
        if page or self._page:
            self._page = self.pages[page]
            self._values.clear()
        self.run()

    def write(self, key: str, text: str) -> None:
        """Type into a text field, without running yet."""
        self._state(key).string_value = text

    def choose(self, key: str, option: str) -> None:
        """Choose an option by its words, and run."""
        self._state(key).string_value = option
        self.run()

    def segment(self, key: str, option: str) -> None:
        """Choose a segment by its words, and run."""
        self._state(key).string_array_value.data[:] = [option]
        self.run()

    def press(self, key: str) -> None:
        """Press a button, and run."""
        state = self._state(key)
        state.trigger_value = True
        try:
            self.run()
        finally:
            self._values.pop(state.id)

    def unfold(self, key: str) -> None:
        """Open an expander, and run."""
        name = next(name for name in self._folds if name.split("-", 2)[2] == key)
        self._values[name] = WidgetState(id=name, bool_value=True)
        self.run()

    def run(self) -> None:
        """Have the page run, and read until it is done."""
        asked = BackMsg()
        asked.rerun_script.query_string = self._query
        asked.rerun_script.page_script_hash = self._page
        asked.rerun_script.widget_states.widgets.extend(self._values.values())
        self._socket.send(asked.SerializeToString())
        self.received = []
        before, self._shown = self._shown, {}
        while (ended := self._read()) is None:
            pass
        if ended == PARTS:  # of the parts drawn anew what isn't sent again is gone
            drawn = {self._part[path] for path in self._shown}
            left = {path: own for path, own in before.items() if self._part[path] not in drawn}
            self._shown = {**left, **self._shown}

    def _read(self) -> str | None:
        """Take a message in; say how the run has ended, if it has."""
        data = self._socket.recv(timeout=PATIENCE)
        self.received.append(data)
        message = ForwardMsg()
        message.ParseFromString(data)
        kind = message.WhichOneof("type")
        if kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            element = message.delta.new_element
            path = tuple(message.metadata.delta_path)
            self._shown[path], self._part[path] = element, message.delta.fragment_id
            self._notice(element)
        elif kind == "delta" and message.delta.add_block.expandable.id:
            self._folds.add(message.delta.add_block.expandable.id)
        elif kind == "navigation":
            self.pages = {
                "" if page.is_default else page.url_pathname: page.page_script_hash
                for page in message.navigation.app_pages
            }
            self._page = self._page or message.navigation.page_script_hash
        elif kind == "script_finished":
            ended = ForwardMsg.ScriptFinishedStatus.Name(message.script_finished)
            if ended == "FINISHED_EARLY_FOR_RERUN":
                self._shown = {}
                return None
            if ended not in ("FINISHED_SUCCESSFULLY", PARTS):
                self.problems.append(ended)
            return ended
        elif kind == "session_event" and message.session_event.WhichOneof("type") != (
            "script_changed_on_disk"
        ):
            self.problems.append(str(message.session_event))
        return None

    def _notice(self, element: Any) -> None:
        kind = element.WhichOneof("type")
        if kind == "exception":
            self.problems.append(element.exception.message)
        elif kind == "alert" and element.alert.format == element.alert.ERROR:
            self.problems.append(element.alert.body)
        elif kind in ("text_input", "text_area") and getattr(element, kind).set_value:
            widget = getattr(element, kind)  # the app has put another value there
            self._values[widget.id] = WidgetState(id=widget.id, string_value=widget.value)
        elif kind == "selectbox" and element.selectbox.set_value:
            widget = element.selectbox
            value = widget.raw_value if widget.HasField("raw_value") else None
            self._values[widget.id] = WidgetState(id=widget.id, string_value=value)

    def _found(self, key: str) -> Any:
        for element in self._shown.values():
            widget = getattr(element, element.WhichOneof("type"))
            name = getattr(widget, "id", "")
            if name.startswith("$$ID-") and name.split("-", 2)[2] == key:
                return widget
        return None

    def _widget(self, key: str) -> Any:
        found = self._found(key)
        assert found is not None, f"there is no {key} on the page: {self.text()[:2000]}"
        return found

    def _state(self, key: str) -> WidgetState:
        name = self._widget(key).id
        return self._values.setdefault(name, WidgetState(id=name))
