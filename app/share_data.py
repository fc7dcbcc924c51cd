"""What is shared of a scene, as plain data and back; whatever comes back is checked.

Data that comes back was written by anybody: every field has its type, its
bounds and a name, and what isn't known is refused, so that nothing is left
out in silence.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, get_args

from app.intervention_log import MOST
from app.scene import GraphRef, Scene
from app.texts import t
from app.view_models.diff import Identity
from kbert_core import Ablation, InjectionOptions, Intervention, KBertError, Triple
from kbert_core.knowledge.edit import Action, Edit
from kbert_core.knowledge.selection import Strategy
from kbert_core.knowledge.surface_forms import RULES, NameRules

VERSION = 1
LONGEST_NAME = 1000  # of a graph, model, task or relation, in characters
MOST_LAYERS = 1000  # that an intervention may name; a scene without a model has as many
MOST_OF_A_MENTION = 1000  # triples; what a model may be trained with
COMPARISONS = (  # as ``state`` and ``comparing`` name them
    *("auto", "bert", "original", "pinned", "untouched"),
    *("systems", "parts", "models", "graphs", "matrix", "free"),
)
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character: no text that can be shown
_ANY = 1_000_000  # of numbers that only have to be small
_REQUIRED = object()
V = TypeVar("V")


class ShareError(KBertError):
    """A link or a session file can't be made or read."""


@dataclass(frozen=True)
class Shared:
    """What a link or a session file restores.

    Attributes:
        scene: what is read; its model is a folder's name, never a path, and
            where it runs is left to the machine that opens it.
        task: the chosen task.
        steps: how many edits were made together in each step; empty: each
            for itself.
        compare: what the page compares with, one of ``COMPARISONS``.
        pinned: the scene that is pinned, if one is.
        cell: the chosen cell of the matrix.
    """

    scene: Scene
    task: str
    steps: tuple[int, ...] = ()
    compare: str = "auto"
    pinned: Scene | None = None
    cell: tuple[Identity, Identity] | None = None


# Out


def data_of(shared: Shared) -> dict[str, Any]:
    """Return plain data, ready for JSON."""
    shared = portable(shared)
    data: dict[str, Any] = {"kbert": VERSION, "task": shared.task, **_scene_data(shared.scene)}
    if shared.steps:
        data["steps"] = list(shared.steps)
    if shared.compare != "auto":
        data["compare"] = shared.compare
    if shared.pinned is not None:
        data["pinned"] = _scene_data(shared.pinned)
    if shared.cell is not None:
        data["cell"] = [_identity_data(name) for name in shared.cell]
    return data


def portable(shared: Shared) -> Shared:
    """Return what comes back elsewhere: without folders, and run where it is opened."""
    scenes = [_portable(s) if s is not None else None for s in (shared.scene, shared.pinned)]
    assert scenes[0] is not None
    return replace(shared, scene=scenes[0], pinned=scenes[1])


def folder_name(path: str) -> str:
    """Return the last part of a path of any system: never where it lies."""
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]


def triple_data(triple: Triple) -> list[str]:
    """Return a triple as a list of three texts."""
    return [triple.head, triple.relation, triple.tail]


def _portable(scene: Scene) -> Scene:
    options, scorer = scene.options, scene.options.scorer
    if scorer is not None:
        options = replace(options, scorer=folder_name(scorer))
    return replace(scene, model=folder_name(scene.model), options=options, device="auto")


def _scene_data(scene: Scene) -> dict[str, Any]:
    data: dict[str, Any] = {
        "sentences": list(scene.sentences),
        "model": scene.model,
        "graph": {"name": scene.graph.name, "fingerprint": scene.graph.fingerprint},
        "edits": [_edit_data(edit) for edit in scene.edits],
        "options": scene.options.as_dict(),
        "ablation": {"positions": scene.ablation.positions, "visible": scene.ablation.visible},
    }
    if scene.interventions:
        data["interventions"] = [one.as_dict() for one in scene.interventions]
    return data


def _edit_data(edit: Edit) -> list[Any]:
    data: list[Any] = [edit.action, triple_data(edit.triple)]
    if edit.new is not None:
        data.append(triple_data(edit.new))
    if edit.index is not None:
        data.append(edit.index)
    return data


def _identity_data(identity: Identity) -> list[Any]:
    return [triple_data(part) if isinstance(part, Triple) else part for part in identity]


# Back


