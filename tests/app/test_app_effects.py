"""Effects: sentences, the table and the chart, and the page as Streamlit runs it."""

import math
from contextlib import suppress
from types import SimpleNamespace

import pytest
from explaining import DISEASE, HAS_SYMPTOM, IS_CURE, IS_DISEASE, TEXT
from explaining_pages import PAGES, PATIENCE, opened, said, write
from sessions import do, session
from streamlit.testing.v1 import AppTest

from app import background, services
from kbert_core import Card, Mention, Triple
from kbert_core.explain.attributions import Attributions, TokenShare, attributions
from kbert_core.explain.case import Case, Outcome, Piece, Target
from kbert_core.explain.effects import Effect, Effects, effects
from kbert_core.knowledge.edit import Edit
from kbert_lab.explain.attention import Attended, AttentionEffect, attention_effect
from kbert_lab.lab.models import ModelInfo, read_model
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import effects as view
from kbert_lab.lab.views.targets import answer_name

INFO = ModelInfo("m", "m", Card("ner"))
ODD = Triple("=cmd()", "<b>", "@x")
BASE, PLAIN = Outcome(0.0, "疾病"), Outcome(-1.5, "O")
HERE = Mention(3, 6, "糖尿病")
LONG = "患者有糖尿病史，胃镜检查见胃溃疡，给予布洛芬口服，头孢曲松静滴后好转"  # ten triples


def effect(triple, size, answer="疾病", **more):
    return Effect(Piece(triple), (HERE,), BASE, Outcome(-size, answer), **more)


def found(*each, total=None):
    return Effects((TEXT,), DISEASE, BASE, PLAIN, each, total or len(each), len(each) + 2)


def chance(score):
    """e to the score, so that expectations can be reckoned by hand."""
    return math.exp(score - 1)


def shown(made, **beside):
    return view.View(made, INFO, chance, **beside)


# In a few sentences


def test_the_triple_that_does_most_is_named_with_what_comes_without_it():
    made = shown(found(effect(HAS_SYMPTOM, 0.5), effect(IS_DISEASE, 2.0, "O")))
    less = 100 * (chance(-2.0) - chance(0.0))
    assert made.say_most() == t(
        "{triple} does most: without it {change} ({points}), and the prediction becomes {answer}.",
        triple="糖尿病 · 类别 · 疾病",
        change=f"36.8 % → {100 * chance(-2.0):.1f} %",
        points=view.points(less),
        answer=made.answer("O"),
    )
    assert view.points(less) == t("{value} points", value="−31.8")
    stays = shown(found(effect(HAS_SYMPTOM, 0.5)))
    assert stays.say_most().endswith(
        t(
            "{triple} does most: without it {change} ({points}); the prediction stays {answer}.",
            triple="",
            change="",
            points="",
            answer="疾病",
        )[-5:]
    )


def test_nothing_is_said_to_do_nothing_before_all_is_known():
    some = effect(IS_DISEASE, 1e-7)
    assert shown(found(some, total=3)).say_most() == ""
    assert shown(found(some)).say_most() == t("No triple changes this prediction.")
    assert shown(found()).say_most() == ""


def test_a_sum_that_is_not_the_whole_is_said_once_all_is_known():
    apart = effect(IS_DISEASE, 1.0), effect(HAS_SYMPTOM, 1.4)
    total = 100 * (2 * chance(0.0) - chance(-1.0) - chance(-1.4))
    whole = 100 * (chance(0.0) - chance(-1.5))
    said_ = t(
        "The single effects sum to {sum}, not to {whole}: triples need or replace each other.",
        sum=view.points(total),
        whole=view.points(whole),
    )
    assert shown(found(*apart)).say_rest() == said_
    assert shown(found(*apart, total=3)).say_rest() == ""
    assert shown(found(effect(IS_DISEASE, 1.5), effect(HAS_SYMPTOM, 0.0))).say_rest() == ""


def test_the_probability_is_named_by_what_is_explained():
    label = ModelInfo("m", "m", Card("classify", notes={"label_names": {"1": "good"}}))
    assert view.say_chance(Target("1"), (TEXT,), label) == t(
        "Shown: the probability of “{label}”.", label="1 · good"
    )
    span = t(
        "Shown: the probability that “{text}” is {label} (the geometric mean over its tokens).",
        text="糖尿病",
        label="疾病",
    )
    assert view.say_chance(DISEASE, (TEXT,), INFO) == span
    mask = ModelInfo("m", "m", Card("mask"))
    assert view.say_chance(Target("病", 3, 4), (TEXT,), mask) == t(
        "Shown: the probability of “{label}” at the mask.", label="病"
    )


