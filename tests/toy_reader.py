"""A system of one's own, ``[CLS] text [SEP] tails of triples [SEP]``: all that a reader needs."""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

from kbert_core import Fact, Reader, Reading, k_query
from kbert_core.systems import SystemConfig
from kbert_core.text_rows import TextRow, text_rows


class ToyConfig(SystemConfig):
    system: ClassVar[str] = "toy"


@dataclass(frozen=True)
class ToyReading(Reading):
    sentences: Any = ()
    tokens: Any = ()
    mentions: Any = ()
    facts: Any = ()


class ToyReader(Reader):
    config_class = ToyConfig

    def read(self, texts, graph, config=None, *, windows=False):
        config, readings = config or self.config, []
        for text, nodes in zip(texts, k_query(texts, graph, config.options), strict=True):
            facts = tuple(Fact(t, n) for n, node in enumerate(nodes) for t in node.used)
            tokens = self.tokenizer.tokenize(text)[0].first(config.max_length // 2)
            mentions = tuple(node.mention for node in nodes)
            reading = ToyReading((), config, None, tuple(text), (tokens,), mentions, facts)
            readings.append(self.without(reading, ()))
        return readings

    def without(self, reading, facts):
        kept = [p for p in reading.facts if not any(o.covers(p.node, p.triple) for o in facts)]
        layout = self.tokenizer.layout(1)
        (text,) = text_rows(reading.tokens, layout, None)
        tails = self.tokenizer.tokenize_branches([p.triple.tail for p in kept])
        ids = [*text.input_ids, *chain(*(tail.ids for tail in tails))]
        ids = [*ids[: reading.config.max_length - 1], layout.after[0].id]
        row = TextRow(ids, [0] * len(ids), text.trunk_parts)
        return replace(reading, rows=(row,), facts=tuple(kept), prediction=None)
