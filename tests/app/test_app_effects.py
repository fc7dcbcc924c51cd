"""Effects: sentences, the table and the chart, and the page as Streamlit runs it."""

import math

import pytest
from explaining import DISEASE, HAS_SYMPTOM, IS_CURE, IS_DISEASE, TEXT
from explaining_pages import PATIENCE, opened, said, write
from sessions import do, session

from app import services
from kbert_core import Card, Mention, Triple
from kbert_core.explain.attributions import Attributions, TokenShare, attributions
from kbert_core.explain.case import Case, Fact, Outcome, Target
from kbert_core.explain.effects import Effect, Effects, effects
from kbert_lab.explain.attention import Attended, AttentionEffect
from kbert_lab.lab.models import ModelInfo, read_model
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import explaining as view
from kbert_lab.lab.views.targets import answer_name

INFO = ModelInfo("m", "m", Card("ner"))
ODD = Triple("=cmd()", "<b>", "@x")
BASE, PLAIN = Outcome(0.0, "疾病"), Outcome(-1.5, "O")
HERE = Mention(3, 6, "糖尿病")
LONG = "患者有糖尿病史，胃镜检查见胃溃疡，给予布洛芬口服，头孢曲松静滴后好转"  # ten triples


def effect(triple, size, answer="疾病", **more):
    return Effect(Fact(triple), (HERE,), BASE, Outcome(-size, answer), **more)


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
    assert made.say() == (
        "With knowledge: 疾病. Without any: O (none). All triples together (2): 8.2 % → 36.8 % "
        "(+28.6 points). 糖尿病 · 类别 · 疾病 does most: without it 36.8 % → "
        f"{100 * chance(-2.0):.1f} % ({view.points(less)}), and the prediction is O (none)."
    )


def test_nothing_is_said_to_do_nothing_before_all_is_known():
    some, nothing = effect(IS_DISEASE, 1e-7), t("No triple changes this prediction.")
    assert nothing not in shown(found(some, total=3)).say()
    assert nothing in shown(found(some)).say()
    assert nothing not in shown(found()).say()


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
    assert row["then"] == "+ 糖尿病 · 症状 · 多饮 · + 布洛芬 · 类别 · 治疗"


def test_columns_are_those_that_were_measured_the_largest_effect_first():
    one, other = effect(IS_DISEASE, 0.1), effect(IS_CURE, -1.0)
    attended = Attended(one, (0.1, 0.3), (0.01, 0.03))
    made = found(one, other)
    assert list(shown(made).table()) == ["triple", "at", "left out", "adds"]
    table = shown(made, attention=AttentionEffect(made, (attended,))).table()
    assert table["triple"][0] == "布洛芬 · 类别 · 治疗"
    assert table["attention"] == [None, pytest.approx(2.0)]


def test_tokens_are_bars_in_reading_order_with_the_sum_over_each_triple():
    odd = Fact(ODD, 0)
    shares = Attributions(
        (TEXT,),
        DISEASE,
        0.9,
        0.1,
        (
            TokenShare("患", 0.3, 0, 0),
            TokenShare("<i>", 0.2, 0, 1),
            TokenShare("<b>", 0.35, fact=odd),
            TokenShare("x", -0.25, fact=odd),
        ),
    )
    figure = view.tokens_chart(shares)
    assert [list(bar.y) for bar in figure.data] == [
        pytest.approx([30, 20]),
        pytest.approx([35, -25]),
    ]
    assert "<b>" not in "".join(figure.layout.xaxis.ticktext) + figure.data[1].name
    assert view.points(10.0) in figure.data[1].name
    made = shown(found(effect(ODD, 1.0)), shares=shares)
    assert made.table()["its tokens add"] == [pytest.approx(10.0)]
    assert "10.0 % → 90.0 %" in made.say_shares()


def test_where_attention_and_effect_part_is_said():
    def made(*pairs):
        each = tuple(
            Attended(effect(Triple("h", "r", str(n)), size), (0.0,), (mass,))
            for n, (mass, size) in enumerate(pairs)
        )
        measured = found(*(one.effect for one in each))
        return shown(measured, attention=AttentionEffect(measured, each)).say_attention()

    assert made((0.5, 0.01), (0.2, 1.0), (0.1, 0.5)) == (
        "Rank correlation of attention and size of the effect: −0.50 (3).",
        "h · r · 0 gets the most attention, and adds +0.4 points only.",
    )
    assert made((0.1, 1.0), (0.5, 0.9))[0] == (
        "h · r · 0 does most (+23.3 points), and is only number 2 by attention."
    )
    assert made((0.5, 1.0)) == ()


# The page


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
    by_name = {measured.name(one): one for one in measured.each}
    for row in table.to_dict("records"):
        one = by_name[row["triple"]]
        before, after = (case.target.probability(o.score, labels) for o in (one.base, one.without))
        assert row["adds"] == pytest.approx(100 * (before - after), abs=1e-3)
        assert row["its tokens add"] == pytest.approx(100 * shares.of(one.fact), abs=1e-2)
        assert bool(row.get("becomes")) == one.flips
    assert len(at.get("plotly_chart")) == 1


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


def test_any_words_of_the_text_can_be_explained_where_they_are_meant_and_others_are_refused(page):
    at = page("ner", TEXT + "，再予布洛芬口服")
    chooser(at).select_index(len(chooser(at).options) - 1).run()
    at.text_input(key="explain.words").set_value("没有").run()
    assert t("“{text}” is not in the text.", text="没有") in said(at)
    at.text_input(key="explain.words").set_value("口服").run()
    rest(at)
    assert (target_on(at).start, target_on(at).end) == (12, 14)
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
    assert f"This text contains no triple of {session(at).base.name}" in said(at)
    assert not at.dataframe and len(at.get("plotly_chart")) == 1


def test_many_triples_wait_to_be_asked_for(page, monkeypatch):
    monkeypatch.setattr("app.app_pages.explain_parts.AT_ONCE", 1)
    at = page()
    assert "explain.effects" not in at.session_state
    at.button(key="explain.measure").click().run()
    rest(at)
    assert at.dataframe


def test_another_text_measures_anew(page):
    at = page()
    before = at.session_state["explain.effects"]
    rest(write(at, LONG))
    assert at.session_state["explain.effects"][1] is not before[1]
    assert before[1].look().ended


def test_answers_of_spans_are_named_by_their_text(checkpoints):
    info = read_model(str(checkpoints["ner"]))
    text = "患者有糖尿病史给予布洛芬口服好转"
    assert answer_name("疾病 [3, 5), 治疗 [9, 12)", info, text) == "“糖尿” 疾病, “布洛芬” 治疗"
    assert answer_name("O", info, text) == "O (none)"
