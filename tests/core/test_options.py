"""Options declared once: groups, limits, and what they need to be read."""

import math
import re
import subprocess
import sys
from dataclasses import dataclass

import pytest

from kbert_core.errors import OptionError
from kbert_core.kbert.visible import ReadConfig
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.surface_forms import RULES
from kbert_core.options import Options, group, option, option_fields
from kbert_core.tasks import TASKS
from kbert_lab.cli.commands import described
from kbert_lab.data.files import NEEDED
from kbert_lab.training.options import PretrainOptions, TrainOptions


@dataclass(frozen=True)
class Rate(Options):
    learning_rate: float = option(1e-3, above=0)
    warmup: float = option(0.1, share=True)


@dataclass(frozen=True)
class Run(Options):
    output: str = option()
    device: str = option("cpu", choices=("cpu", "cuda"))


@dataclass(frozen=True)
class Training(Options):
    run: Run = group(Run)
    rate: Rate = group(Rate)
    epochs: int = option(4, least=1)


def test_options_of_all_groups_are_given_and_changed_by_their_names():
    made = Training.of(output="m", warmup=0.2)
    assert made == Training(Run("m"), Rate(warmup=0.2))
    assert made.changed(epochs=2, output="n").flat() == {
        **{"output": "n", "device": "cpu", "learning_rate": 1e-3, "warmup": 0.2, "epochs": 2}
    }
    assert list(option_fields(Training)) == list(made.flat())
    with pytest.raises(TypeError, match="Training has no option 'warm': output, device"):
        Training.of(output="m", warm=1)
    with pytest.raises(TypeError, match="output"):
        Training.of()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs is 0, expected at least 1"),
        ({"warmup": 1.5}, r"warmup is 1\.5, expected a share from 0 to 1"),
        ({"learning_rate": float("nan")}, "learning_rate is nan, expected a number"),
        ({"device": "tpu"}, "device is 'tpu', expected one of cpu, cuda"),
    ],
)
def test_an_option_outside_its_limits_is_named(changes, message):
    with pytest.raises(OptionError, match=message):
        Training.of(output="m", **changes)


RELATIONS = "expected a list, each a text or None"


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (lambda: InjectionOptions(max_triples=1.5), "max_triples is 1.5, expected a whole number."),
        (lambda: InjectionOptions(max_triples=True), "max_triples is True, expected a whole num"),
        (lambda: InjectionOptions(max_triples="2"), "max_triples is '2', expected a whole number."),
        (lambda: InjectionOptions(threshold="x", strategy="rare"), "expected a number or None."),
        (
            lambda: InjectionOptions(threshold=math.nan, strategy="rare"),
            "is nan, expected a number",
        ),
        (lambda: InjectionOptions(tail_only="no"), "tail_only is 'no', expected True or False."),
        (
            lambda: InjectionOptions(relations="x类别y"),
            f"{RELATIONS}. Put a single one into a list",
        ),
        (lambda: InjectionOptions(relations=[1]), f"relations is (1,), {RELATIONS}."),
        (lambda: InjectionOptions(not_relations="不用类别的"), "not_relations is '不用类别的'"),
        (lambda: InjectionOptions(names="all"), "names is 'all', expected a NameRules."),
        (lambda: InjectionOptions(strategy=5), "strategy is '5', expected one of first"),
        (lambda: InjectionOptions.from_dict({"names": "all"}), "names is 'all', expected a list"),
        (lambda: InjectionOptions.from_dict({"relations": "类别"}), f"'类别', {RELATIONS}"),
        (lambda: ReadConfig(max_length=1.5), "max_length is 1.5, expected a whole number or None."),
        (lambda: ReadConfig(windows="yes"), "windows is 'yes', expected True or False."),
        (
            lambda: ReadConfig(interventions=1),
            "interventions is 1, expected a list, each of any kind.",
        ),
        (lambda: ReadConfig(options={}), "options is {}, expected an InjectionOptions."),
        (lambda: Training.of(output=7), "output is 7, expected a text."),
        (lambda: Training.of(output="m", learning_rate="1"), "expected a number."),
    ],
)
def test_an_option_of_another_type_is_refused_by_name(made, wrong):
    with pytest.raises(OptionError, match=re.escape(wrong)):
        made()


def test_several_relations_may_be_given_in_any_collection_of_texts():
    for relations in (("a", "b"), ["a", "b"], {"b", "a"}):
        assert InjectionOptions(relations=relations).relations == ("a", "b")


def test_every_option_of_training_says_what_it_is_and_no_name_stands_twice():
    for kind in (TrainOptions, PretrainOptions, InjectionOptions):
        assert {*option_fields(kind)} - {"recipe"} <= {*described(kind)[1]}
    assert all(rule in described(InjectionOptions)[1]["names"][1] for rule in RULES)
    assert {*NEEDED, "link", "qa"} == set(TASKS)  # the tasks that can be named; two read no table


def test_options_are_read_without_pytorch():
    code = "import sys, kbert_lab.training.options; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
