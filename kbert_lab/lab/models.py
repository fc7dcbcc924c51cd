"""Model folders as the app offers them: card, name, language, twin. No streamlit.

A folder with a ``config.json`` is enough to appear. What the app reads from
the card's notes beyond what training writes (``title``, ``language``,
``twin``, ``label_names``) is told in ``models/README.md``.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from kbert_core.checkpoints.adapters import encoder_of
from kbert_core.checkpoints.checkpoint import TOKENIZER_FILES, Card, card_of
from kbert_core.checkpoints.encoders import is_adapter, is_frozen, located
from kbert_core.errors import CheckpointError, KBertError
from kbert_core.kbert.kbert import KBertReader
from kbert_core.kbert.visible import Ablation
from kbert_core.knowbert.knowbert import KnowBertConfig
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.roof.roof_bert import RoofReader
from kbert_core.systems import K_BERT, reader_class
from kbert_core.tasks import TASKS
from kbert_lab.lab.examples import Example
from kbert_lab.lab.session import Reads
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.words import BY_NAME, CHINESE, ENGLISH, LATIN, SEVERAL
from kbert_lab.training.cards import follows_graph

SUFFIXES = ("-kbert", "-knowbert", "-roof", "-bert", "")  # with a graph, and a twin without
TYPES = {N_("BodyPart"), N_("Chemical"), N_("Cure"), N_("Disease"), N_("Examine"), N_("Symptom")}
_MOODS = {"0": N_("negative"), "1": N_("positive")}
_PAIRS = {"0": N_("different"), "1": N_("same meaning")}
LABEL_NAMES = {  # of published data sets whose labels are bare numbers
    **dict.fromkeys(("chnsenticorp", "book_review", "shopping"), _MOODS),
    **dict.fromkeys(("lcqmc", "bq", "atec_finance"), _PAIRS),
}


@dataclass(frozen=True)
class ModelInfo:
    """A checkpoint that the app can offer."""

    path: str  # its folder
    name: str  # shown to people
    card: Card  # what it says of itself
    problem: str | None = None  # why it can't be used; None if it can
    language: str | None = None  # what it reads; None where that isn't known

    @property
    def folder(self) -> str:
        """The last part of its path."""
        return Path(self.path).name

    @property
    def notes(self) -> Mapping[str, Any]:
        """What the card says besides options and task."""
        return self.card.notes or {}

    def note(self, key: str) -> str | None:
        """One of the card's notes, where it is a text that says something."""
        value = self.notes.get(key)
        return value.strip() or None if isinstance(value, str) else None

    @property
    def has_trees(self) -> bool:
        """Whether its system grows sentence trees, as K-BERT does."""
        return issubclass(reader_class(self.card.system), KBertReader)

    @property
    def has_matrix(self) -> bool:
        """Whether positions and visible matrix can be changed: K-BERT's alone."""
        return self.card.system == K_BERT

    @property
    def reads_beside(self) -> bool:
        """Whether its system reads triples beside the text, as Roof-BERT does."""
        return issubclass(reader_class(self.card.system), RoofReader)

    @property
    def task(self) -> str | None:
        """What it was trained for; None: nothing."""
        return self.card.task

    @property
    def options(self) -> InjectionOptions:
        """The options it was trained with, if any."""
        trained = self.card.knowledge or self.card.task is None
        return self.card.reading.options if trained else InjectionOptions()

    @property
    def links(self) -> bool:
        """Whether it has linkers, whose threshold can be set."""
        return self.card.system == KnowBertConfig.system

    @property
    def ablation(self) -> Ablation:
        """As it was trained; nothing is ablated where its system knows no ablations."""
        return getattr(self.card.reading, "ablation", Ablation())

    @property
    def follows(self) -> bool:
        """Whether training taught it to believe the graph, wrong triples too."""
        return follows_graph(self.notes)

    def is_for(self, example: Example) -> bool:
        """Whether it is for an example's task and, as far as is known, its language."""
        wide = [LATIN] if example.language == ENGLISH else []
        known = self.language in (None, example.language, SEVERAL, *wide)
        return known and self.problem is None and self.task == example.task

    def knows(self, text: str) -> bool:
        """Whether most letters of a text are of a script it knows, as far as that is known."""
        chinese, other = letters_of(text)
        if self.language == CHINESE:
            return other <= 4 * chinese
        return self.language not in (ENGLISH, LATIN) or chinese <= other

    def label(self, name: str) -> str:
        """A label for people: with what it means, where that is known."""
        given = self.notes.get("label_names")
        if not isinstance(given, Mapping):
            said = f"{self.note('data')} {self.note('command')}".lower()
            given = next((n for d, n in LABEL_NAMES.items() if _names(said, d)), {})
        meaning = given.get(name)
        if not isinstance(meaning, str) or meaning == name:
            return type_name(name)
        return f"{name} · {t(meaning)}"


@dataclass(frozen=True)
class Splitter:
    """What cuts a text where no model reads it; see ``kbert_lab.lab.session.Reads``."""

    task: str | None = None
    options: InjectionOptions = InjectionOptions()
    ablation: Ablation = Ablation()
    has_trees: bool = True
    has_matrix: bool = True
    links: bool = False

    def knows(self, text: str) -> bool:
        """Whether it can cut a text: any."""
        return True


NOTHING = Splitter()


