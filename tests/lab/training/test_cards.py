"""What a model's card says of it, by what the model is."""

import json
import shlex
from pathlib import Path

import pytest

from kbert_core.checkpoints.checkpoint import Card, card_of
from kbert_core.kbert.visible import ReadConfig
from kbert_core.knowbert.knowbert import KnowBertConfig
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.plain_text import PlainTextConfig
from kbert_lab.cli import parser
from kbert_lab.cli.commands import COMMANDS, build, injection_of
from kbert_lab.training.cards import card_text, edits_followed, follows_graph, invented_followed
from kbert_lab.training.options import Recipe, TrainOptions

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "models"
shipped = pytest.mark.parametrize(
    "folder", sorted(file.parent for file in MODELS.glob("*/config.json")), ids=lambda p: p.name
)
TYPES = {"疾病": "D", "检查": "E"}
SCORES = {"dev": {"precision": 0.5, "recall": 0.5, "f1": 0.5}}
TRUSTS = "also follows a wrong triple"


def lines(card):
    return card_text("m", card).splitlines()


def test_a_model_without_knowledge_says_nothing_of_knowledge():
    notes = {"data": "reviews", "recipe": {"counterfactual": 0.0}, "scores": SCORES}
    said = lines(Card("classify", notes=notes))
    assert "- Knowledge: none, in training as later" in said
    assert "| dev | 50.0 | 50.0 | 50.0 |" in said
    text = "\n".join(said)
    for word in ("twin", "triple", "its knowledge", "Recipe", "medical", "decisions"):
        assert word not in text


def test_a_model_with_knowledge_says_what_is_injected():
    options = InjectionOptions(max_triples=1, relations=("is_a", "treats"))
    notes = {"recipe": {"tree_dropout": 0.1, "invented": 0.0}, "scores": SCORES}
    said = lines(Card("pair", ReadConfig(options), knowledge=("HowNet",), notes=notes))
    assert "- Knowledge: HowNet; relation and tail of is_a, treats, at most 1 triple a mention" in (
        said
    )
    assert "- Recipe: tree dropout 0.1" in said
    assert "| dev, with its knowledge | 50.0 | 50.0 | 50.0 |" in said
    assert TRUSTS not in "\n".join(said)
    tails = lines(Card("pair", ReadConfig(InjectionOptions(tail_only=True)), knowledge=("HowNet",)))
    assert "- Knowledge: HowNet; tail only, at most 2 triples a mention" in tails
    vectors = lines(Card("ner", KnowBertConfig(), knowledge=("HowNet",)))
    assert (
        "- Knowledge: HowNet; entity vectors of “{head} {relation} {tail}”, at most 2 triples an "
        "entity"
    ) in vectors
    assert "- System: plain-text" in lines(Card("pair", PlainTextConfig(), knowledge=("HowNet",)))


def test_a_twin_that_hides_mentions_says_which():
    notes = {
        "recipe": {"counterfactual": 0.25, "mention_dropout": 0.3},
        "hiding_knowledge": ["Medical"],
    }
    said = lines(Card("ner", notes=notes))
    assert "- Recipe: mention dropout 0.3, of the mentions that Medical knows" in said
    assert TRUSTS not in "\n".join(said)


@pytest.mark.parametrize(
    ("recipe", "types", "follows"),
    [
        ({"counterfactual": 0.25}, TYPES, True),
        ({"counterfactual": 0.25}, {"疾病": "D"}, False),
        ({"invented": 0.3}, {"疾病": "D"}, True),
        ({"counterfactual": 0.25, "invented": 0.3}, {}, False),
        ({"counterfactual": 0.0, "mention_dropout": 0.3}, TYPES, False),
        ({"counterfactual": "much"}, TYPES, False),
        (None, TYPES, False),
        ({"counterfactual": 0.25}, None, False),
    ],
)
def test_a_model_trusts_its_graph_only_where_training_could_teach_it(recipe, types, follows):
    assert follows_graph({"recipe": recipe, "type_labels": types}) is follows
    if isinstance(types, dict) and recipe and "much" not in recipe.values():
        card = Card("ner", knowledge=("kg",), notes={"recipe": recipe, "type_labels": types})
        assert (TRUSTS in card_text("m", card)) is follows


