"""Many visitors at once, each with sentences and edits that only they may see."""

import random
import re
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from load.visitor import Visitor
from served import Server

_NAME = re.compile(r"visitor(\d\d)x")
_NAME_IN_BYTES = re.compile(rb"visitor(\d\d)x")
ADD = "FormSubmitter:lab.add-Add"


@dataclass
class Crowd:
    """What the visitors found.

    Attributes:
        waits: seconds of every run of a page, as its visitor waited for it.
        visits: sessions begun.
        problems: errors that a page showed, and what was on a page that shouldn't have been.
        megabytes: (seconds since the start, memory of the server's process).
    """

    waits: list[float] = field(default_factory=list)
    visits: int = 0
    problems: list[str] = field(default_factory=list)
    megabytes: list[tuple[float, float]] = field(default_factory=list)


def crowd(
    server: Server, visitors: int, seconds: float, *, every: float = 1.0, stay: int = 6
) -> Crowd:
    """Let visitors type and edit for a while.

    Args:
        server: the app.
        visitors: at the same time, at most 100.
        seconds: how long; each ends with the round it is in, the first of its visit at least.
        every: seconds between two looks at the server's memory.
        stay: rounds after which a visitor leaves and another comes in their place.
    """
    seen, ended, began = Crowd(), threading.Event(), time.monotonic()
    threads = [
        threading.Thread(target=_visit, args=(server, number, seen, ended, stay), daemon=True)
        for number in range(visitors)
    ]
    for thread in threads:
        thread.start()
    while time.monotonic() - began < seconds and any(thread.is_alive() for thread in threads):
        seen.megabytes.append((time.monotonic() - began, server.megabytes()))
        time.sleep(every)
    ended.set()
    for thread in threads:
        thread.join(240)
    seen.problems += [f"{t.name} did not end" for t in threads if t.is_alive()]
    seen.megabytes.append((time.monotonic() - began, server.megabytes()))
    return seen


def _visit(server: Server, number: int, seen: Crowd, ended: threading.Event, stay: int) -> None:
    dice, name = random.Random(number), f"visitor{number:02d}x"
    try:
        while not ended.is_set():
            seen.visits += 1
            with Visitor(server.stream) as page:
                one = One(page, name, dice, seen)
                one.begin()
                for done in range(dice.randint(2, stay)):
                    if done and ended.is_set():
                        break
                    one.round()
    except Exception:  # it is what the test is about, whatever it is
        seen.problems.append(f"{name}: {traceback.format_exc()}")


class One:
    """A visitor at work: does something, and looks whether just that has happened."""

    def __init__(self, page: Visitor, name: str, dice: random.Random, seen: Crowd) -> None:
        self.page, self.name, self.dice, self.seen = page, name, dice, seen
        self.graph: str | None = None

    def begin(self) -> None:
        self.do(self.page.open)
        self.expect(self.name not in "".join(self.page.tree()), "a new visit begins with old text")
        self.expect("Last edit" not in self.page.text(), "a new visit begins with edits")

    def round(self) -> None:
        """One sentence, an edit, something else, and the edit taken back."""
        page, number = self.page, self.dice.randrange(1000, 10_000)
        page.write("lab.text", f"{self.name}第{number}次行胃镜检查")
        self.do(page.run)
        self.expect_tree(f"{self.name}第{number}次行胃镜")
        before = page.tree()
        tail = f"疾病{self.dice.randrange(1000, 10_000)}"
        page.write("lab.add_head", self.name)
        page.write("lab.add_relation", "类别")
        page.write("lab.add_tail", tail)
        self.do(lambda: page.press(ADD))
        self.expect_tree(f"{self.name}类别{tail}第{number}次")
        self.expect(f"added ({self.name}, 类别, {tail})" in page.text(), "the edit isn't told")
        self.dice.choice((self.look_at_the_graph, self.see_attention, self.pin))(tail)
        self.do(lambda: page.press("lab.undo"))
        self.expect(page.tree() == before, "undo leads elsewhere than where the edit began")

    def look_at_the_graph(self, tail: str) -> None:
        """The Knowledge page has the edit too; back in the Lab all is as it was."""
        tree = self.page.tree()
        self.do(lambda: self.page.open("knowledge"))
        self.expect(any(tail.encode() in data for data in self.page.received), "edit not in table")
        self.do(lambda: self.page.open(""))
        self.expect(self.page.tree() == tree, "the Lab is another one after a look elsewhere")

    def see_attention(self, tail: str) -> None:
        """Attention maps are the largest thing the app keeps."""
        del tail
        for view in ("Attention", "Visible"):
            self.do(lambda view=view: self.page.segment("lab.matrix_view", view))

    def pin(self, tail: str) -> None:
        """From now on this scene is what others are compared with."""
        del tail
        self.do(lambda: self.page.press("lab.pin"))

    def do(self, what: Callable[[], None]) -> None:
        """Do something, and look whether it shows what is another's."""
        began = time.monotonic()
        what()
        self.seen.waits.append(time.monotonic() - began)
        others = {match for data in self.page.received for match in _NAME_IN_BYTES.findall(data)}
        written = set(_NAME.findall("".join(self.page.text().split())))
        others |= {name.encode() for name in written}
        others.discard(self.name[7:9].encode())
        self.expect(not others, f"the page shows what is of visitors {sorted(others)}")
        for problem in self.page.problems:
            self.expect(False, f"the page said: {problem}")
        self.page.problems.clear()

    def expect_tree(self, wanted: str) -> None:
        found = "".join(self.page.tree())
        self.expect(wanted in found, f"{wanted} isn't in the tree: {found}")

    def expect(self, true: bool, said: str) -> None:
        if not true:
            self.seen.problems.append(f"{self.name}: {said}")
