"""Rows of a data set → batches with knowledge, for Hugging Face's own ``Trainer``.

K-BERT adds no parameter to an encoder: soft positions and the visible matrix are two of its
arguments, ``position_ids`` and ``attention_mask``. So a collator is all that a ``Trainer`` lacks.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from kbert_core.checkpoints.checkpoint import Card
from kbert_core.errors import DataError, OptionError
from kbert_core.kbert.kbert import KBertReader
from kbert_core.kbert.visible import ReadConfig
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.labels import Labels
from kbert_core.layers import attention_mask, inputs_of, without_recorders
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_core.tasks import TASKS as BY_NAME
from kbert_lab.data.files import NEEDED
from kbert_lab.data.labelled import check_labels, examples_of
from kbert_lab.data.tables import ColumnError, Source, Table
from kbert_lab.training.rows import RowMaker

TASKS = ("classify", "multilabel", "pair", "rank", "ner")  # whose labels stand in the rows


class KnowledgeCollator:
    """Inject a graph's triples into the texts of a ``Trainer``'s batches.

    The model's config gets a card that says how texts are read, so
    :meth:`Pipeline.from_pretrained` can load what the ``Trainer`` saves. The collator keeps no
    weights, so a worker of a ``DataLoader`` gets a small copy, spawned ones too; only where the
    model itself scores triples (strategy "context" without a scorer) it keeps the model.

    Args:
        model: of a class ``AutoModelFor…`` that fits the task; its ``id2label`` names the labels.
        tokenizer: the model's, a fast one.
        graph: K; the empty graph gives plain BERT.
        task: "classify", "multilabel", "pair", "rank" or "ner".
        config: how texts are read; None: K-BERT's defaults. A text longer than
            ``max_length`` is cut, so each row of the data is one row of the batch.

    Raises:
        OptionError: another task, weights in half precision, or interventions.
        CheckpointError, EncoderError: model and tokenizer can't be used together or for this.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        graph: KnowledgeGraph = NO_KNOWLEDGE,
        *,
        task: str,
        config: ReadConfig | None = None,
    ) -> None:
        if task not in TASKS:
            raise OptionError(
                f"The task '{task}' has no labels in the rows of a Trainer; expected one of "
                f"{', '.join(TASKS)}. For others use `kbert train` or `kbert pretrain`."
            )
        if model.dtype == torch.float16:
            raise OptionError(
                "The model's weights are in half precision, as the checkpoint saved them, and "
                "training in it soon gives NaN. Load the model with dtype=torch.float32."
            )
        config = config or ReadConfig()
        if config.interventions:
            raise OptionError(
                "Interventions give every layer a matrix of its own, and a Trainer has one for "
                "all. Leave them out of the configuration."
            )
        card = Card(task, config, (graph.name,) if len(graph) else ())
        if problem := BY_NAME[task].problem_type:
            model.config.problem_type = problem
        was_training = model.training
        pipeline = Pipeline(model, tokenizer, card)
        model.train(was_training)
        card.write_to(model.config)
        self.task, self.labels, self.graph = task, pipeline.labels, graph
        self.config = replace(pipeline.config, windows=False)
        self.reader: KBertReader = pipeline.reader
        if not config.options.needs_model:  # else the model itself scores triples
            self.reader.model = self.reader.encoder.model = without_weights(model)

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Make a batch of B rows of a data set.

        Args:
            rows: columns as `kbert train` knows them: ``text`` or ``tokens``, ``sentence1`` and
                ``sentence2``, ``label`` or ``ner_tags``, and so on; labels by name or number.

        Returns:
            ``input_ids``, ``position_ids`` and, where the encoder has segments,
            ``token_type_ids``, all (B, N); ``attention_mask`` (B, 1, N, N), 0 where a token
            may attend; ``labels`` (B, N) or (B,), or (B, K) of 0.0 and 1.0. All on the CPU.

        Raises:
            DataError: a column is missing, or a row doesn't fit.
        """
        reader, labels, ablation = self.reader, self.labels, self.config.ablation
        task, model = BY_NAME[self.task], reader.model
        table = _table(rows, labels)
        try:
            examples = examples_of(table, task.name, None)
        except ColumnError as error:
            raise DataError(
                f"The batch has the columns {', '.join(table.columns)}, expected "
                f"{', '.join(NEEDED[task.name])} or what `kbert train` takes for them. Rename "
                "them, or, if the Trainer took them out, say TrainingArguments("
                "remove_unused_columns=False)."
            ) from error
        check_labels(examples, labels.names, "the model")
        numbers = labels.numbers
        maker = RowMaker(examples, task, reader, numbers, self.graph, self.config, type_labels={})
        batch, targets = maker.batch(range(len(examples)), 0)
        targets = targets.float() if task.problem_type else targets  # as its loss wants them
        positions = ablation.position_ids(batch) + reader.encoder.position_offset
        mask: Any = attention_mask(model.config, ablation.visible_in(batch), positions, model.dtype)
        inputs = inputs_of(model, batch.input_ids, mask, ablation.segment_ids(batch))
        return {**inputs, "position_ids": positions, "labels": targets}


def without_weights(model: PreTrainedModel) -> PreTrainedModel:
    """Copy a model's modules and config, and of its weights the shapes alone; it can't run."""
    empty: dict[int, Any] = {}
    for own in (*model.parameters(), *model.buffers()):
        shape = torch.empty_like(own, device="meta")
        empty[id(own)] = nn.Parameter(shape, False) if isinstance(own, nn.Parameter) else shape
    return without_recorders(copy.deepcopy(model, empty))


def _table(rows: Sequence[Mapping[str, Any]], labels: Labels) -> Table:
    """The rows of one batch, with names in place of numbers of labels."""

    def plain(value: Any) -> Any:
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [plain(item) for item in value]
        return labels.get(value, str(value)) if isinstance(value, int) else str(value)

    named = [{name: plain(value) for name, value in row.items()} for row in rows]
    source, records = Source("the batch", "row"), [*enumerate(named, start=1)]
    return Table(source, [*rows[0]], lambda _: records, "the batch", whole=False)
