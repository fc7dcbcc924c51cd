"""Offer: the models there are, and which of them is for what: a task, an example, a text, a graph.

One rule matches a model to a text, wherever that comes from: typed, pasted, an example, the names
of a graph that was opened, the command line. A model that knows the script of it stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from kbert_core.kbert.visible import Ablation
from kbert_core.systems import K_BERT, SYSTEMS
from kbert_core.tasks import TASKS
from kbert_lab.lab.examples import EXAMPLES, FIRST, MINILM, Example
from kbert_lab.lab.models import (
    NOTHING,
    ModelInfo,
    alike,
    is_chinese,
    knows,
    reader_of,
    twin_of,
)
from kbert_lab.lab.scene import CHARACTERS, NO_MODEL, WORDS, Scene
from kbert_lab.lab.session import NO_TASK, Reads, Replaced, Session
from kbert_lab.lab.texts import language, t
from kbert_lab.lab.views.model_facts import option_name
from kbert_lab.lab.words import READERS, SPOKEN

PLAIN_TEXT = "plain-text"  # the system that writes triples after the text
MOST_LOOKED_AT = 200  # triples of a graph, to see which script it is in


@dataclass(frozen=True)
class Offer:
    """What a visitor may choose from."""

    models: tuple[ModelInfo, ...]  # in the order of the chooser, those that can't be used last
    english: ModelInfo | None = None  # the English encoder that comes as a package

    # What there is

    def tasks(self) -> tuple[str, ...]:
        """The tasks there is a model for, and none; the first is the default."""
        known = {info.task for info in self.models if info.problem is None}
        return (*(task for task in TASKS if task in known), NO_TASK)

    def names(self, task: str) -> dict[str, str]:
        """The models of a task: path or reader → what to call it."""
        if task != NO_TASK:
            return {i.path: option_name(i) for i in self.models if i.task == task}
        english = (
            {self.english.path: t("all-MiniLM-L6-v2 (English encoder)")} if self.english else {}
        )
        return {
            **english,
            **{i.path: option_name(i) for i in self.models if i.task not in TASKS},
            **{name: t(text) for name, text in READERS.items()},
        }

    def reads(self, model: str) -> Reads:
        """What a session has to know of a model that is offered."""
        return self._of(model) or NOTHING

    def _of(self, model: str) -> ModelInfo | None:
        every = (*self.models, *([self.english] if self.english else ()))
        return next((info for info in every if info.path == model), None)

    def examples(self) -> dict[str, Example]:
        """The examples that can run, by name, the visitor's language first."""
        own = SPOKEN[language()]
        able = (example for example in EXAMPLES if self._able[example.key])
        return {e.name: e for e in sorted(able, key=lambda example: example.language != own)}

    def first(self, named: str = "") -> Example:
        """The example whose key is named, if it can run, else one in the visitor's language."""
        offered = {own.key: own for own in self.examples().values()}
        wished = (named, FIRST[language()], *FIRST.values(), *offered)
        return next(offered[key] for key in wished if key in offered)

    @cached_property
    def _able(self) -> dict[str, dict[str, str]]:
        """What can read each example, by the example's key: path → folder."""
        english = {self.english.path: MINILM} if self.english else {}
        without = {MINILM: english, WORDS: {WORDS: WORDS}}
        return {
            example.key: without[example.model]
            if example.task is None
            else {info.path: info.folder for info in self.models if info.is_for(example)}
            for example in EXAMPLES
        }

    # What reads the same text

    def twin_scene(self, now: Scene) -> Scene | None:
        """The scene as the model's twin reads it; None: it has none.

        A twin reads as it was trained: with the same graph and its edits, or without any.
        """
        info = self._of(now.model)
        found = twin_of(info, self.models) if info else None
        if found is None:
            return None
        scene = _read_by(now, found)
        return scene if found.card.knowledge else scene.without_knowledge()

    def systems(self, now: Scene) -> dict[str, Scene]:
        """The scene as each system reads it, by name, as far as models of one training are here.

        Triples as plain text are read by the model of K-BERT, which wasn't trained so.
        """
        own = self._of(now.model)
        if own is None:
            return {}
        scenes = {own.card.system: now} if own.card.knowledge else {}
        for info in self.models:
            if _trained_alike(own, info):
                scenes.setdefault(info.card.system, _read_by(now, info))
        ordered = {system: scenes[system] for system in SYSTEMS if system in scenes}
        ordered.pop(PLAIN_TEXT, None)
        if K_BERT in ordered:
            plain = replace(ordered[K_BERT].without_interventions(), ablation=Ablation())
            ordered[PLAIN_TEXT] = replace(plain, system=PLAIN_TEXT)
        return ordered

    # What is chosen: each returns another session

    def with_model(self, session: Session, model: str, task: str | None = None) -> Session:
        """Choose a model.

        An example that isn't for its task and language gives way to one that is; what the visitor
        wrote stays.
        """
        new = session.with_model(model, self.reads(model), task or session.task)
        shown = next((e for e in EXAMPLES if e.name == session.example), None)
        if shown is None or new.task == NO_TASK:
            return new
        fitting = [e for e in self.examples().values() if model in self._able[e.key]]
        return self.with_example(new, fitting[0]) if fitting and shown not in fitting else new

    def with_task(self, session: Session, task: str) -> Session:
        """Choose a task, and its first model where the chosen one is for another."""
        names = self.names(task)
        model = session.model if session.model in names else next(iter(names))
        return self.with_model(session, model, task)

    def with_example(self, session: Session, example: Example) -> Session:
        """Put an example on the page, and a model that reads it where the chosen one doesn't."""
        able = self._able[example.key]
        own = [path for path, folder in able.items() if folder == example.model]
        model = session.model if session.model in able else next(iter((*own, *able)))
        read = session.with_model(model, self.reads(model), example.task or NO_TASK)
        chosen = replace(read, graph=example.graph, replaced=None)
        return chosen.with_text(*example.sentences, example=example.name)

    def mended(self, session: Session) -> Session:
        """Choose what there is in place of a task or a model that there isn't any more."""
        task = session.task if session.task in self.tasks() else self.tasks()[0]
        names = self.names(task)
        if task == session.task and session.model in names:
            return session
        model = session.model if session.model in names else next(iter(names))
        return session.with_model(model, self.reads(model), task)

    def reader(self, session: Session, texts: Sequence[str]) -> str:
        """The chosen model if it knows some texts' script, else the best that does, else none."""
        if knows(session.reads, texts):
            return session.model
        found = reader_of(self.models, texts, session.task)
        return found.path if found else CHARACTERS if is_chinese("".join(texts)) else WORDS

    def opened(self, session: Session, before: Session) -> Session:
        """The session after a graph was opened: read by a model that knows most of its names.

        A text that this model doesn't know goes; all comes back with ``Session.as_before``.
        """
        model = self.reader(session, _heads(session))
        new = self._replaced(session, before, model, "graph", "texts")
        return new if all(map(new.reads.knows, new.texts)) else new.with_text("")

    def written(self, session: Session, before: Session) -> Session:
        """The session after a text was typed: read by a model that knows it.

        One that the visitor kept for the text before, which it didn't know either, stays. A graph
        that the new model doesn't know makes way for the one that its example is about.
        """
        if not knows(before.reads, before.sentences):
            return session
        model = self.reader(session, session.sentences)
        if model in NO_MODEL:
            return session
        new = self._replaced(session, before, model, "text")
        own = next((e.graph for e in EXAMPLES if e.model == getattr(new.reads, "folder", "")), None)
        if model == session.model or own is None or knows(new.reads, _heads(session)):
            return new
        return replace(new, graph=own)

    def _replaced(
        self, session: Session, before: Session, model: str, by: str, *also: str
    ) -> Session:
        if model == session.model:
            return replace(session, replaced=None)
        new = session.with_model(model, self.reads(model))
        names = ("model", "reads", "task", "options", "ablation", "graph", *also)
        fields = {name: getattr(before, name) for name in names}
        return replace(new, replaced=Replaced(model, by, fields))


def _heads(session: Session) -> list[str]:
    return [triple.head for triple in islice(session.base, MOST_LOOKED_AT)]


def _trained_alike(one: ModelInfo, other: ModelInfo) -> bool:
    """Whether two models may be compared as systems: of one task, language, data and encoder."""
    same = (one.task, one.language) == (other.task, other.language)
    return same and other.problem is None and bool(other.card.knowledge) and alike(one, other)


def _read_by(now: Scene, info: ModelInfo) -> Scene:
    options = replace(info.card.reading.options, keep_places=now.options.keep_places)
    return now.read_by(info.path, options, info.ablation)
