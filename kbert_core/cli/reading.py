"""`kbert tree` and `kbert predict`: what they do, and what they print as JSON."""

import argparse
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TextIO

import torch

from kbert_core.checkpoints.checkpoint import Card, card_of, load_tokenizer
from kbert_core.cli.options import ablation_of, graph_of, injection_of, model_of, print_result
from kbert_core.cli.text import prediction_text, tree_text
from kbert_core.errors import CheckpointError, KBertError, OptionError, TextError
from kbert_core.kbert.ablation import FULL, Ablation
from kbert_core.kbert.flat_tree import FlatTree, collate, flatten, hard_positions
from kbert_core.kbert.sentence_tree import SentenceTree, grow_tree, passed_over
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention, PassedOver
from kbert_core.knowledge.names import is_word_character
from kbert_core.knowledge.selection import Reason
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_core.scoring.opening import scorer_of
from kbert_core.tasks import NerPrediction
from kbert_core.text import Characters, Tokenizer, WordPieces, Words

PROGRESS_EVERY = 1000  # texts
TEXTS_AT_ONCE = 1000  # of a file that are predicted together
MOST_TOKENS = 5_000  # whose matrix is printed
CUT = "the text is over the length limit"


def run_tree(args: argparse.Namespace) -> None:
    """`kbert tree`: text and graph → sentence tree, positions, visible matrix."""
    graph = graph_of(args)
    card = _card(args)
    options = injection_of(args, card.reading.options)
    limit = args.max_length if args.max_length is not None else card.reading.max_length
    tokenizer = _tokenizer(args)
    ablation = ablation_of(args, card)

    scorer = None
    if options.needs_model:
        own = Pipeline.load(args.model, device="cpu").kbert.similarity if args.model else None
        scorer = scorer_of(options, own)

    def show(texts: Sequence[Sequence[str]]) -> Iterator[None]:
        for sentences in texts:
            reader = tokenizer or _tokenizer_for(sentences, args.special)
            words = None
            if isinstance(reader, Words):
                words = [_spans(reader, text) for text in sentences]
            tree = grow_tree(sentences, graph, options, words=words, scorer=scorer)
            flat = flatten(tree, reader, max_length=limit)
            if ablation.positions == "hard":
                flat = replace(flat, soft_positions=hard_positions(flat))
            over = passed_over(tree, graph, options.names)
            print_result(
                args,
                partial(tree_data, ablation=ablation, over=over),
                partial(tree_text, over=over),
                flat,
            )
            yield

    _each(args, show)


def run_predict(args: argparse.Namespace) -> None:
    """`kbert predict`: text, graph and model → prediction."""
    graph = graph_of(args)
    pipeline = Pipeline.load(model_of(args), device=args.device)
    if pipeline.task is None:
        raise CheckpointError(
            f"{model_of(args)} is an encoder without a task head, so it predicts nothing. "
            "Train a head with `kbert train`, or look at the tree with `kbert tree`."
        )
    options = injection_of(args, pipeline.card.reading.options)
    ablation = ablation_of(args, pipeline.card)

    def readings(texts: Sequence[Sequence[str]], knowledge: KnowledgeGraph) -> Iterator[Any]:
        return pipeline.read(
            texts,
            graph=knowledge,
            options=options,
            ablation=ablation,
            max_length=args.max_length,
        )

    def show(texts: Sequence[Sequence[str]]) -> Iterator[None]:
        plain = readings(texts, NO_KNOWLEDGE) if args.compare else None
        for sentences, reading in zip(texts, readings(texts, graph), strict=True):
            data: dict[str, Any] = {
                "text": list(sentences) if len(sentences) > 1 else sentences[0],
                "prediction": prediction_data(reading.prediction),
                "triples": [_triple(t) for t in reading.used],
                "dropped": _dropped(reading.left_out, reading.rows[0]),
            }
            if plain is not None:
                data["without_knowledge"] = prediction_data(next(plain).prediction)
            print_result(args, dict, prediction_text, data)
            yield

    _each(args, show, at_once=1 if args.file in (None, "-") else TEXTS_AT_ONCE)


# What commands print


def prediction_data(prediction: Any) -> dict[str, Any]:
    """A prediction as plain data, for JSON."""
    data: dict[str, Any] = (
        prediction.as_dict() if isinstance(prediction, NerPrediction) else asdict(prediction)
    )
    return data


def tree_data(
    flat: FlatTree, ablation: Ablation = FULL, over: Sequence[PassedOver] = ()
) -> dict[str, Any]:
    """A flat tree as plain data, for JSON.

    Args:
        flat: the tree in reading order.
        ablation: how it is read.
        over: the names in its text that are no mentions.

    Raises:
        OptionError: the matrix would be too large to print.
    """
    tree = flat.tree
    if len(flat) > MOST_TOKENS:
        raise OptionError(
            f"The visible matrix of {len(flat):,} tokens is too large to print; up to "
            f"{MOST_TOKENS:,} are shown. Give a --max-length, or go without --json."
        )
    visible = ablation.visible_in(collate([flat]))[0].to(torch.uint8)
    hung: dict[int, list[dict[str, str]]] = {}
    for item in flat.hung:
        hung.setdefault(item.node, []).append(
            {**_triple(item.branch.triple), **_why(item.branch.reason)}
        )
    left_out: dict[int, list[dict[str, str]]] = {}
    for number, left in flat.left_out:
        left_out.setdefault(number, []).append(
            {**_triple(left.triple), "rule": str(left.rule), **_why(left.reason, left.why)}
        )
    mentions = [
        {
            "text": tree.sentences[node.mention.sentence][node.mention.start : node.mention.end],
            "start": node.mention.start,
            "end": node.mention.end,
            "sentence": node.mention.sentence,
            "entity": node.mention.entity,
            **_how_read(node.mention),
            "used": hung.get(number, []),
            "left_out": left_out.get(number, []),
        }
        for number, node in enumerate(tree.nodes)
    ]
    return {
        "tokens": flat.tokens,
        "soft_positions": flat.soft_positions,
        "branch_ids": flat.branch_ids,
        "anchor_ids": flat.anchor_ids,
        "segment_ids": flat.token_type_ids,
        "mentions": mentions,
        "passed_over": [
            {
                "text": tree.sentences[one.mention.sentence][one.mention.start : one.mention.end],
                "start": one.mention.start,
                "end": one.mention.end,
                "sentence": one.mention.sentence,
                "entity": one.mention.entity,
                "why": one.why,
            }
            for one in over
        ],
        "dropped": _dropped(flat.left_out, flat),
        "visible": [bytes(row).decode() for row in (visible + ord("0")).tolist()],
    }