@pytest.mark.parametrize(
    ("value", "text"), [(-88.94, "−88.9"), (0.04, "0.0"), (-0.04, "0.0"), (3, "+3.0")]
)
def test_points_have_a_sign_unless_they_round_to_nothing(value, text):
    assert view.points(value) == t("{value} points", value=text)


# The table, the chart


def test_a_row_says_both_effects_what_flips_and_what_moves_up():
    gone = effect(
        IS_DISEASE, 2.0, "O", deleted=Outcome(-1.0, "疾病"), moved_up=(HAS_SYMPTOM, IS_CURE)
    )
    row = {name: column[0] for name, column in shown(found(gone)).table().items()}
    assert row["triple"] == "糖尿病 · 类别 · 疾病" and row["at"] == t("“{text}”", text="糖尿病")
    assert row["adds"] == pytest.approx(100 * (chance(0) - chance(-2)))
    assert row["adds, if deleted"] == pytest.approx(100 * (chance(0) - chance(-1)))
    assert row["becomes"] == t("O (none)")
    moved = "糖尿病 · 症状 · 多饮, 布洛芬 · 类别 · 治疗"
    assert row["then"] == t("{triples} move up", triples=moved)


def test_columns_are_those_that_were_measured_the_largest_effect_first():
    one, other = effect(IS_DISEASE, 0.1), effect(IS_CURE, -1.0)
    attended = Attended(one, (0.1, 0.3), (0.01, 0.03))
    made = found(one, other)
    assert list(shown(made).table()) == ["triple", "at", "left out", "adds", "becomes"]
    table = shown(made, attention=AttentionEffect(made, (attended,))).table()
    assert table["triple"][0] == "布洛芬 · 类别 · 治疗"
    assert table["attention"] == [None, pytest.approx(2.0)]


def test_tokens_are_bars_in_reading_order_with_the_sum_over_each_triple():
    odd = Piece(ODD, 0)
    shares = Attributions(
        (TEXT,),
        DISEASE,
        0.9,
        0.1,
        (
            TokenShare("患", 0.3, 0, 0),
            TokenShare("<i>", 0.2, 0, 1),
            TokenShare("<b>", 0.35, piece=odd),
            TokenShare("x", -0.25, piece=odd),
        ),
    )
    figure = view.tokens_chart(shares)
    assert [list(bar.y) for bar in figure.data] == [
        pytest.approx([30, 20]),
        pytest.approx([35, -25]),
    ]
    assert figure.data[1].x[0] > figure.data[0].x[-1] + 1
    assert "<b>" not in "".join(figure.layout.xaxis.ticktext)
    assert view.points(10.0) in figure.layout.annotations[1].text
    one = effect(ODD, 1.0)
    made = shown(found(one), shares=shares)
    assert made.table()["its tokens add"] == [pytest.approx(10.0)]
    left = t("The shares leave {points} unexplained.", points=view.points(20.0))
    assert left in made.say_shares() and "10.0 % → 90.0 %" in made.say_shares()


def test_where_attention_and_effect_part_is_said():
    def made(*pairs):
        each = tuple(
            Attended(effect(Triple("h", "r", str(n)), size), (0.0,), (mass,))
            for n, (mass, size) in enumerate(pairs)
        )
        measured = found(*(one.effect for one in each))
        return shown(measured, attention=AttentionEffect(measured, each)).say_attention()

    def points(size):
        return view.points(100 * (chance(0.0) - chance(-size)))

    idle = made((0.5, 0.01), (0.2, 1.0), (0.1, 0.5))
    assert idle == (
        t(
            "Rank correlation of attention and size of the effect: {rho}, over {count} triples.",
            rho="−0.50",
            count="3",
        ),
        t(
            "Attention is not explanation: {triple} gets the most, and adds {effect} only; "
            "{strongest} adds {strongest_effect}.",
            triple="h · r · 0",
            effect=points(0.01),
            strongest="h · r · 1",
            strongest_effect=points(1.0),
        ),
    )
    assert made((0.5, 1.0), (0.1, 0.2), (0.05, 0.1))[1:] == (
        t(
            "Here attention and effect agree: the triple with the most attention has an effect, "
            "and the one with the largest effect gets attention."
        ),
    )
    assert made((0.5, 1.0)) == (t("A rank correlation needs three triples."),)
    assert made((0.0, 1.0), (0.0, 0.5), (0.0, 0.2)) == (
        t(
            "The trunk gives no triple any attention, so there is nothing to compare the effects "
            "with."
        ),
    )
    assert made((0.5, 0.0), (0.2, 0.0), (0.1, 0.0)) == (
        t(
            "There is no rank correlation: all triples get the same attention, or all have the "
            "same effect."
        ),
    )


