"""`kbert tree`, `predict` and `rank`: texts read with a graph.

What needs PyTorch is imported when a command is run.
"""

import logging
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pkgutil import resolve_name
from typing import Any

from kbert_core.errors import CheckpointError, OptionError, TextError
from kbert_core.kbert.flat_tree import FlatTree, PlacedBranch
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.mentions import Mention, PassedOver
from kbert_core.knowledge.selection import LeftOut, Reason
from kbert_core.text import Tokenizer
from kbert_core.words import AS_BERT, WITHOUT_MARKS, Characters, Words
from kbert_lab.cli import commands as options
from kbert_lab.cli.commands import arguments_of, command, loaded
from kbert_lab.cli.output import SHOWN, TRIPLE, count_of, placed, prediction_text, text_of
from kbert_lab.cli.texts import TEXT, Texts, each_text, lines_of
from kbert_lab.data.tagging import words_are_spaced

log = logging.getLogger(__name__)
TEXTS_AT_ONCE = 1000  # of a file that are predicted together
MOST_TOKENS = 5_000  # whose matrix is printed
CUT = "the text is over the length limit"


@dataclass(frozen=True)
class Corpus:
    """A corpus that is read in parallel.

    Args:
        data (CORPUS): folder of .txt, .jsonl or .parquet files, one text a line or row; or one such
            file
        output (DIR): for the results; a run that was stopped goes on there
        workers: processes; default: all cores, or all GPUs
        cluster (HOST:PORT): of Ray; default: this machine alone
    """

    data: str | None = None
    output: str | None = None
    workers: int | None = None
    cluster: str | None = None


CORPUS = arguments_of(Corpus, title="a corpus, read in parallel")


