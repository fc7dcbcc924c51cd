"""Does a model read better whose training holds names out, fold by fold?

    python -m benchmarks.folds --seeds 1 2 3

The names of train are dealt to as many folds as there are epochs. In an epoch every mention has a
name of one fold: another name of the same type stands in the place of each that is in another fold.
So a model has never been told the label of a name that it meets for the first time in its epoch,
as of a name of test, and branches are worth as much as there. BERT and K-BERT (as in the paper) are
trained so on the suite ``medical-ner-random``, and compared with the suite's rows. What is done is
kept in ``--work``; the summary stands in ``results/folds.json``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.variants import arguments, beside, scored, trained
from kbert_core.data.labelled import Example
from kbert_core.data.splits import renamed
from kbert_core.experiments.grid import Experiment
from kbert_core.experiments.suite import Run, read_suite
from kbert_core.training import finetune
from kbert_core.training.finetune import Fitted
from kbert_core.training.rows import RowMaker, TrainingRow

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "results" / "folds.json"
BERT, KBERT = "BERT", "K-BERT (paper), MedicalKG"
BY_FOLD = {BERT: "BERT, names by fold", KBERT: "K-BERT (paper), names by fold"}
FOLDS = 6  # the suite's epochs


def by_fold(train: Sequence[Example], folds: int, seed: int) -> list[list[Example]]:
    """Return train once for each fold, with no name but those of the fold."""
    random = np.random.default_rng(seed)
    mentioned = {e.sentences[0][a:b] for e in train for a, b, _ in e.spans}
    names = np.array(sorted(mentioned), object)
    fold = random.permutation(np.arange(len(names)) % folds)
    return [renamed(train, {*names[fold != own]}, random) for own in range(folds)]


class ByFold(RowMaker):
    """Makes an epoch's rows of the examples of its fold."""

    def __post_init__(self) -> None:
        super().__post_init__()
        how = {"config": self.config, "type_labels": self.type_labels, "seed": self.seed}
        common = (self.task, self.reader, self.labels, self.graph)
        folds = by_fold(self.examples, FOLDS, self.seed)
        self.folds = [RowMaker(own, *common, **how) for own in folds]

    def rows(self, numbers: Sequence[int], epoch: int) -> list[list[TrainingRow]]:
        return self.folds[epoch % FOLDS].rows(numbers, epoch)


def trained_by_fold(experiment: Experiment, name: str, seed: int, work: Path) -> dict[str, Any]:
    run = experiment.suite.row(name)
    assert isinstance(run, Run) and run.train["epochs"] == FOLDS
    folder = work / f"{'bert' if name == BERT else 'k-bert'}-seed{seed}"

    def train() -> Fitted:
        with mock.patch.object(finetune, "RowMaker", ByFold):
            return trained(experiment, run, seed, folder)

    return scored(experiment, folder, train)


def main() -> None:
    args = arguments(__doc__, ROOT / "runs" / "folds")
    experiment = Experiment(read_suite(ROOT / "results" / "suites" / "medical-ner-random.yaml"))
    made = {
        title: {seed: trained_by_fold(experiment, name, seed, args.work) for seed in args.seeds}
        for name, title in BY_FOLD.items()
    }
    about = {
        "what": "models whose training holds names out by fold, beside those trained as ever",
        "command": f"python -m benchmarks.folds --seeds {' '.join(map(str, args.seeds))}",
        "folds": FOLDS,
    }
    pairs = [*((title, name) for name, title in BY_FOLD.items()), (BY_FOLD[KBERT], BY_FOLD[BERT])]
    beside(RESULT, about, experiment, made, pairs)


if __name__ == "__main__":
    main()