# The page


@pytest.fixture(autouse=True)
def all_ended():
    """No test leaves a run behind."""
    yield
    for run in list(background._going):
        run.stop()
        run.join(PATIENCE)


def rest(at):
    """Wait for what runs in the background, then look again."""
    if "explain.effects" in at.session_state:
        at.session_state["explain.effects"][1].join(PATIENCE)
    at.run()
    assert not at.exception, at.exception
    return at


@pytest.fixture
def page(checkpoints, monkeypatch):
    """Open the page for a task, with another text."""
    monkeypatch.setenv("KBERT_MODELS", str(checkpoints["ner"].parent))

    def show(task="ner", text=TEXT):
        at = opened("explain.py")
        do(at, task=task)
        return rest(write(at, text))

    return show


def case_on(at):
    """The page's scene as a case, with what the page explains."""
    session = at.session_state
    (_, target), _ = session["explain.effects"]
    own = session["session"]
    return Case.of(
        services.pipeline(own.model, own.device),
        own.texts[0],
        graph=own.base,
        options=own.options,
        target=target,
    )


def by_points(case):
    labels = case.pipeline.labels

    def size(one):
        before, after = (case.target.probability(o.score, labels) for o in (one.base, one.without))
        return -abs(before - after)

    return sorted(effects(case).each, key=size)


def target_on(at):
    return at.session_state["explain.effects"][0][1]


def chooser(at):
    return at.selectbox(key="explain.target")


@pytest.mark.parametrize("task", ["ner", "classify", "mask"])
def test_every_triple_has_a_row_with_its_exact_effects_and_its_tokens_shares(page, task):
    at = page(task, TEXT + ("[MASK]" if task == "mask" else ""))
    case = case_on(at)
    measured, labels = effects(case), case.pipeline.labels
    (table,) = [frame.value for frame in at.dataframe]
    assert len(table) == len(measured.each) > 1
    shares = attributions(case, probability=True)
    masses = {one.piece: 100 * one.mass() for one in attention_effect(case).each}
    by_name = {measured.name(one): one for one in measured.each}
    for row in table.to_dict("records"):
        one = by_name[row["triple"]]
        before, after = (case.target.probability(o.score, labels) for o in (one.base, one.without))
        assert row["adds"] == pytest.approx(100 * (before - after), abs=1e-3)
        assert row["its tokens add"] == pytest.approx(100 * shares.of(one.piece), abs=1e-2)
        assert row["attention"] == pytest.approx(masses[one.piece], abs=1e-3)
        assert bool(row["becomes"]) == one.flips
    assert len(at.get("plotly_chart")) == 1


def test_the_chosen_row_switches_its_triple_off_in_the_lab(page, monkeypatch):
    chosen = SimpleNamespace(selection=SimpleNamespace(rows=[0]))
    monkeypatch.setattr("streamlit.dataframe", lambda *_, **__: chosen)
    at = page()
    first = by_points(case_on(at))[0].piece.triple
    with suppress(Exception):  # the test runs one page alone: there is no Lab to go to
        at.button(key="explain.off").click().run()
    assert session(at).scene().edits == (Edit("switch_off", first),)


def test_another_label_can_be_explained(page):
    at = page("classify")
    predicted = chooser(at).value
    other = next(Target(label) for label in ("bad", "fair", "good") if label != predicted.label)
    chooser(at).set_value(other).run()
    rest(at)
    assert target_on(at) == other


