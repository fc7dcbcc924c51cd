"""The promises everything rests on, tried on a loaded model. No streamlit."""

from dataclasses import dataclass

import torch

from app.texts import N_
from kbert_core import (
    KBertError,
    KnowledgeGraph,
    Pipeline,
    Triple,
    Words,
    flatten,
    grow_trees,
    probe,
)

TEXT = "入院后行心电图检查 Tim Cook is visiting Beijing now"
FIGURE_2 = (
    Triple("Tim Cook", "CEO", "Apple"),
    Triple("Beijing", "capital", "China"),
    Triple("Beijing", "is_a", "City"),
)
FIGURE_2_TOKENS = "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]"
FIGURE_2_SOFT = [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 6, 7, 6, 7]
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Check:
    """One promise.

    Attributes:
        name: what is promised.
        passed: whether it is kept.
        value: the largest difference found, where there is one.
    """

    name: str
    passed: bool
    value: float | None = None


def run_checks(reader: Pipeline) -> tuple[Check, ...]:
    """Try every promise on a model."""
    return (_equals_bert(reader), _hides(reader), _figure_2())


def _equals_bert(reader: Pipeline) -> Check:
    """The empty graph against the model called as any Hugging Face model is."""
    text = TEXT.replace("入", reader.hugging_face_tokenizer.mask_token or "入", 1)
    sentences = (text,) * (reader.task.sentences if reader.task else 1)
    ours = reader(*sentences, hidden_states=True)
    row = ours.rows[0]
    base = reader.encoder.model.base_model
    arguments = {"input_ids": torch.tensor([row.input_ids], device=base.device)}
    if len(set(row.token_type_ids)) > 1:
        arguments["token_type_ids"] = torch.tensor([row.token_type_ids], device=base.device)
    with torch.inference_mode():
        plain = base(**arguments).last_hidden_state
    assert ours.hidden_states is not None
    value = float((ours.hidden_states[-1][:1, : len(row)] - plain).abs().max())
    return Check(
        N_("With an empty graph the last hidden states equal plain BERT's"),
        value <= TOLERANCE,
        value,
    )


def _hides(reader: Pipeline) -> Check:
    """The probe: changing hidden tokens leaves the others exactly equal."""
    name = N_("A hidden token has no influence at all")
    try:
        probe(reader.encoder.model)
    except KBertError:
        return Check(name, False)
    return Check(name, True, 0.0)


def _figure_2() -> Check:
    graph = KnowledgeGraph(FIGURE_2)
    flat = flatten(grow_trees(["Tim Cook is visiting Beijing now"], graph), Words(special=True))[0]
    right = flat.tokens == FIGURE_2_TOKENS.split() and flat.soft_positions == FIGURE_2_SOFT
    return Check(N_("Figure 2 comes out as in the paper"), right)
