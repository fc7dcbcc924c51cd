"""A system of one's own, ``[CLS] text [SEP] tails of triples [SEP]``: all that a reader needs."""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import torch

from kbert_core import Piece, Reader, Reading, k_query
from kbert_core.systems import SystemConfig
from kbert_core.tokens import TrunkPart


class ToyConfig(SystemConfig):
    system: ClassVar[str] = "toy"


@dataclass(frozen=True)
class ToyReading(Reading):
    sentences: Any = ()
    tokens: Any = ()
    mentions: Any = ()
    pieces: Any = ()


class Row(list):  # ids of N tokens; the text's own stand between [CLS] and [SEP]
    @property
    def trunk_parts(self):
        return (TrunkPart(0, 0, 1, self.index(self[-1])),)


@dataclass(frozen=True)
class ToyBatch:
    input_ids: torch.Tensor
    attention_mask: torch.Tensor


class ToyReader(Reader):
    config_class = ToyConfig

    def read(self, texts, graph, config=None, *, windows=False):
        config, readings = self.configured(config), []
        for text, nodes in zip(texts, k_query(texts, graph, config.options), strict=True):
            pieces = tuple(Piece(t, n) for n, node in enumerate(nodes) for t in node.used)
            tokens = self.tokenizer.tokenize(text)[0].first(config.max_length // 2)
            mentions = tuple(node.mention for node in nodes)
            reading = ToyReading((), config, None, tuple(text), (tokens,), mentions, pieces)
            readings.append(self.without(reading, ()))
        return readings

    def without(self, reading, pieces):
        kept = [p for p in reading.pieces if not any(o.covers(p.node, p.triple) for o in pieces)]
        layout = self.tokenizer.layout(1)
        start, end = layout.before[0][0].id, layout.after[0].id
        tails = self.tokenizer.tokenize_branches([p.triple.tail for p in kept])
        ids = [start, *reading.tokens[0].ids, end, *chain(*(tail.ids for tail in tails))]
        row = Row([*ids[: reading.config.max_length - 1], end])
        return replace(reading, rows=(row,), pieces=tuple(kept), prediction=None)

    def collate(self, rows, config):
        rows = [torch.tensor(list(row)) for row in rows]
        ids = torch.nn.utils.rnn.pad_sequence(rows, True, self.tokenizer.pad_id)
        return ToyBatch(ids, ids != self.tokenizer.pad_id)

    def forward(self, batch, config, *, model=None, attentions=False, hidden_states=False):
        run, device = model or self.model, self.device
        inputs = (own.to(device) for own in (batch.input_ids, batch.attention_mask))
        return run(*inputs, output_hidden_states=hidden_states)
