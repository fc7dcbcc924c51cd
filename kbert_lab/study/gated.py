"""A gate kept beside a model, and the model read through it.

``kbert gate`` fits one for a model and a graph and saves it as a small JSON. A model that is read
through it predicts as it does alone, and the dictionary's spans that the gate lets through are
written over that. Without a graph it is the model alone::

    model = Gated.from_pretrained("models/medical-ner-bert")
    next(model.predict([("患者行胃镜检查",)], graph=graph)).judged
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ValidationError

from kbert_core.checkpoints.encoders import located
from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_core.files import json_object, replaced
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.surface_forms import ALL_RULES, NameRules
from kbert_core.labels import OUTSIDE
from kbert_core.pipeline import NO_KNOWLEDGE, GraphOrPath, Pipeline, as_graph
from kbert_core.reader import Reading
from kbert_core.tasks.ner import LabelledTokens, NerPrediction, Span
from kbert_core.text import Text
from kbert_lab.data.labelled import Example, surface_forms
from kbert_lab.files import or_refused
from kbert_lab.study.audit_values import LookedUp
from kbert_lab.study.dictionary import (
    Spans,
    TagScores,
    dictionary_spans,
    learn_tail_labels,
    written_over,
)
from kbert_lab.study.gate import (
    Candidates,
    Fit,
    Names,
    Record,
    fit_gate,
    gated_spans,
    judged,
    oracle,
)
from kbert_lab.study.statistics import METRICS, Resampled
from kbert_lab.training.evaluate import predict_all
from kbert_lab.training.scores import span_scores, unseen_recall

FILE = "gate.json"  # beside a model
AGAIN = "Fit it again with `kbert gate`."
RESAMPLED = 2000  # times, the texts that an audit reads with a model


@dataclass(frozen=True, slots=True)
class JudgedSpan(Span):
    """A name of the graph in a text, and the gate's judgement.

    Attributes:
        label: the type that the graph gives it.
        probability: that it is an entity of this type.
        written: whether it stands in the prediction because of the gate, or the model's own.
    """

    written: bool


@dataclass(frozen=True)
class GatedPrediction(NerPrediction):
    """The named entities of a text, the gate's among them.

    Attributes:
        judged: the graph's names in the text, in reading order.
    """

    judged: tuple[JudgedSpan, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {**super().as_dict(), "gate": [*map(asdict, self.judged)]}


def _possible(names: Names) -> Names:
    if any(not 0 <= r <= n or not n for of_label in names.values() for r, n in of_label.values()):
        raise ValueError("a name was right more often than it was matched")
    return names


class FittedWith(BaseModel):
    """The graph that a gate was fitted with."""

    fingerprint: str
    about: str  # its name and size


class Gate(Fit):
    """A gate fitted for a model and a graph."""

    format: Literal[1] = 1
    model: str  # digest of the model's weights
    graph: FittedWith
    injected: bool  # whether the model reads the graph too; else it is only looked up in
    labels: dict[str, str]  # tail → label, as learnt from train
    names: Annotated[Names, AfterValidator(_possible)]  # see ``Record``
    name_rules: tuple[str, ...] = ("as-written",)  # how names are compared; as of the first gates

    @property
    def record(self) -> Record:
        """How often the graph's names were right in train."""
        return Record(self.names)

    @property
    def rules(self) -> NameRules:
        """How a text's names are compared with the graph's."""
        return NameRules.of(self.name_rules)

    @classmethod
    def fit(
        cls,
        pipeline: Pipeline,
        model: str | Path,
        splits: Mapping[str, Sequence[Example]],
        graph: KnowledgeGraph,
        *,
        injected: bool | None = None,
    ) -> Self:
        """Fit a gate on dev.

        Args:
            pipeline: the model, loaded from the folder ``model``.
            splits: "train", to learn what the graph's names are worth, and "dev".
            injected: None: as the model was trained, with a graph or without.

        Raises:
            DataError: there is no dev; the graph finds nothing in it that it has a label for, or
                only what is right, or wrong; a label that the model doesn't know.
            CheckpointError: the model isn't for named entities.
        """
        _check_task(pipeline)
        if not splits.get("dev"):
            raise DataError(
                "There is no dev set, and a gate needs one: the model has already learnt the "
                "labels of train. Name a dev set with --dev. Or, if the model wasn't trained on "
                "a part of train, take that part with --dev-share."
            )
        if injected is None:
            injected = bool(pipeline.card.knowledge)
        rules = pipeline.card.names
        labels, record = _learnt(splits["train"], graph, rules)
        named = _looked_up(splits["dev"], graph, labels, rules)
        knowledge = graph if injected else NO_KNOWLEDGE
        scores = TagScores.of(predict_all(pipeline, splits["dev"], knowledge))
        fitted = fit_gate(Candidates(splits["dev"], named, scores), record)
        about = f"{graph.name}, {len(graph):,} triples"
        return cls(
            **fitted.model_dump(),
            model=_digest(model),
            graph=FittedWith(fingerprint=graph.fingerprint, about=about),
            injected=injected,
            labels=labels,
            names=record.names,
            name_rules=tuple(rules.as_list()),
        )

    @classmethod
    def load(cls, model: str | Path, file: str | Path | None = None) -> Self:
        """Read the gate of a model.

        Args:
            model: its folder.
            file: None: the one beside the model.

        Raises:
            CheckpointError: there is none, it can't be read, or it is another model's.
        """
        path = Path(file) if file else Path(located(model)) / FILE
        if not path.is_file():
            raise CheckpointError(
                f"{path}: there is no gate. Fit one for this model and your graph: "
                f"`kbert gate {model} --kg FILE --data DIR`."
            )
        gate = cls._read(path)
        if gate.model != _digest(model):
            raise CheckpointError(
                f"{path}: this gate was fitted for another model than {model}, or for the same one "
                f"before it was trained anew. {AGAIN}"
            )
        return gate

    @classmethod
    def _read(cls, path: Path) -> Self:
        """Read a file; CheckpointError if it isn't a gate."""
        try:
            gate = cls.model_validate(json_object(path, CheckpointError, AGAIN))
            _ = gate.rules
        except (ValidationError, OptionError) as error:
            said = f"name_rules: {error}"
            if isinstance(error, ValidationError):
                first = error.errors()[0]
                said = f"{first['loc'][0]}: {first['msg']}"
            raise CheckpointError(
                f"{path}: this isn't a gate of this version ({said}). {AGAIN}"
            ) from error
        return gate

    def save(self, path: str | Path) -> None:
        """Write it, whole or not at all.

        Raises:
            CheckpointError: it can't be written.
        """
        remedy = "Name another file with --output."
        with or_refused(path, CheckpointError, remedy), replaced(Path(path)) as file:
            file.write(f"{self.model_dump_json()}\n".encode())

    @classmethod
    def check_file(cls, path: str | Path, graph: KnowledgeGraph) -> None:
        """Refuse a file that a gate for ``graph`` may not replace.

        A gate for a graph of this name may be replaced, and a broken one by the usual name.

        Raises:
            CheckpointError: it isn't a gate, or one for another graph.
        """
        path = Path(path)
        if not path.exists():
            return
        try:
            old = cls._read(path).graph.about.rpartition(", ")[0]
        except CheckpointError as error:
            if path.name == FILE and not path.is_dir():
                return
            raise CheckpointError(
                f"{path}: there is a file here already, and it isn't a gate. Name another one "
                "with --output."
            ) from error
        if old != graph.name:
            raise CheckpointError(
                f"{path}: there is a gate for another graph here ({old}), and this one would "
                f"replace it ({graph.name}). Name another file with --output, or remove it."
            )

    def check(self, graph: KnowledgeGraph) -> None:
        """Refuse another graph than it was fitted with: CheckpointError."""
        if graph.fingerprint != self.graph.fingerprint:
            raise CheckpointError(
                f"The gate was fitted with another graph ({self.graph.about}) than this one "
                f"({graph.name}, {len(graph):,} triples), whose names may be right more often or "
                "less. Read with that one as it was, or fit the gate again with `kbert gate`."
            )