@dataclass(frozen=True)
class Rows:
    """The rows that a text is read in (windows, if several), and names that are no mentions."""

    rows: Sequence[FlatTree]
    ablation: Ablation
    passed_over: Sequence[PassedOver] = ()

    def __post_init__(self) -> None:
        if self.ablation.positions == "hard":
            rows = [row.with_hard_positions() for row in self.rows]
            object.__setattr__(self, "rows", rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; of several rows each by itself, in a list of windows."""
        rows = [self._row(row) for row in self.rows]
        return rows[0] if len(rows) == 1 else {"windows": rows}

    def text(self) -> str:
        """The trunk, and under each mention its branches; every token with its soft position."""
        lines: list[str] = []
        for number, row in enumerate(self.rows, start=1):
            if len(self.rows) > 1:
                lines.append(f"window {number} of {len(self.rows)}:")
            lines += _drawn(row, len(self._mentions_in(row)))
        first = self.rows[0]
        for passed in self.passed_over:
            lines.append(f"no mention: {_place(first, passed.mention)['text']}, {passed.why}")
        for cut in first.trunk_cuts:
            kept = f"{cut.kept} of its {cut.total} tokens"
            lines.append(f"cut: sentence {cut.sentence + 1} keeps {kept}")
        return "\n".join(lines)

    def _row(self, row: FlatTree) -> dict[str, Any]:
        from kbert_core.kbert.flat_tree import collate

        if len(row) > MOST_TOKENS:
            raise OptionError(
                f"The visible matrix of {len(row):,} tokens is too large to print; up to "
                f"{MOST_TOKENS:,} are shown. Give a --max-length, or go without --json."
            )
        batch = collate([row])
        visible = self.ablation.visible_in(batch)[0].int().tolist()
        codes = ("tokens", "soft_positions", "branch_ids", "anchor_ids")
        return {
            **{name: getattr(row, name) for name in codes},
            "segment_ids": self.ablation.segment_ids(batch)[0].tolist(),
            "mentions": [*_mentions(row, self._mentions_in(row))],
            "passed_over": [{**_place(row, p.mention), "why": p.why} for p in self.passed_over],
            "dropped": _left_out_and_cut(row, row.left_out),
            "visible": ["".join(map(str, line)) for line in visible],
        }

    def _mentions_in(self, row: FlatTree) -> Sequence[int]:
        """Numbers of the mentions: all, or of a window those that stand in it."""
        if len(self.rows) == 1:
            return range(len(row.tree.nodes))
        return sorted({anchor - 1 for anchor in row.anchor_ids if anchor})


@command("tree", TEXT, options.GRAPH, options.FORM, options.SYSTEM, options.AS_TASK)
def tree(
    args: Namespace,
    *,
    words: bool = False,
    model: str | None = None,
    special: bool = False,
) -> None:
    """Show the sentence tree of a text.

    Without --words or --model, a text mostly of Latin letters is split into words, marks
    and Chinese characters, any other into characters. A model's tokenizer always adds its special
    tokens, and its length limit counts.

    Args:
        words: one token per word or mark, none cut by a mention
        model (DIR): show the rows that this model reads
        special: add [CLS] and [SEP]
    """
    if words and model:
        raise OptionError("Both --words and --model say what a token is. Give one of them.")
    rows_of = _rows_of_model(args) if model else _rows_without_model(args)
    each_text(args, lambda texts: map(rows_of, texts), Rows.text)


def _rows_of_model(args: Namespace) -> Callable[[Sequence[str]], Rows]:
    """The rows that a model reads, made by itself."""
    from kbert_core.kbert.sentence_tree import passed_over

    pipeline, graph, config = loaded(args, device="cpu")
    if pipeline.reader.inserts:
        raise CheckpointError(
            f"The model's system, '{pipeline.card.system}', grows no tree. See what it reads "
            "of the graph with `kbert link`."
        )

    def rows_of(sentences: Sequence[str]) -> Rows:
        reading: Any
        (reading,) = pipeline.readings([sentences], graph=graph, config=config)
        over = passed_over(reading.tree, graph, config.options.names)
        return Rows(reading.rows, config.ablation, over)

    return rows_of


def _rows_without_model(args: Namespace) -> Callable[[Sequence[str]], Rows]:
    """Rows of words, for scripts with spaces between them, or of characters."""
    from kbert_core.kbert.flat_tree import flatten
    from kbert_core.kbert.sentence_tree import grow_trees, passed_over
    from kbert_core.kbert.visible import ReadConfig
    from kbert_core.scoring import scorer_of

    if (system := options.system_of(args)) not in (None, ReadConfig.system):
        raise OptionError(f"--system {system} reads word pieces. Name a model with --model.")
    graph, config = options.graph_of(args), options.config_of(args, ReadConfig())
    how = config.options
    scorer = scorer_of(how, None) if how.needs_model else None

    def rows_of(sentences: Sequence[str]) -> Rows:
        tokenizer: Tokenizer = Characters(special=args.special)
        if args.words or words_are_spaced(sentences):
            word = WITHOUT_MARKS if args.words else AS_BERT
            tokenizer = Words(special=args.special, word=word)
        words = None
        if args.words:
            tokens = tokenizer.tokenize(sentences)
            words = [tuple(zip(t.starts, t.ends, strict=True)) for t in tokens]
        trees = grow_trees([sentences], graph, how, words=[words], scorer=scorer)
        rows = flatten(trees, tokenizer, max_length=config.max_length)
        over = passed_over(trees[0], graph, how.names, words)
        return Rows(rows, config.ablation, over)

    return rows_of


@command(
    "predict",
    *(TEXT, options.MODEL, options.LABEL_THRESHOLD, options.GATE, CORPUS, options.COLUMNS),
)
def predict(args: Namespace, *, compare: bool = False) -> dict[str, Any] | None:
    """Predict with a model and a graph.

    Args:
        compare: also predict without knowledge
    """
    if args.data or args.output:
        corpus: dict[str, Any] = resolve_name("kbert_lab.cli.corpus:predict_corpus")(args)
        return corpus
    pipeline, graph, config = loaded(args, why=options.NO_HEAD)

    def predicted(texts: Texts) -> Iterator[Mapping[str, Any]]:
        return predictions(texts, pipeline, graph, config, compare=compare)

    at_once = 1 if args.file in (None, "-") else TEXTS_AT_ONCE
    each_text(args, predicted, prediction_text, at_once=at_once)
    return None


def predictions(
    texts: Texts, pipeline: Any, graph: Any, config: Any, *, compare: bool = False
) -> Iterator[dict[str, Any]]:
    """Predict, as plain data: with knowledge, what was read of it, and to compare without."""
    from kbert_core.pipeline import NO_KNOWLEDGE

    readings = pipeline.read(texts, graph=graph, config=config)
    plain = pipeline.predict(texts, graph=NO_KNOWLEDGE, config=config)
    for sentences, read in zip(texts, readings, strict=True):
        data: dict[str, Any] = {
            "text": text_of(sentences),
            "prediction": _plain(read.prediction),
            "triples": [{name: getattr(t, name) for name in TRIPLE} for t in read.used],
            "dropped": _dropped(read),
        }
        if compare:
            data["without_knowledge"] = _plain(next(plain))
        yield data


@command("rank", options.READING)
def rank(
    args: Namespace,
    question: str,
    answer: tuple[str, ...] = (),
    *,
    candidates: str | None = None,
    compare: bool = False,
    model: str,
) -> dict[str, Any]:
    """Put candidate answers to a question in order.

    Args:
        question: in quotes
        answer: candidate answers, each in quotes
        candidates (FILE): file of candidate answers, one per line
        compare: also predict without knowledge
        model (DIR): a model of the task rank
    """
    from kbert_core.pipeline import NO_KNOWLEDGE

    more = lines_of(candidates) if candidates else ()
    answers = [*answer, *(line for line in more if line.strip())]
    if not answers:
        raise TextError(
            "No candidate answer given. Write them after the question, or name a file of one a "
            "line with --candidates FILE."
        )
    pipeline, graph, config = loaded(args, likely="rank")
    data: dict[str, Any] = {"question": question}
    for key, knowledge in (("answers", graph), ("without_knowledge", NO_KNOWLEDGE)):
        if key == "answers" or compare:
            ranked = pipeline.rank(question, answers, graph=knowledge, config=config)
            data[key] = [*map(asdict, ranked)]
    texts = [(question, answer) for answer in answers]
    readings = pipeline.readings(texts, graph=graph, config=config)
    cut = sum(any(row.trunk_cuts for row in reading.rows) for reading in readings)
    if cut:
        log.warning(
            "%d of %d candidates are longer than the length limit and were cut", cut, len(answers)
        )
    return data


# Trees and predictions, as plain data and for reading


def _dropped(reading: Any) -> list[dict[str, Any]]:
    """What of a text's knowledge was left out, and what was cut of the text."""
    row = reading.rows[0]
    if isinstance(row, FlatTree):
        return _left_out_and_cut(row, reading.left_out)
    ends = [own.ends[-1] if len(own) else 0 for own in reading.tokens]
    return [
        {"sentence": number, "start": end, "text": text[end:], "rule": CUT}
        for number, (text, end) in enumerate(zip(reading.sentences, ends, strict=True))
        if text[end:].strip()
    ]


def _left_out_and_cut(
    row: FlatTree, left_out: Iterable[tuple[int, LeftOut]]
) -> list[dict[str, Any]]:
    """The triples that were left out, each with its mention, and what was cut of the text."""
    nodes = row.tree.nodes
    items = [
        {"mention": _place(row, nodes[n].mention)["text"], **_left_out(left)}
        for n, left in left_out
    ]
    for cut in row.trunk_cuts:
        start = row.trunk_tokens[cut.sentence].starts[cut.kept]
        text = row.tree.sentences[cut.sentence][start:]
        items.append({"sentence": cut.sentence, "start": start, "text": text, "rule": CUT})
    return items


def _mentions(row: FlatTree, numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Mentions, each with its triples that were used and those left out."""
    found = _by_mention(row)
    for number in numbers:
        mention, (branches, left_out) = row.tree.nodes[number].mention, found[number]
        used = [branch.branch for branch in branches]
        yield {
            **_place(row, mention),
            **({"rules": [r.name.lower() for r in mention.rules]} if mention.rules else {}),
            **({"others": list(mention.others)} if mention.others else {}),
            "used": [{**asdict(branch.triple), **_why(branch.reason)} for branch in used],
            "left_out": [*map(_left_out, left_out)],
        }


def _by_mention(row: FlatTree) -> dict[int, tuple[list[PlacedBranch], list[LeftOut]]]:
    """The branches that hang in a row, and the triples left out, by the number of their mention."""
    found: Any = defaultdict(lambda: ([], []))
    for branch in row.branches:
        found[branch.node][0].append(branch)
    for number, left in row.left_out:
        found[number][1].append(left)
    return found


def _drawn(row: FlatTree, mentions: int) -> Iterator[str]:
    """One row: a line for each run of the trunk, the branches below it."""
    found = _by_mention(row)
    trunk = [index for index, branch in enumerate(row.branch_ids) if not branch]
    for anchor, run in groupby(trunk, key=row.anchor_ids.__getitem__):
        if not anchor:
            yield f"  {_tokens(row, run)}"
            continue
        mention, (branches, left_out) = row.tree.nodes[anchor - 1].mention, found[anchor - 1]
        rules = "".join(f"; {rule}" for rule in mention.rules)
        yield f"● {_tokens(row, run)}   ({mention.entity}{rules})"
        for branch in branches:
            reason = branch.branch.reason
            why = "" if reason in (None, Reason()) else f"   ({reason})"
            mark = "└" if branch is branches[-1] else "├"
            yield f"  {mark}─ {_tokens(row, range(branch.start, branch.end))}{why}"
        for left in left_out[:SHOWN]:
            yield f"     left out: {left.triple}, {left.why}"
        if len(left_out) > SHOWN:
            yield f"     … and {len(left_out) - SHOWN:,} more; --json has all"
    counts = (len(row), "token"), (mentions, "mention"), (len(row.branches), "branch")
    said = [count_of(*each) for each in counts]
    yield ", ".join([*said, f"{count_of(len(row.left_out), 'triple')} left out"])


def _tokens(row: FlatTree, places: Iterable[int]) -> str:
    return " ".join(f"{row.tokens[i]}/{row.soft_positions[i]}" for i in places)


def _place(row: FlatTree, mention: Mention) -> dict[str, Any]:
    return placed(mention, row.tree.sentences, "entity")


def _left_out(left: LeftOut) -> dict[str, Any]:
    return {**asdict(left.triple), "rule": str(left.rule), **_why(left.reason, left.why)}


def _why(reason: Reason | None, rule: str = "") -> dict[str, Any]:
    """Why a triple was used or, with its score, left out; nothing where the rule says it all."""
    if reason is None or (rule and reason.score is None):
        return {}
    score = {} if reason.score is None else {"score": round(reason.score, 4)}
    return {"why": rule or str(reason), **score}


def _plain(prediction: Any) -> dict[str, Any]:
    return prediction.as_dict() if hasattr(prediction, "as_dict") else asdict(prediction)
