"""Options of training and pretraining, by concern.

Nothing here needs PyTorch, so that a command line that only shows its help is quick.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbert_core.errors import OptionError
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.options import Options, group, option, option_fields
from kbert_core.systems import SYSTEMS
from kbert_lab.data.files import NEEDED, DataFiles

SCRATCH = "scratch"
SIZE = {"hidden_size": 256, "num_hidden_layers": 4}  # of a BERT from scratch
LARGEST_SEED = 2**32 - 1  # that NumPy takes
SPECIAL_TOKENS = 5  # of a vocabulary made from the text


@dataclass(frozen=True)
class RunOptions(Options):
    """Where and how something is trained.

    Attributes:
        output (DIR): folder for the model; a run that was cut off is resumed there
        seed: of all random numbers
        device: auto, cpu or cuda
        bf16: compute in bfloat16; default: on CUDA
        gradient_checkpointing: keep only the inputs of layers and compute the rest again: less
            memory, more time
        log_every (N): steps
        again: train again, even if --output holds the model of this run
        command: what was typed, for the model's card
    """

    output: str = option()
    seed: int = option(0)
    device: str = option("auto")
    bf16: bool | None = option(None)
    gradient_checkpointing: bool = option(False)
    log_every: int = option(50, least=1)
    again: bool = option(False)
    command: str = option("", flag=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.seed <= LARGEST_SEED:
            raise OptionError(
                f"seed is {self.seed}, expected a whole number from 0 to {LARGEST_SEED}."
            )
        for path in (Path(self.output), *Path(self.output).parents):
            if path.is_file():
                raise OptionError(f"{path} is a file. Name a folder for the model.")


HOW_IT_RUNS = option_fields(RunOptions).keys() - {"seed"}  # may differ when a run goes on


@dataclass(frozen=True)
class KnowledgeOptions(Options):
    """What is injected in training, and how texts are read.

    Attributes:
        kg (FILE): files of triples, in order; none: the twin without knowledge
        hiding_kg: files of triples for a twin without kg: what the recipe would hide of a text read
            with them is hidden, and nothing injected
        system (NAME): how knowledge is read: k-bert, as branches; plain-text, written after the
            text; lexicon, added to the states of a name's tokens; knowbert, as vectors between two
            layers; roof-bert, by a second encoder; default: the encoder's card, else k-bert
        base (NAME|JSON): a knowledge base of knowbert, from bottom to top: graph, wordnet, or
            options as JSON; default: the encoder's card, else graph
        roof (JSON): options of roof-bert, such as {"layers": 2, "expand": 0}; default: the
            encoder's card
        skip_bad: leave bad lines of a graph out and log them
        injection: None: as the encoder's card says, else relation and tail, 2 triples
        max_length (N): in tokens; default: the card's or the encoder's
        windows: read a text over the length limit in overlapping windows, if the task can; without
            it the end is cut; default: the encoder's card, else on
        ablation: how trees are read; None: as the encoder's card says
    """

    kg: tuple[str, ...] = option(())
    hiding_kg: tuple[str, ...] = option((), flag=None)
    system: str | None = option(None, choices=SYSTEMS)
    base: tuple[str, ...] = option(())
    roof: str = option("")
    skip_bad: bool = option(False)
    injection: InjectionOptions | None = option(None, flag=None)
    max_length: int | None = option(None)
    windows: bool | None = option(None)
    ablation: Ablation | None = option(None, flag=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hiding_kg and self.kg:
            raise OptionError("Both kg and hiding_kg are given. Give kg, or for a twin hiding_kg.")


@dataclass(frozen=True)
class StartOptions(Options):
    """What a model starts from, and which of its parameters are trained.

    Attributes:
        encoder (DIR|NAME|package:NAME|scratch): encoder to start from: a folder, a name on the hub,
            package:NAME for an installed Python package, or scratch, a new small BERT with a
            vocabulary of the training set
        adapter (RANK): train only a low-rank adapter (8 or 16 is usual) and the task head; the
            encoder stays as it is. If --encoder is an adapter of this rank, it is trained further
        dropout: of the encoder
        hidden_size: of a BERT from scratch; default: 256
        num_hidden_layers: of a BERT from scratch; default: 4
    """

    encoder: str = option(SCRATCH)
    adapter: int | None = option(None, least=1)
    dropout: float = option(0.1, share=True)
    hidden_size: int | None = option(None, least=1)
    num_hidden_layers: int | None = option(None, least=1, flag="--layers")

    def __post_init__(self) -> None:
        super().__post_init__()
        width = self.size["hidden_size"]
        if self.adapter and self.encoder == SCRATCH:
            raise OptionError(
                "An adapter needs a pretrained encoder, and a new one was asked for. "
                "Name one with --encoder, or leave --adapter out."
            )
        for name in SIZE:
            if self.encoder != SCRATCH and (given := getattr(self, name)) is not None:
                raise OptionError(
                    f"{name} is {given}, but it is only for a BERT trained from scratch; "
                    f"{self.encoder} has its own size. Leave it out, or leave the encoder out."
                )
        if width % max(1, width // 64):
            raise OptionError(
                f"hidden_size is {width}, which attention heads of width 64 don't divide. Give a "
                "multiple of 64."
            )

    @property
    def size(self) -> dict[str, int]:
        """Width and layers of a BERT from scratch."""
        return {name: getattr(self, name) or usual for name, usual in SIZE.items()}


@dataclass(frozen=True)
class OptimiserOptions(Options):
    """What is read in a step of training, and how far a step goes.

    Attributes:
        epochs: times through the training set
        steps (N): train so many steps, however often they go through the training set; dev is
            scored --epochs times, at equal distances. So models whose rows differ in length are
            compared at equal steps
        negatives (N): for answer selection: wrong answers per question that an epoch reads, drawn
            anew each time; default: all
        batch_tokens: tokens read at once by each process, padding included
        accumulate (N): number of batches per step; like a larger batch, in less memory
        learning_rate: default: 1e-3 for an adapter, 5e-4 from scratch, 4e-4 for encoders up to 384
            wide, else 5e-5
        patience: stop after this many epochs without a better dev score; 0: never
    """

    epochs: int = option(4, least=1)
    steps: int | None = option(None, least=1)
    negatives: int | None = option(None, least=1)
    batch_tokens: int = option(1024, least=16)
    accumulate: int = option(1, least=1)
    learning_rate: float | None = option(None, above=0)
    patience: int = option(0, least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps is not None and self.steps < self.epochs:
            raise OptionError(
                f"steps is {self.steps}, fewer than the {self.epochs} times (epochs) that dev is "
                "scored. Give more steps or fewer epochs."
            )


def _share() -> Any:
    return option(0.0, share=True)


@dataclass(frozen=True)
class Recipe(Options):
    """What happens to knowledge during training; all shares are probabilities.

    A mention is *gold* where the training set labels just these characters.

    Attributes:
        counterfactual (P): share of gold mentions that get the tail of another type, and its label;
            teaches the model to follow the graph, wrong triples too
        mention_dropout (P): share of gold mentions with branches whose characters are hidden, half
            by the mask token, half by random ones
        mismatch_hiding (P): share of names with branches that aren't gold mentions: hidden in the
            same way; named entities only. Given the mention dropout's share, what is hidden is no
            more often an entity than what isn't
        branch_dropout (P): share of branches that are left out
        tree_dropout (P): share of sentences that are read without knowledge
        invented (P): share of sentences in which a name that the graph doesn't know gets a branch
            that names a type, and this type as its label; teaches the model to trust where a
            branch's name begins and ends. Half of the names are gold mentions, half are other words
        new_names (P): share of sentences whose mentions get other names of their types, from
            another sixth of training's names in each epoch; named entities only. So names are worth
            less to learn by heart, and what the graph says of them more; at 1 a name is new when
            its epoch begins
        mismatch_dropout (P): share of branches left out at names that aren't gold mentions, if more
            than the branch dropout; named entities only. With it a match is right as often in
            training as later (`kbert audit` tells how often)
    """

    counterfactual: float = _share()
    mention_dropout: float = _share()
    mismatch_hiding: float = _share()
    branch_dropout: float = _share()
    tree_dropout: float = _share()
    invented: float = _share()
    new_names: float = _share()
    mismatch_dropout: float = _share()


@dataclass(frozen=True)
class TrainOptions(Options):
    """How to fine-tune.

    Attributes:
        task: kind of task
        links (DIR|FILE): for knowbert: entity links that train its linker, in steps between those
            of the task (Algorithm 1, the multitask stage)
        link_share (P): share of the steps that train the linker
        float32: save in single precision instead of half
    """

    task: str = option(choices=(*NEEDED, "link", "qa"))
    run: RunOptions = group(RunOptions)
    files: DataFiles = group(DataFiles)
    start: StartOptions = group(StartOptions)
    knowledge: KnowledgeOptions = group(KnowledgeOptions)
    optimiser: OptimiserOptions = group(OptimiserOptions)
    recipe: Recipe = field(default_factory=Recipe)
    links: str = option("")
    link_share: float = option(0.2, share=True)
    float32: bool = option(False)

    def __post_init__(self) -> None:
        super().__post_init__()
        negatives, start = self.optimiser.negatives, self.start
        if negatives is not None and self.task != "rank":
            raise OptionError(
                f"negatives is {negatives}, and is for answer selection (task rank) alone; the "
                f"task is '{self.task}'. Leave it out."
            )
        if self.links and (self.task == "link" or self.link_share == 1):
            raise OptionError(
                "links train the linker beside another task. Name that task with --task and leave "
                "it some of the steps, or give the links as --data."
            )
        if start.adapter:
            from kbert_lab.training.adapting import check_options  # needs PyTorch

            check_options(start.adapter, encoder=start.encoder, output=self.run.output)


@dataclass(frozen=True)
class CorpusOptions(Options):
    """The text to pretrain on, and the tokens made of it.

    Attributes:
        text (FILE): text files with one passage per line, packed (.xz, .gz, .bz2, .zst) or not
        exclude (FILE): test sets (.tsv, .txt, .xz, or .json in SQuAD's form); passages that contain
            one of their texts are left out (white space doesn't matter)
        vocabulary (DIR): use the vocabulary of this model; default: made from the text
        row_length: tokens of a packed row
        vocabulary_size: at most this many tokens
        word_pieces: so many of these for words of Latin letters and digits; 0: characters alone
        min_count: characters seen less often are unknown
    """

    text: tuple[str, ...] = option()
    exclude: tuple[str, ...] = option(())
    vocabulary: str | None = option(None)
    row_length: int = option(128, least=8)
    vocabulary_size: int = option(6000, least=8)
    word_pieces: int = option(0, least=0)
    min_count: int = option(10, least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.vocabulary and self.word_pieces > self.vocabulary_size - SPECIAL_TOKENS:
            raise OptionError(
                f"word_pieces is {self.word_pieces}, more than a vocabulary_size of "
                f"{self.vocabulary_size} has room for beside {SPECIAL_TOKENS} special tokens. Give "
                "fewer pieces or a larger vocabulary."
            )
        if self.vocabulary and self.word_pieces:
            raise OptionError("Both vocabulary and word_pieces are given. Give one of them.")


@dataclass(frozen=True)
class BertOptions(Options):
    """The size of a BERT to pretrain.

    Attributes:
        hidden_size: of the BERT
        num_hidden_layers: of the BERT
        num_attention_heads: of the BERT
        max_positions: of the BERT
        dropout: of the BERT
    """

    hidden_size: int = option(256, least=1)
    num_hidden_layers: int = option(4, least=1, flag="--layers")
    num_attention_heads: int = option(4, least=1, flag="--attention-heads")
    max_positions: int = option(512)
    dropout: float = option(0.0, share=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % self.num_attention_heads:
            raise OptionError(
                f"hidden_size is {self.hidden_size}, which {self.num_attention_heads} attention "
                "heads don't divide. Give a multiple of their number."
            )


@dataclass(frozen=True)
class PretrainSteps(Options):
    """How long to pretrain, and at what rate.

    The rate is reached after ``warmup`` steps and kept until the last
    ``decay`` of the steps after those, in which it falls linearly to 0. So a
    run can be given more steps, or cut short, until it begins to fall.

    Attributes:
        steps: number of optimiser steps; a run that is resumed may have more
        batch_tokens: tokens read at once, by each process
        accumulate (N): number of batches per step
        learning_rate: after warm-up
        warmup: steps in which the learning rate rises, at most half of all
        decay: share of the steps after the warm-up in which the learning rate falls
        save_every: steps between checkpoints
    """

    steps: int = option(10_000, least=1)
    batch_tokens: int = option(2048)
    accumulate: int = option(1, least=1)
    learning_rate: float = option(1e-3, above=0)
    warmup: int = option(500, least=0)
    decay: float = option(0.25, share=True)
    save_every: int = option(500, least=1)

    @property
    def warmup_steps(self) -> int:
        """Steps in which the rate rises: ``warmup``, at most half of all."""
        return min(self.warmup, self.steps // 2)

    @property
    def decay_steps(self) -> int:
        """Steps in which the rate falls."""
        return max(1, round(self.decay * (self.steps - self.warmup_steps)))

    def same_rates(self, other: "PretrainSteps", done: int) -> bool:
        """Whether the shares of the rate are those of another plan, up to a step."""
        plans = {(of.warmup_steps, of.steps - of.decay_steps, of.steps) for of in (self, other)}
        stable = min(begins for _, begins, _ in plans)  # steps until one begins to fall
        return len(plans) == 1 or (done <= stable and self.warmup_steps == other.warmup_steps)


@dataclass(frozen=True)
class PretrainOptions(Options):
    """How to pretrain."""

    corpus: CorpusOptions = group(CorpusOptions)
    run: RunOptions = group(RunOptions)
    bert: BertOptions = group(BertOptions)
    optimiser: PretrainSteps = group(PretrainSteps)

    def __post_init__(self) -> None:
        row = self.corpus.row_length
        if self.optimiser.batch_tokens < row:
            raise OptionError(
                f"batch_tokens is {self.optimiser.batch_tokens}, less than a row of {row}. "
                "Give at least one row's tokens."
            )
        if self.bert.max_positions < row:
            raise OptionError(
                f"max_positions is {self.bert.max_positions}, less than a row of {row}. "
                "Give at least a row's length."
            )

    @property
    def rows(self) -> int:
        """Rows that a process reads at once."""
        return self.optimiser.batch_tokens // self.corpus.row_length