def _dropped(left_out: Any, flat: FlatTree) -> list[dict[str, Any]]:
    tree: SentenceTree = flat.tree
    found = []
    for number, item in left_out:
        mention = tree.nodes[number].mention
        text = tree.sentences[mention.sentence][mention.start : mention.end]
        why = _why(item.reason, item.why)
        found.append({"mention": text, **_triple(item.triple), "rule": str(item.rule), **why})
    for cut in flat.trunk_cuts:
        start = flat.trunk_tokens[cut.sentence].starts[cut.kept]
        text = tree.sentences[cut.sentence][start:]
        found.append({"sentence": cut.sentence, "start": start, "text": text, "rule": CUT})
    return found


def _why(reason: Reason | None, said: str = "") -> dict[str, Any]:
    """Why a triple was used or, with its score, left out; nothing where the rule says it all."""
    if reason is None or (said and reason.score is None):
        return {}
    why = {"why": said or str(reason)}
    return why if reason.score is None else {**why, "score": round(reason.score, 4)}


def _how_read(mention: Mention) -> dict[str, Any]:
    """By which rules a name was read, and what else it may mean, where there is something."""
    said = {"rules": [rule.name.lower() for rule in mention.rules], "others": list(mention.others)}
    return {name: value for name, value in said.items() if value}


def _triple(triple: Any) -> dict[str, str]:
    return {"head": triple.head, "relation": triple.relation, "tail": triple.tail}


# What options mean


def _card(args: argparse.Namespace) -> Card:
    """The options a model was trained with; an empty card without a model."""
    return card_of(args.model) if args.model else Card()


def _tokenizer(args: argparse.Namespace) -> Tokenizer | None:
    if args.words:
        return Words(special=args.special)
    if args.chars:
        return Characters(special=args.special)
    if args.model:
        return WordPieces(load_tokenizer(args.model))
    return None


def _tokenizer_for(sentences: Sequence[str], special: bool) -> Tokenizer:
    """Words for scripts with spaces between them, characters for the others."""
    letters = [c for text in sentences for c in text if c.isalpha()]
    spaced = sum(map(is_word_character, letters))
    return (Words if 2 * spaced >= len(letters) else Characters)(special=special)


def _spans(words: Words, text: str) -> list[tuple[int, int]]:
    (tokens,) = words.tokenize([text])
    return list(zip(tokens.starts, tokens.ends, strict=True))


def _each(
    args: argparse.Namespace,
    work: Callable[[Sequence[Sequence[str]]], Iterator[None]],
    *,
    at_once: int = 1,
) -> None:
    """Do the work for every text; what goes wrong in a file is said with its line.

    Args:
        work: for several texts, yielding after each.
        at_once: how many are read ahead.
    """
    number = 0
    for texts in _batched(_inputs(args), at_once):
        done = work(texts)
        for _ in texts:
            number += 1
            try:
                next(done)
            except KBertError as error:
                if args.file is None:
                    raise
                raise type(error)(f"{args.file}, line {number}: {error}") from error


def _batched(texts: Iterator[tuple[str, ...]], size: int) -> Iterator[list[tuple[str, ...]]]:
    """Cut a stream into lists of so many; where it breaks off, after what came before."""
    batch: list[tuple[str, ...]] = []
    try:
        for text in texts:
            batch.append(text)
            if len(batch) == size:
                yield batch
                batch = []
    except KBertError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _inputs(args: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """The texts to read: from the command line, or one a line from a file."""
    if args.file is None:
        if not args.text:
            taken = "--relations takes every word after it. " if args.relations else ""
            raise TextError(
                f"No text given. {taken}Write one in quotes first, or name a file with --file."
            )
        yield tuple(args.text)
        return
    if args.text:
        raise OptionError("Both a text and --file are given. Give one of them.")
    with _opened(args.file) as file:
        try:
            for number, line in enumerate(file, start=1):
                text = line.rstrip("\r\n")
                yield tuple(text.split("\t", 1)) if args.pair else (text,)
                if number % PROGRESS_EVERY == 0:
                    print(f"{number} texts", file=sys.stderr)
        except UnicodeDecodeError as error:
            raise TextError(f"{args.file}: not UTF-8 ({error}). Save it as UTF-8.") from error


def _opened(name: str) -> TextIO:
    if name == "-":
        if isinstance(sys.stdin, io.TextIOWrapper):  # else a test's, or a notebook's
            sys.stdin.reconfigure(encoding="utf-8-sig", errors="strict")
        return sys.stdin
    try:
        return open(name, encoding="utf-8-sig")
    except OSError as error:
        raise TextError(f"{name}: can't be read ({error.strerror}). Check the name.") from error