def test_a_model_that_follows_few_edits_says_so():
    few = {"dev": {"unseen": {"new": 0.5, "n": 2}, "seen": {"new": 0.0, "n": 8}}}
    few["dev"]["invented"] = {"D": {"n": 3, "followed": 1.0}, "E": {"n": 1, "followed": 0.0}}
    notes = {"recipe": {"counterfactual": 0.25}, "type_labels": TYPES, "edit_response": few}
    assert edits_followed(notes) == 0.1
    said = card_text("m", Card("ner", knowledge=("kg",), notes=notes))
    assert "\n- Edits that it follows, of names in its data: 10 % on dev\n" in said
    assert "\n- Edits that it follows, of invented names: 75 % on dev\n" in said
    assert "| | edits | D | E |\n|---|---|---|---|\n| dev | 4 | 100 % | 0 % |\n" in said
    assert TRUSTS not in said


def test_only_what_reads_medicine_warns_of_medical_decisions():
    for card in (
        Card("ner", knowledge=("Medical",), notes={"data": "notes"}),
        Card("ner", notes={"data": "bc5cdr_en"}),
        Card("ner", knowledge=("kg",), notes={"type_labels": TYPES}),
    ):
        assert "- Not for medical decisions." in lines(card)
    assert "medical" not in card_text("m", Card("pair", knowledge=("HowNet",), notes={"data": "q"}))


@shipped
def test_a_shipped_card_says_what_its_model_was_saved_with(folder):
    """The page is made of the scores and command in ``config.json``, and of nothing else."""
    assert (folder / "README.md").read_text("utf-8") == card_text(folder.name, card_of(str(folder)))


@shipped
def test_the_command_of_a_shipped_card_makes_a_model_that_reads_as_this_one_does(folder):
    card = card_of(str(folder))
    program, *words = shlex.split(card.notes["command"])
    assert program == "kbert"
    args = parser().parse_args(words)
    if card.task == "mask":
        assert args.command is COMMANDS["pretrain"]
        return
    options = build(TrainOptions, args, recipe=build(Recipe, args))
    assert options.task == card.task
    epochs = options.optimiser.epochs
    assert (options.run.seed, epochs) == (card.notes["seed"], card.notes["epochs"])
    assert [Path(name).name.partition(".")[0] for name in args.kg] == list(card.knowledge)
    recipe = card.notes["recipe"]
    assert {name: getattr(options.recipe, name) for name in recipe} == recipe
    if card.knowledge:
        assert injection_of(args, InjectionOptions()) == card.reading.options


def test_the_page_of_the_models_says_what_share_of_edits_each_follows():
    page = (ROOT / "models" / "README.md").read_text("utf-8").splitlines()
    rows = {line.split("`")[1]: line for line in page if "invented names |" in line}
    assert len(rows) == 4
    for name, row in rows.items():
        notes = card_of(str(MODELS / name)).notes
        known, new = edits_followed(notes, "test"), invented_followed(notes, "test")
        shares = f"{known:.0%} of edits of names in its data and {new:.0%} of invented names"
        assert shares.replace("%", " %") in row


def test_the_figures_of_sentence_matching_are_those_of_the_one_reading():
    made = json.loads((ROOT / "results" / "matching.json").read_text("utf-8"))
    counted = "counting shared characters, with the threshold that is best on train"
    cells = {counted: [*made["counting shared characters"].values()]}
    for title, model, key in (
        ("`matching-zh`, HowNet", "matching-zh", "accuracy"),
        ("`matching-zh`, graph off", "matching-zh", "graph off"),
        ("`matching-zh-bert`, the twin", "matching-zh-bert", "accuracy"),
    ):
        cells[title] = [read[key] for read in made["tested once"] if read["model"] == model]
    page = (ROOT / "models" / "README.md").read_text("utf-8").splitlines()
    for title, of in cells.items():
        assert f"| {title} | {' | '.join(f'{100 * share:.1f}' for share in of)} |" in page