class Gated(Pipeline):
    """A model read through its gate; used as any :class:`Pipeline`.

    A graph that isn't empty has to be the gate's. The model reads it only where the gate was
    fitted so. Calls, ``read`` and ``predict`` go through the gate; ``readings`` and ``predicted``
    are the model's own.
    """

    def __init__(self, pipeline: Pipeline, gate: Gate) -> None:
        _check_task(pipeline)
        vars(self).update(vars(pipeline))  # the same model, not loaded twice
        self.gate = gate

    @classmethod
    def from_pretrained(
        cls, path: str | Path, *, gate: str | Path | None = None, **how: Any
    ) -> Self:
        """Load a model and its gate; ``gate`` and ``how`` as of ``Gate`` and ``Pipeline``."""
        fitted = Gate.load(path, gate)
        return cls(Pipeline.from_pretrained(path, **how), fitted)

    def __call__(self, *sentences: Any, graph: GraphOrPath = NO_KNOWLEDGE, **how: Any) -> Any:
        """Read a text and keep every stage; arguments as of :class:`Pipeline`."""
        graph = as_graph(graph)
        if sentences and isinstance(sentences[0], list):  # one by one, each through the gate
            return super().__call__(*sentences, graph=graph, **how)
        trace = super().__call__(*sentences, graph=self._read(graph), **how)
        return trace if trace.prediction is None else self._through(trace, sentences[0], graph)

    def read(
        self, texts: Iterable[Text], *, graph: GraphOrPath = NO_KNOWLEDGE, **how: Any
    ) -> Iterator[Reading]:
        """Read many texts and predict; arguments as of :class:`Pipeline`."""
        graph = as_graph(graph)
        for reading in super().read(texts, graph=self._read(graph), **how):
            yield self._through(reading, reading.sentences[0], graph)

    def _read(self, graph: KnowledgeGraph) -> KnowledgeGraph:
        """Return the graph that the model itself reads."""
        if len(graph):
            self.gate.check(graph)
        return graph if self.gate.injected else NO_KNOWLEDGE

    def _through(self, read: Any, text: str, graph: KnowledgeGraph) -> Any:
        """Return a reading or trace with its prediction changed by the gate."""
        if not len(graph):
            return read
        own, gate = read.prediction, self.gate
        examples = [Example((text,))]
        dictionary = _looked_up(examples, graph, gate.labels, gate.rules)
        if not dictionary[0] or not own.tokens:
            return replace(read, prediction=GatedPrediction(own.spans, own.tokens))
        described = judged(Candidates(examples, dictionary, TagScores.of([own])), gate.record)
        chances, chosen = gate.probabilities(described).tolist(), gate.chosen(described).tolist()
        names = tuple(
            JudgedSpan(*span, text[span[0] : span[1]], chance, written)
            for (_, span), chance, written in zip(described.spans, chances, chosen, strict=True)
        )
        return replace(read, prediction=_written(own, names))