def shared_of(data: object, *, most_edits: int) -> Shared:
    """Return what plain data says.

    Args:
        data: as JSON gave it.
        most_edits: that are taken, of the scene and of the pinned one each.

    Raises:
        ShareError: a part is missing, unknown, of another type or out of bounds.
    """
    fields = Fields(data, "kbert")
    version = fields.take("kbert")
    if type(version) is int and version > VERSION:
        raise ShareError(t("share.newer"))
    if version != VERSION or type(version) is not int:
        raise refused("kbert")
    scene = _scene_of(fields, most_edits)
    steps = tuple(fields.numbers("steps", 1, _ANY))
    if steps and sum(steps) != len(scene.edits):
        raise refused("steps")
    pinned = None
    if fields.has("pinned"):
        of_pinned = Fields(fields.take("pinned"), "pinned")
        pinned = _scene_of(of_pinned, most_edits)
        of_pinned.end()
    compare = fields.one_of("compare", COMPARISONS, "auto")
    shared = Shared(
        scene,
        fields.text("task", empty=False),
        steps,
        "models" if fields.flag("twin", False) else compare,  # as links of old say it
        pinned,
        _cell_of(fields),
    )
    if shared.compare == "pinned" and pinned is None:
        raise refused("pinned")
    fields.end()
    return shared


class Fields:
    """An object of JSON that is read field by field.

    Args:
        data: anything.
        part: what it is called where it is refused.

    Raises:
        ShareError: it is no object.
    """

    def __init__(self, data: object, part: str) -> None:
        if not isinstance(data, Mapping):
            raise refused(part)
        self._left = dict(data)

    def has(self, name: str) -> bool:
        """Say whether a field is there."""
        return name in self._left

    def take(self, name: str, default: object = _REQUIRED) -> Any:
        """Return a field's value, whatever it is."""
        if name not in self._left and default is not _REQUIRED:
            return default
        if name not in self._left:
            raise refused(name)
        return self._left.pop(name)

    def end(self) -> None:
        """Refuse whatever hasn't been read."""
        for name in self._left:
            raise refused(name)

    def text(self, name: str, *, empty: bool = True, most: int = LONGEST_NAME) -> str:
        """Return a text without half characters."""
        return text_of(self.take(name), name, empty=empty, most=most)

    def flag(self, name: str, default: object = _REQUIRED) -> bool:
        """Return true or false."""
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise refused(name)
        return value

    def one_of(self, name: str, known: Iterable[str], default: object = _REQUIRED) -> Any:
        """Return one of some known texts."""
        value = self.take(name, default)
        if not isinstance(value, str) or value not in known:
            raise refused(name)
        return value

    def number(self, name: str, low: int, high: int) -> int:
        """Return a whole number between two others."""
        return number_of(self.take(name), name, low, high)

    def numbers(self, name: str, low: int, high: int) -> list[int]:
        """Return a list of them; empty where there is none."""
        return self.each(name, lambda item: number_of(item, name, low, high), ())

    def texts(self, name: str, default: object = _REQUIRED) -> tuple[str, ...]:
        """Return a list of names."""
        return tuple(self.each(name, lambda item: text_of(item, name), default))

    def each(
        self, name: str, read: Callable[[object], V], default: object = _REQUIRED, most: int = _ANY
    ) -> list[V]:
        """Return a list of which every item is read."""
        return [read(item) for item in list_of(self.take(name, default), name, most)]


def refused(part: str) -> ShareError:
    """Return the error that names the part that isn't as it should be."""
    named = part[:40].encode("utf-8", "replace").decode()  # an unknown field's name is anybody's
    return ShareError(t("share.part", part=named))


def text_of(value: object, part: str, *, empty: bool = True, most: int = LONGEST_NAME) -> str:
    """Check a text."""
    if not isinstance(value, str) or len(value) > most or _SURROGATE.search(value):
        raise refused(part)
    if not empty and not value.strip():
        raise refused(part)
    return value


def number_of(value: object, part: str, low: int, high: int) -> int:
    """Check a whole number."""
    if type(value) is not int or not low <= value <= high:
        raise refused(part)
    return value


def list_of(value: object, part: str, most: int = _ANY) -> list[Any]:
    """Check a list, of which the items are still to be checked."""
    if not isinstance(value, list | tuple) or len(value) > most:
        raise refused(part)
    return list(value)


def triple_of(value: object, part: str) -> Triple:
    """Check a triple."""
    fields = list_of(value, part, 3)
    if len(fields) != 3:
        raise refused(part)
    triple = Triple(*(text_of(field, part, most=_ANY) for field in fields))
    if triple.problem():
        raise refused(part)
    return triple


def _folder_of(fields: Fields, name: str) -> str:
    folder = fields.text(name, empty=False)
    if folder != folder_name(folder) or folder in (".", ".."):
        raise refused(name)
    return folder


