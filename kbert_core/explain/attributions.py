"""Attributions: how much every token, of the text and of its triples, adds to a prediction's score.

Integrated gradients (Sundararajan, Taly & Yan 2017) by Captum, over the word embeddings: on the way
from a text of [MASK]s to the text itself; special tokens stay. The shares sum to score(text) -
score(all masked), except for a small ``remainder``. An effect in ``effects`` comes from another run
without the triple: the two differ if one token can replace another.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from kbert_core.errors import MissingPackageError, OptionError
from kbert_core.explain.case import Case
from kbert_core.explain.result import Plain, Result, name_of
from kbert_core.explain.targets import LinkTarget
from kbert_core.reader import Fact

STEPS = 64  # on the way, at the points of Gauss and Legendre
ROWS_AT_ONCE = 16
Places = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class TokenShare(Plain):
    """What one token adds to the score, in nats, or to its probability."""

    text: str
    share: float
    sentence: int = -1  # of the text, and where it starts there; -1: it is a triple's
    start: int = -1
    fact: Fact | None = None  # the triple it says, at its mention

    keys: ClassVar = "token=text share sentence start triple=fact"


@dataclass(frozen=True)
class Attributions(Result):
    """What every token of a text and of its triples adds to a prediction's score."""

    score: float  # the text's
    masked: float  # where every token is [MASK]
    each: tuple[TokenShare, ...]  # the text's in reading order, then the triples'

    measure: ClassVar = "share"
    rows: ClassVar = "tokens"
    keys: ClassVar = "text=sentences target score masked remainder tokens=each"

    @property
    def remainder(self) -> float:
        """The whole difference minus the sum of the shares; more steps make it smaller."""
        return self.score - self.masked - sum(own.share for own in self.each)

    def of(self, fact: Fact | None) -> float:
        """Return the sum over the tokens of a triple; None: over those of the text."""
        return sum(own.share for own in self.each if _same(own.fact, fact))

    def name(self, own: TokenShare) -> str:
        """Return a token in one line."""
        return f"{own.text} ({name_of(own.fact.triple)})" if own.fact else own.text


def _same(own: Fact | None, asked: Fact | None) -> bool:
    if own is None or asked is None:
        return own is asked
    return own.triple == asked.triple and (own.node == asked.node or None in (own.node, asked.node))


def attributions(case: Case, *, steps: int = STEPS, probability: bool = False) -> Attributions:
    """Divide a prediction's score, or its ``probability``, among all tokens.

    In K-BERT, plain text and Roof-BERT the tokens of triples have shares, too. KnowBert and the
    lexicon adapter read triples as vectors, so only the tokens of the text have shares.

    Raises:
        MissingPackageError: Captum isn't installed.
        OptionError: the score can't be divided: it is that of a link, or the layers of the
            reading have different visible matrices.
    """
    try:
        from captum.attr import IntegratedGradients  # slow to start
    except ImportError as error:
        raise MissingPackageError(
            "Shares of tokens need Captum, which isn't installed. `pip install captum`."
        ) from error
    if isinstance(case.target, LinkTarget):
        raise OptionError(
            "Shares of tokens can't be computed for a link, because the tokens don't produce "
            "its candidates. Ask for the effects of its triples."
        )
    reader, reading = case.pipeline.reader, case.reading
    batch = reader.collate(reading.rows, reading.config)
    names, full, masked = [], [], []
    for name, (embed, tokenizer) in reader.embeds().items():
        ids = getattr(batch, name).to(reader.device)
        layout = tokenizer.layout(len(reading.sentences))
        kept = {special.id for part in (*layout.before, layout.after) for special in part}
        empty = torch.full_like(ids, tokenizer.empty_id)
        special = torch.isin(ids, torch.tensor([*kept, tokenizer.pad_id], device=ids.device))
        with torch.no_grad():
            names.append(name)
            full.append(embed(ids)[None])
            masked.append(embed(torch.where(special, ids, empty))[None])

    def scores(*given: Tensor) -> Tensor:
        made = _scores(case, dict(zip(names, given, strict=True)))
        return case.target.probabilities(made, case.pipeline.labels) if probability else made

    with torch.enable_grad():
        found = IntegratedGradients(scores).attribute(
            tuple(full),
            tuple(masked),
            n_steps=steps,
            internal_batch_size=max(1, ROWS_AT_ONCE // len(reading.rows)),
        )
    with torch.no_grad():
        score, least = float(scores(*full)), float(scores(*masked))
    shares = {n: own[0].sum(-1).cpu() for n, own in zip(names, found, strict=True)}
    tokens = tuple(_tokens(case, shares))
    return Attributions(case.sentences, case.target, score, least, tokens)


def _scores(case: Case, given: Places) -> Tensor:
    """(S,): the score for each of S embeddings (S, R, N, H) of the R rows."""
    reader, reading, labels = case.pipeline.reader, case.reading, case.pipeline.labels
    count, rows = given["input_ids"].shape[:2]
    batch: Any = reader.collate([*reading.rows] * count, reading.config)
    if "kb_ids" in given:
        batch = replace(batch, kb_embeds=given["kb_ids"].flatten(0, 1))
    asked = []

    def embedded(input_ids: Tensor, **more: Any) -> Any:
        asked.append(input_ids)
        return reader.model(inputs_embeds=given["input_ids"].flatten(0, 1), **more)

    logits = reader.forward(batch, reading.config, model=embedded)["logits"]
    if not asked:
        raise OptionError(
            "The layers of this reading have different visible matrices, so shares of tokens "
            "can't be computed. Remove the interventions on single layers."
        )
    on_text = map(reading.logits_on_text, map(list, logits.unflatten(0, (count, rows))))
    likely = (case.target.log_probabilities(reading, own, labels) for own in on_text)
    return torch.stack([case.target.scored(own, labels) for own in likely])


def _tokens(case: Case, shares: Places) -> list[TokenShare]:
    """The text's tokens in reading order, windows summed; then those of triples."""
    reading: Any = case.reading
    reader = case.pipeline.reader
    text = [[0.0] * len(own) for own in reading.tokens]
    shares_of_text: list[TokenShare] = []
    triples: list[TokenShare] = []
    for row, own in zip(reading.rows, shares["input_ids"], strict=True):
        for sentence, first, start, end in row.trunk_parts:
            for at, value in enumerate(own[start:end].tolist(), start=first):
                text[sentence][at] += value
        for placed in () if reader.inserts else getattr(row, "branches", ()):
            fact = Fact(placed.branch.triple, placed.node)
            values = own[placed.start : placed.end].tolist()
            words = row.tokens[placed.start : placed.end]
            triples += [TokenShare(w, v, fact=fact) for w, v in zip(words, values, strict=True)]
    for values in shares.get("kb_ids", ()):
        kb, tokenizer = reading.kb, reader.embeds()["kb_ids"][1].hugging_face
        for triple, (start, end) in zip(kb.triples, kb.places, strict=True):
            words = tokenizer.convert_ids_to_tokens(list(kb.ids[start:end]))
            own = values[start:end].tolist()
            triples += [
                TokenShare(w, v, fact=Fact(triple)) for w, v in zip(words, own, strict=True)
            ]
    for n, (sentence, tokens) in enumerate(zip(reading.sentences, reading.tokens, strict=True)):
        for value, start, end in zip(text[n], tokens.starts, tokens.ends, strict=True):
            shares_of_text.append(TokenShare(sentence[start:end], value, n, int(start)))
    return [*shares_of_text, *triples]