def look_up(
    pipeline: Pipeline,
    name: str,
    splits: Mapping[str, Sequence[Example]],
    graph: KnowledgeGraph,
    rules: NameRules = ALL_RULES,
) -> LookedUp:
    """Read the held-out split once with a trained model, and look its names up in a graph.

    Args:
        pipeline: the model; it reads the graph itself where it was trained with one.
        name: what to call it.
        splits: "train", and "test" or "dev"; with both a gate is fitted on dev, and the names new
            to the model are counted there.
        rules: how names are compared.

    Raises:
        CheckpointError: the model isn't for named entities.
        DataError: nothing is held out, or a label that the model doesn't know.
    """
    _check_task(pipeline)
    held_out = next((split for split in ("test", "dev") if splits.get(split)), None)
    if held_out is None:
        raise DataError("There is no test set and no dev set to read with the model. Name one.")
    labels, record = _learnt(splits["train"], graph, rules)
    knowledge = graph if pipeline.card.knowledge else NO_KNOWLEDGE

    def read(split: str) -> Candidates:
        examples = splits[split]
        scores = TagScores.of(predict_all(pipeline, examples, knowledge))
        return Candidates(examples, _looked_up(examples, graph, labels, rules), scores)

    asked = read(held_out)
    dev = read("dev") if held_out == "test" and splits.get("dev") else None
    examples, found = asked.examples, asked.found
    ways = {
        "dictionary": written_over(found, asked.spans),
        "oracle": written_over(found, oracle(examples, asked.spans)),
    }
    if dev is not None:
        with suppress(DataError):  # too little in dev to tell right from wrong
            ways["gate"] = gated_spans(fit_gate(dev, record), asked, record)
    new = None
    if not pipeline.card.knowledge:
        counted, seen = dev or asked, surface_forms(splits["train"])
        texts = [example.sentences[0] for example in counted.examples]
        spans = [example.spans for example in counted.examples]
        new = unseen_recall(texts, spans, counted.found, seen)["recall"]
    gold = [example.spans for example in examples]
    alone = round(float(span_scores(gold, found)["f1"]), 4)
    return LookedUp(name, held_out, alone, new, _gains(examples, found, ways))