def test_each_of_two_mentions_of_one_name_can_be_explained(page, monkeypatch):
    mentions = (Target("O", 3, 6), Target("O", 20, 23))
    monkeypatch.setattr("kbert_lab.lab.views.targets.targets", lambda *_, **__: mentions)
    at = page(text=f"{TEXT}，{TEXT}")
    for number, name in enumerate(("“糖尿病” O (none)", "“糖尿病” O (none) (2)")):
        chooser(at).select_index(chooser(at).options.index(name)).run()
        rest(at)
        assert target_on(at) == mentions[number]


def test_any_words_of_the_text_can_be_explained_and_others_are_refused(page):
    at = page()
    chooser(at).select_index(len(chooser(at).options) - 1).run()
    at.text_input(key="explain.words").set_value("没有").run()
    assert t("“{text}” is not in the text.", text="没有") in said(at)
    at.text_input(key="explain.words").set_value("口服").run()
    rest(at)
    assert (target_on(at).start, target_on(at).end) == (12, 14)


def test_words_that_stand_several_times_are_explained_where_they_are_meant(page):
    at = page("ner", TEXT + "，再予布洛芬口服")
    chooser(at).select_index(len(chooser(at).options) - 1).run()
    at.text_input(key="explain.words").set_value("口服").run()
    at.number_input(key="explain.place").set_value(2).run()
    rest(at)
    assert (target_on(at).start, target_on(at).end) == (len(TEXT) + 6, len(TEXT) + 8)


def test_any_token_can_be_explained_at_the_mask_meant_and_others_are_refused(page):
    at = page("mask", "[MASK]" + TEXT + "[MASK]")
    chooser(at).select_index(len(chooser(at).options) - 1).run()
    at.number_input(key="explain.mask").set_value(2)
    at.text_input(key="explain.token").set_value("<b>").run()
    assert t("The model has no token “{token}”.", token="<b>") in said(at)
    at.text_input(key="explain.token").set_value("病").run()
    rest(at)
    assert (target_on(at).label, target_on(at).start) == ("病", len("[MASK]" + TEXT))


def test_a_text_without_knowledge_says_so_and_its_tokens_have_shares(page):
    at = page("classify", "好转")
    graph = session(at).base.name
    assert t(
        "This text contains no triple of {graph}, so there is no knowledge to explain. Choose "
        "another text or graph in the Lab, or add a triple there.",
        graph=graph,
    ) in said(at)
    assert not at.dataframe and len(at.get("plotly_chart")) == 1


def test_many_triples_wait_to_be_asked_for(page, monkeypatch):
    monkeypatch.setattr("app.app_pages.explain_effects.AT_ONCE", 1)
    at = page()
    assert "explain.effects" not in at.session_state
    at.button(key="explain.measure").click().run()
    rest(at)
    assert at.dataframe


def test_a_stopped_measurement_can_be_begun_again(page):
    at = page()
    run = at.session_state["explain.effects"][1]
    run._state = background.State.STOPPED
    at.run()
    at.button(key="explain.effects.again").click().run()
    rest(at)
    assert at.session_state["explain.effects"][1] is not run
    assert at.dataframe


def test_cls_sees_no_branch_and_that_is_said(page):
    assert t(
        "The tokens explained are [CLS] alone. Under the visible matrix it sees no branch, so it "
        "gives them no attention in any layer: what they do comes through the mention."
    ) in said(page("classify"))


def test_another_text_measures_anew(page):
    at = page()
    before = at.session_state["explain.effects"]
    rest(write(at, LONG))
    assert at.session_state["explain.effects"][1] is not before[1]
    assert before[1].look().ended


def test_an_address_asks_for_a_part(checkpoints, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(checkpoints["ner"].parent))
    at = AppTest.from_file(PAGES / "explain.py", default_timeout=PATIENCE)
    at.query_params["part"] = "paths"
    at.run()
    assert not at.exception
    assert at.session_state["explain.part"] == "paths"


def test_an_address_of_what_left_names_where_it_is_now(page):
    at = page("classify")
    at.query_params["part"] = "noise"
    at.run()
    assert "notebook `08_knowledge_noise`" in said(at) and "`kbert explain noise TEXT`" in said(at)


def test_answers_of_spans_are_named_by_their_text(checkpoints):
    info = read_model(str(checkpoints["ner"]))
    text = "患者有糖尿病史给予布洛芬口服好转"
    assert answer_name("疾病 [3, 5), 治疗 [9, 12)", info, text) == "“糖尿” 疾病, “布洛芬” 治疗"
    assert answer_name("O", info, text) == "O (none)"