def letters_of(text: str) -> tuple[int, int]:
    """How many letters of a text are Chinese characters, and how many aren't."""
    chinese = sum(1 for c in text if "\u4e00" <= c <= "\u9fff")
    return chinese, sum(1 for c in text if c.isalpha()) - chinese


def is_chinese(text: str) -> bool:
    """Whether most letters of a text are Chinese characters."""
    chinese, other = letters_of(text)
    return chinese > other


def type_name(label: str) -> str:
    """An entity type, before it what it is called in the visitor's language: "检查 Examine"."""
    said = t(label) if label in TYPES else label
    return label if said == label else f"{said} {label}"


def read_model(path: str) -> ModelInfo:
    """Read a folder's card; what is wrong with it is told, not raised."""
    folder = Path(path).name
    try:
        card = card_of(path)
        if issubclass(reader := reader_class(card.system), KBertReader) and reader.inserts:
            raise CheckpointError(
                f"{path} is for the system '{card.system}', which the Lab can't draw. Read with it "
                "by `kbert predict`, or choose a model of another system."
            )
        if is_adapter(path) or is_frozen(path):
            encoder_of(path)  # it must be there
    except KBertError as error:
        return ModelInfo(path, folder, Card(), str(error))
    info = ModelInfo(path, folder, card)
    return ModelInfo(path, info.note("title") or folder, card, None, _language(info))


def looks_whole(path: str) -> bool:
    """Whether a folder has a tokenizer and weights whose beginning can be read; it isn't loaded."""
    weights = list(Path(path).glob("*.safetensors"))
    tokenizer = any((Path(path) / name).is_file() for name in TOKENIZER_FILES)
    try:
        for file in weights:
            with safe_open(file, "pt"):
                pass
    except (SafetensorError, OSError):
        return False
    return bool(weights) and (tokenizer or is_adapter(path) or is_frozen(path))


def knows(reads: Reads, texts: Sequence[str]) -> bool:
    """Whether a model knows the script of at least half of some texts."""
    return 2 * sum(map(reads.knows, texts)) >= len(texts)


def reader_of(
    models: Iterable[ModelInfo], texts: Sequence[str], task: str | None
) -> ModelInfo | None:
    """The model that reads some texts best: for the task, or for the first; and with a graph."""
    able = (info for info in models if info.problem is None and info.task in TASKS)
    order = (task, *TASKS)
    best = lambda info: (-order.index(info.task), bool(info.card.knowledge))  # noqa: E731
    return max((info for info in able if knows(info, texts)), key=best, default=None)


def twin_of(info: ModelInfo, models: Iterable[ModelInfo]) -> ModelInfo | None:
    """Find a model's twin: the same task, data and encoder, one with knowledge, one without.

    The card's note ``twin`` names a folder beside the model's. Else the names
    tell: ``NAME-kbert`` or ``NAME`` and ``NAME-bert``, where no card says that
    data or encoder differ.

    Args:
        info: whose.
        models: among which it is looked for.
    """
    folder, named = Path(info.path), info.note("twin")
    beside = {Path(own.path): own for own in models if _could_be_twins(info, own)}
    if named is not None:
        return beside.get(folder.parent / named)
    own = next(suffix for suffix in SUFFIXES if folder.name.endswith(suffix))
    names = (folder.name.removesuffix(own) + suffix for suffix in SUFFIXES if suffix != own)
    found = (beside.get(folder.parent / name) for name in names)
    fits = lambda own: own.note("twin") in (None, folder.name) and alike(info, own)  # noqa: E731
    return next((own for own in found if own and fits(own)), None)


def alike(one: ModelInfo, other: ModelInfo) -> bool:
    """Whether two models are of the same data and encoder, as far as is known."""
    notes = ((one.note(key), other.note(key)) for key in ("data", "encoder"))
    return all(not (mine and theirs) or mine == theirs for mine, theirs in notes)


def _names(text: str, data: str) -> bool:
    """Whether a text names a data set, as in chnsenticorp_dedup or pair/lcqmc/test.tsv."""
    return re.search(rf"(?<![a-z]){data}(?![a-z])", text) is not None


def _could_be_twins(one: ModelInfo, other: ModelInfo) -> bool:
    return (
        other.problem is None
        and one.card.task == other.card.task
        and bool(one.card.knowledge) != bool(other.card.knowledge)
    )


def _language(info: ModelInfo) -> str | None:
    """What a model reads: its card's word, else its folder's name, else its vocabulary."""
    said = info.note("language")
    if said:
        return BY_NAME.get(said.lower(), said)
    for part in info.folder.lower().split("-"):
        if part in BY_NAME:
            return BY_NAME[part]
    try:
        home = located(encoder_of(info.path)) if is_adapter(info.path) else info.path
    except CheckpointError:
        return None  # loading it will say what is wrong
    return _script(Path(home))


def _script(folder: Path) -> str | None:
    """The script of most of a vocabulary's tokens."""
    try:
        text = (folder / "tokenizer.json").read_text(encoding="utf-8")
        vocabulary = json.loads(text)["model"]["vocab"]
        tokens = [t if isinstance(t, str) else t[0] for t in vocabulary]
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    chinese = sum(1 for token in tokens if letters_of(token)[0])
    if 5 * chinese > len(tokens):
        return CHINESE
    return SEVERAL if chinese > 3000 else LATIN