def _gains(
    examples: Sequence[Example], found: Sequence[Spans], ways: Mapping[str, Sequence[Spans]]
) -> dict[str, tuple[float, float, float]]:
    """F1 that each way of writing adds, with 95 % of resamples of the texts."""
    from kbert_lab.study.counts import sentence_counts

    counts = {
        way: {0: sentence_counts("ner", examples, spans, set(), NO_KNOWLEDGE)}
        for way, spans in {"alone": found, **ways}.items()
    }
    drawn, metric = Resampled(counts, resamples=RESAMPLED), METRICS["ner"][0]
    gains = ((way, drawn.difference(way, "alone", metric)) for way in ways)
    return {way: (gain.mean, gain.low, gain.high) for way, gain in gains if gain is not None}


def _learnt(
    train: Sequence[Example], graph: KnowledgeGraph, rules: NameRules
) -> tuple[dict[str, str], Record]:
    """Learn from train the labels of the graph's tails, and how often its names were right."""
    labels = learn_tail_labels(train, graph, rules)
    return labels, Record.of(train, _looked_up(train, graph, labels, rules))


def _written(own: NerPrediction, names: Sequence[JudgedSpan]) -> GatedPrediction:
    """Write the names that passed the gate over a prediction; equal spans stay the model's."""
    of_model = {(span.start, span.end, span.label): span for span in own.spans}
    over = {
        (n.start, n.end, n.label): Span(n.start, n.end, n.label, n.text, n.probability)
        for n in names
        if n.written
    }
    (written,) = written_over([of_model], [over])
    tokens = own.tokens
    assert isinstance(tokens, LabelledTokens)
    tags = np.full(len(tokens), tokens.names.index(OUTSIDE))
    for start, end, label in written:
        first, last = tokens.tokens.over(start, end)
        tags[first:last] = tokens.names.index(f"I-{label}")
        tags[first] = tokens.names.index(f"B-{label}")
    labelled = LabelledTokens(tokens.tokens, tags, tokens.names, tokens.probabilities)
    spans = tuple((over | of_model)[span] for span in written)
    return GatedPrediction(spans, labelled, tuple(names))


def _looked_up(
    examples: Sequence[Example], graph: KnowledgeGraph, labels: Mapping[str, str], rules: NameRules
) -> list[Spans]:
    """Tag texts by the graph alone, without their words: a text to predict has no such borders."""
    return dictionary_spans([Example(e.sentences) for e in examples], graph, labels, rules)


def _check_task(pipeline: Pipeline) -> None:
    if pipeline.card.task != "ner":
        raise CheckpointError(
            f"A gate judges named entities, and the model is for '{pipeline.card.task}'. Choose a "
            "model for 'ner'."
        )


def _digest(model: str | Path) -> str:
    """Return a digest of the weights in a folder: of an adapter's own, not its encoder's."""
    folder = Path(located(model))
    weights = sorted(folder.glob("*.safetensors")) if folder.is_dir() else []
    if not weights:
        raise CheckpointError(
            f"{model}: this isn't a folder with a model's weights. A gate is saved beside the "
            "weights: name such a folder."
        )
    digest = hashlib.sha256()
    for path in weights:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