def _scene_of(fields: Fields, most_edits: int) -> Scene:
    sentences = fields.each("sentences", lambda x: text_of(x, "sentences", most=_ANY), most=2)
    if not sentences:
        raise refused("sentences")
    graph = Fields(fields.take("graph"), "graph")
    ref = GraphRef(graph.text("fingerprint", empty=False), graph.text("name"))
    graph.end()
    ablation = Fields(fields.take("ablation"), "ablation")
    read = Ablation(
        ablation.one_of("positions", ("soft", "hard")), ablation.one_of("visible", ("tree", "all"))
    )
    ablation.end()
    return Scene(
        tuple(sentences),
        _folder_of(fields, "model"),
        ref,
        tuple(fields.each("edits", _edit_of, most=most_edits)),
        _options_of(Fields(fields.take("options"), "options")),
        read,
        interventions=tuple(fields.each("interventions", _intervention_of, (), most=MOST)),
    )


def _edit_of(value: object) -> Edit:
    action, *rest = list_of(value, "edits", 4) or [None]
    if action not in get_args(Action) or not rest:
        raise refused("edits")
    triple = triple_of(rest.pop(0), "edits")
    new = triple_of(rest.pop(0), "edits") if action == "replace" and rest else None
    index = number_of(rest.pop(0), "edits", 0, _ANY) if action == "add" and rest else None
    if rest or (action == "replace" and new is None):
        raise refused("edits")
    return Edit(action, triple, new, index)


def _options_of(fields: Fields) -> InjectionOptions:
    relations = fields.take("relations")
    threshold = fields.take("threshold", None)
    if threshold is not None and (
        type(threshold) not in (int, float) or not -_ANY <= threshold <= _ANY
    ):  # compared, not converted: a whole number of JSON may be larger than any float
        raise refused("threshold")
    strategy = fields.take("strategy", Strategy.FIRST)
    if strategy == "learned":  # of a link from before it went
        raise ShareError(t("share.learned"))
    if strategy not in list(Strategy):
        raise refused("strategy")
    names = fields.texts("names")
    if not {*names} <= {*RULES}:
        raise refused("names")
    try:
        options = InjectionOptions(
            fields.number("max_triples", 0, MOST_OF_A_MENTION),
            fields.flag("tail_only"),
            None
            if relations is None
            else tuple(text_of(r, "relations") for r in list_of(relations, "relations")),
            not_relations=fields.texts("not_relations", ()),
            first_relations=fields.texts("first_relations", ()),
            strategy=Strategy(strategy),
            threshold=threshold,
            one_sense=fields.flag("one_sense", False),
            scorer=_folder_of(fields, "scorer") if fields.has("scorer") else None,
            names=NameRules.of(names),
        )
    except ShareError:
        raise
    except KBertError as error:  # options that don't go together
        raise refused("options") from error
    fields.end()
    return options


def _intervention_of(value: object) -> Intervention:
    """Check an intervention; what it would not say itself in the same words is refused."""
    part = "interventions"
    if not isinstance(value, Mapping):
        raise refused(part)
    try:
        one = Intervention.from_dict(value)
    except KBertError as error:
        raise refused(part) from error
    if one.as_dict() != value or any(layer > MOST_LAYERS for layer in one.layers):
        raise refused(part)
    for tokens in (one.seer, one.seen):
        number_of(tokens.sentence, part, 0, _ANY)
        number_of(tokens.start, part, 0, _ANY)
        if tokens.triple is not None:
            triple_of(triple_data(tokens.triple), part)
        if tokens.identity:
            _identity_of(_identity_data(tokens.identity), part)
    return one


def _cell_of(fields: Fields) -> tuple[Identity, Identity] | None:
    if not fields.has("cell"):
        return None
    cell = fields.each("cell", _identity_of, most=2)
    if len(cell) != 2:
        raise refused("cell")
    return cell[0], cell[1]


def _identity_of(value: object, part: str = "cell") -> Identity:
    """Check the name of a token; see ``FlatTree.identities``."""
    kind, *rest = list_of(value, part, 5) or [None]
    places = {"special": 1, "trunk": 2, "branch": 4}
    if not isinstance(kind, str) or len(rest) != places.get(kind):
        raise refused(part)
    if kind != "branch":
        return (kind, *(number_of(place, part, 0, _ANY) for place in rest))
    sentence, start, triple, offset = rest
    first = (number_of(sentence, part, 0, _ANY), number_of(start, part, 0, _ANY))
    return (kind, *first, triple_of(triple, part), number_of(offset, part, 0, _ANY))
