"""What every triple does: sentences, rows, tables and files, and the page as Streamlit runs it."""

import csv
import html
import io
import re
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest
from explaining import DISEASE, GRAPH, HAS_SYMPTOM, IS_CURE, IS_DISEASE, TEXT
from explaining_pages import PATIENCE, drawn, opened, said, write

from app import background, services
from app.models import ModelInfo
from app.texts import ENGLISH
from app.view_models import effects as view
from app.view_models.effects import bar_html
from kbert_core import Card, InjectionOptions, Mention, Pipeline, Triple
from kbert_core.explain.attention import Attended, AttentionEffect, attention_effect
from kbert_core.explain.case import Case, Outcome, Piece, Target
from kbert_core.explain.effects import (
    Effect,
    Effects,
    Interaction,
    Interactions,
    effects,
    interactions,
    shapley,
)
from kbert_core.explain.result import nats
from kbert_core.knowledge.edit import Edit

INFO = ModelInfo("m", "m", Card("ner"))
ODD = Triple("=cmd()", "<b>", "@x")
BASE, PLAIN = Outcome(0.0, "疾病"), Outcome(-1.5, "O")
HERE = Mention(3, 6, "糖尿病")
LONG = "患者有糖尿病史，胃镜检查见胃溃疡，给予布洛芬口服，头孢曲松静滴后好转"  # ten triples


def effect(triple, size, answer="疾病", **more):
    return Effect(Piece(triple), (HERE,), BASE, Outcome(-size, answer), **more)


def found(*each, total=None):
    return Effects((TEXT,), DISEASE, BASE, PLAIN, each, total or len(each), len(each) + 2)


def text_of(markup):
    return html.unescape(re.sub(r"<[^>]*>", " ", markup))


# In a few sentences


def test_the_triple_that_does_most_is_named_with_what_comes_without_it():
    made = found(effect(HAS_SYMPTOM, 0.5), effect(IS_DISEASE, -2.0, "O"))
    assert view.say_most(made, INFO) == (
        "糖尿病 · 类别 · 疾病 does most, −2.0: without it the prediction is O (none)."
    )
    assert "+0.50; without it the prediction stays 疾病" in view.say_most(
        found(effect(HAS_SYMPTOM, 0.5)), INFO
    )


def test_nothing_is_said_to_do_nothing_before_all_is_known():
    some = effect(IS_DISEASE, 1e-7)
    assert view.say_most(found(some, total=3), INFO) == ""
    assert view.say_most(found(some), INFO) == ENGLISH["effects.nothing"]
    assert view.say_most(found(), INFO) == ""


def test_a_sum_that_is_not_the_whole_is_said_once_all_is_known():
    apart = effect(IS_DISEASE, 1.0), effect(HAS_SYMPTOM, 1.4)  # the whole is 1.5
    assert "sum to +2.4, not to +1.5" in view.say_rest(found(*apart))
    assert view.say_rest(found(*apart, total=3)) == ""
    assert view.say_rest(found(effect(IS_DISEASE, 1.0), effect(HAS_SYMPTOM, 0.45))) == ""


def test_the_whole_is_said_of_one_triple_and_of_several():
    assert view.say_now(found(effect(IS_DISEASE, 1.5)), INFO) == (
        "With knowledge: 疾病. Without any: O (none). The one triple there is: +1.5."
    )
    assert "All 3 triples together: +1.5." in view.say_now(found(total=3), INFO)


def test_the_score_is_named_by_what_is_explained():
    label = ModelInfo("m", "m", Card("classify", notes={"label_names": {"1": "good"}}))
    assert "log-odds of “1 · good”" in view.say_score(Target("1"), (TEXT,), label)
    assert "tags that make “糖尿病” 疾病" in view.say_score(DISEASE, (TEXT,), INFO)
    mask = ModelInfo("m", "m", Card("mask"))
    assert "at the mask" in view.say_score(Target("病", 3, 4), (TEXT,), mask)


# Rows


def test_a_row_says_both_effects_what_flips_and_what_moves_up():
    gone = effect(
        IS_DISEASE, 2.0, "O", deleted=Outcome(-1.0, "疾病"), moved_up=(HAS_SYMPTOM, IS_CURE)
    )
    row = text_of(view.row_html(found(gone), gone, INFO))
    assert re.sub(r"\s+", " ", row).strip() == (
        "糖尿病 · 类别 · 疾病 at “糖尿病” left out +2.0 becomes O (none) "
        "deleted +1.0 糖尿病 · 症状 · 多饮, 布洛芬 · 类别 · 治疗 move up"
    )


def test_rows_have_the_columns_that_the_heads_name():
    one = effect(IS_DISEASE, 1.0, deleted=Outcome(-1.0, "疾病"))
    attended = Attended(one, (0.1, 0.3), (0.01, 0.03))
    for deleted, attention in ((False, False), (True, False), (True, True)):
        heads = view.heads_html(deleted=deleted, attention=attention)
        shown = one if deleted else replace(one, deleted=None)
        row = view.row_html(found(shown), shown, INFO, attended if attention else None)
        count = 2 + deleted + attention
        assert f"kb-eff-{count} " in heads and f"kb-eff-{count}" in row
        assert heads.count("<div") == row.count("<div") == count + 1
        assert ("2.00 %" in row) is attention


def test_rows_and_tables_are_escaped():
    odd = effect(ODD, 1.0, "<i>", deleted=Outcome(-1.0, "<i>"), moved_up=(ODD,))
    made = found(odd, effect(IS_CURE, 0.1))
    pair = Interaction((Piece(ODD), Piece(IS_CURE)), 1.0)
    pairs = Interactions((TEXT,), DISEASE, (pair,), 1, 4)
    attention = AttentionEffect(made, (Attended(odd, (0.0,), (0.1,)),))
    drawn = [view.row_html(made, odd, INFO), view.pairs_html(pairs), view.attention_html(attention)]
    for markup in drawn:
        assert "&lt;b&gt;" in markup
        assert "<b>" not in markup.replace("<b>=cmd()", "") and "<i>" not in markup


@pytest.mark.parametrize(
    ("value", "left", "width", "side"),
    [(2.0, 50, 25, "kb-raises"), (-4.0, 0, 50, "kb-lowers"), (0.0, 50, 0, "kb-raises")],
)
def test_bars_leave_the_middle_to_the_side_of_their_sign(value, left, width, side):
    bar = bar_html(value, 4.0)
    assert f'class="{side}" style="left:{left:.1f}%;width:{width:.1f}%"' in bar
    assert 'style="left:50.0%;width:0.0%"' in bar_html(value, 0.0)


def test_an_interval_is_a_line_that_stays_in_the_bar():
    assert '<u style="left:37.5%;width:25.0%">' in bar_html(0.0, 4.0, (-1.0, 1.0))
    assert '<u style="left:0.0%;width:100.0%">' in bar_html(0.0, 4.0, (-9.0, 9.0))


def test_csv_holds_every_effect_and_guards_formulas():
    made = found(
        replace(
            effect(ODD, 0.5, "O", deleted=Outcome(-0.25, "疾病"), moved_up=(HAS_SYMPTOM,)),
            moved_out=(IS_CURE,),
        ),
        effect(IS_CURE, 2.0),
    )
    rows = list(csv.DictReader(io.StringIO(view.effects_csv(made).decode("utf-8-sig"))))
    assert [row["effect"] for row in rows] == ["0.5", "2.0"]
    assert (rows[0]["head"], rows[0]["tail"]) == ("'=cmd()", "'@x")
    assert rows[0]["moved_up"] == "糖尿病 · 症状 · 多饮"
    assert (rows[0]["moved_out"], rows[1]["moved_out"]) == ("布洛芬 · 类别 · 治疗", "")
    assert (rows[0]["flips"], rows[1]["deleted_effect"]) == ("True", "")


# Pairs, Shapley values, attention: of a tiny model


@pytest.fixture(scope="module")
def case(checkpoints):
    reader = Pipeline.load(checkpoints["ner"], device="cpu")
    return Case.of(reader, TEXT, graph=GRAPH, target=DISEASE)


def test_pairs_are_the_largest_first_and_no_more_than_can_be_read(case):
    pairs = interactions(case)
    numbers = re.findall(r'kb-eff-value">([^<]*)<', view.pairs_html(pairs))
    assert numbers == [nats(pair.value) for pair in pairs.ranked]
    pieces = [Piece(Triple("h", "r", str(n))) for n in range(view.MOST_PAIRS + 5)]
    crowd = tuple(Interaction((a, b), 1.0) for a, b in pairwise(pieces))
    shown = view.pairs_html(Interactions((TEXT,), DISEASE, crowd, len(crowd), 9))
    assert shown.count("<tr>") == 1 + view.MOST_PAIRS


def test_shapley_values_have_an_interval_where_they_are_sampled(case):
    exact, drawn = shapley(case, exact=True), shapley(case, exact=False, orders=8)
    assert "<u " not in view.shapley_html(exact) and "95 %" not in view.shapley_html(exact)
    assert view.shapley_html(drawn).count("<u ") == len(drawn.each)
    assert "by all 8 sets" in view.say_shapley(exact)
    assert "8 orders" in view.say_shapley(drawn) and "seed 0" in view.say_shapley(drawn)
    begun = replace(drawn, each=(), orders=0)
    assert "readings so far" in view.say_shapley(begun)


def test_where_attention_and_effect_part_is_said():
    def made(*pairs):
        each = tuple(
            Attended(effect(Triple("h", "r", str(n)), size), (0.0,), (mass,))
            for n, (mass, size) in enumerate(pairs)
        )
        return AttentionEffect(found(*(one.effect for one in each)), each)

    idle = view.say_attention(made((0.5, 0.01), (0.2, 1.0), (0.1, 0.5)))
    assert "Rank correlation of attention and size of the effect: −0.50, over 3" in idle[0]
    assert "h · r · 0 gets the most, and leaving it out changes the score by +0.010" in idle[1]
    assert view.say_attention(made((0.5, 1.0), (0.1, 0.2), (0.05, 0.1)))[1:] == (
        ENGLISH["effects.agree"],
    )
    assert view.say_attention(made((0.5, 1.0))) == (ENGLISH["effects.no_rho"],)
    unattended = made((0.0, 1.0), (0.0, 0.5), (0.0, 0.2))
    assert view.say_attention(unattended) == (ENGLISH["effects.unattended"],)
    idle_all = made((0.5, 0.0), (0.2, 0.0), (0.1, 0.0))
    assert view.say_attention(idle_all) == (ENGLISH["effects.rho_equal"],)


# The page


@pytest.fixture(autouse=True)
def all_ended():
    """No test leaves a run behind."""
    yield
    for run in list(background._going):
        run.stop()
        run.join(PATIENCE)


def rest(at, name="effects"):
    """Wait for what runs in the background, then look again."""
    if f"flips.{name}" in at.session_state:
        at.session_state[f"flips.{name}"][1].join(PATIENCE)
    at.run()
    assert not at.exception, at.exception
    return at


@pytest.fixture
def page(checkpoints, monkeypatch):
    """Open the page for a task, with another text."""
    monkeypatch.setenv("KBERT_MODELS", str(checkpoints["ner"].parent))

    def show(task="ner", text=TEXT):
        at = opened("flips.py")
        at.session_state["lab.task"] = task
        return rest(write(at, text))

    return show


def case_on(at):
    """The page's scene as a case, with what the page explains."""
    session = at.session_state
    (_, target, _), _ = session["flips.effects"]
    options = InjectionOptions(session["lab.max_triples"], tail_only=session["lab.tail_only"])
    return Case.of(
        services.pipeline(session["lab.model"], session["lab.device"]),
        session["lab.text"],
        graph=session["lab.graphs"][session["lab.graph"]],
        options=options,
        target=target,
    )


@pytest.mark.parametrize("task", ["ner", "classify", "mask"])
def test_every_triple_has_a_row_with_its_exact_effects(page, task):
    at = page(task, TEXT + ("[MASK]" if task == "mask" else ""))
    measured = effects(case_on(at))
    rows = re.findall(r'<div class="kb-eff kb-eff-4">.*', drawn(at))
    assert len(rows) == len(measured.each) > 1
    for row, one in zip(rows, measured.ranked, strict=True):
        shown = text_of(row)
        assert f"{one.piece.triple.head} · {one.piece.triple.relation}" in shown
        assert nats(one.effect) in shown and nats(one.deleted_effect) in shown
        assert ("kb-badge" in row) == bool(one.flips or one.deleted_flips)
    attended = attention_effect(case_on(at)).each
    assert f"{100 * max(one.mass() for one in attended):.2f} %" in drawn(at)


def test_a_row_switches_its_triple_off_in_the_lab(page):
    at = page()
    first = effects(case_on(at)).ranked[0].piece.triple
    buttons = [button for button in at.button if (button.key or "").startswith("flips.off.")]
    with suppress(Exception):  # the test runs one page alone: there is no Lab to go to
        buttons[0].click().run()
    log = at.session_state["lab.logs"][at.session_state["lab.graph"]]
    assert log.done == (Edit("switch_off", first),)


def test_another_label_can_be_explained(page):
    at = page("classify")
    (chooser,) = [box for box in at.selectbox if box.key.startswith("flips.class.")]
    predicted = chooser.value
    other = next(label for label in ("bad", "fair", "good") if label != predicted)
    chooser.set_value(other).run()
    rest(at)
    assert f"log-odds of “{other}”" in said(at)
    (_, target, _), _ = at.session_state["flips.effects"]
    assert target == Target(other)


def test_any_words_of_the_text_can_be_explained_and_others_are_refused(page):
    at = page()
    (chooser,) = [box for box in at.selectbox if box.key.startswith("flips.span.")]
    chooser.select_index(len(chooser.options) - 1).run()
    at.text_input(key="flips.words").set_value("没有").run()
    assert "“没有” doesn't stand in the text" in said(at)
    at.text_input(key="flips.words").set_value("口服").run()
    rest(at)
    (_, target, _), _ = at.session_state["flips.effects"]
    assert (target.start, target.end) == (12, 14)
    assert "tags that make “口服”" in said(at)


def test_words_that_stand_several_times_are_explained_where_they_are_meant(page):
    at = page("ner", TEXT + "，再予布洛芬口服")
    (chooser,) = [box for box in at.selectbox if box.key.startswith("flips.span.")]
    chooser.select_index(len(chooser.options) - 1).run()
    at.text_input(key="flips.words").set_value("口服").run()
    at.number_input(key="flips.place.2").set_value(2).run()
    rest(at)
    (_, target, _), _ = at.session_state["flips.effects"]
    assert (target.start, target.end) == (len(TEXT) + 6, len(TEXT) + 8)


def test_any_token_can_be_explained_at_a_mask_and_others_are_refused(page):
    at = page("mask", TEXT + "[MASK]")
    (chooser,) = [box for box in at.selectbox if box.key.startswith("flips.token.")]
    chooser.select_index(len(chooser.options) - 1).run()
    at.text_input(key="flips.typed_token").set_value("<b>").run()
    assert "The model has no token" in said(at)
    at.text_input(key="flips.typed_token").set_value("病").run()
    rest(at)
    assert "log-odds of “病” at the mask" in said(at)


def test_of_several_masks_the_one_meant_is_asked_for(page):
    at = page("mask", "[MASK]" + TEXT + "[MASK]")
    (chooser,) = [box for box in at.selectbox if box.key.startswith("flips.token.")]
    chooser.select_index(len(chooser.options) - 1).run()
    assert at.number_input(key="flips.mask.2").label == ENGLISH["effects.mask"]
    at.number_input(key="flips.mask.2").set_value(2)
    at.text_input(key="flips.typed_token").set_value("病").run()
    rest(at)
    (_, target, _), _ = at.session_state["flips.effects"]
    assert target.start == len("[MASK]" + TEXT)


def test_a_text_without_knowledge_says_so(page):
    at = page("classify", "好转")
    assert ENGLISH["effects.title"] in said(at)
    assert ENGLISH["scene.no_triple"].partition("{")[0] in said(at)
    assert not [button for button in at.button if (button.key or "").startswith("flips.off.")]


def test_many_triples_wait_to_be_asked_for(page, monkeypatch):
    monkeypatch.setattr("app.app_pages.flips_effects.AT_ONCE", 1)
    at = page()
    assert "flips.effects" not in at.session_state
    at.button(key="flips.measure").click().run()
    rest(at)
    assert "kb-eff-4" in drawn(at)


def test_a_stopped_measurement_can_be_begun_again(page):
    at = page()
    run = at.session_state["flips.effects"][1]
    run._state = background.State.STOPPED
    at.run()
    at.button(key="flips.effects.again").click().run()
    rest(at)
    assert at.session_state["flips.effects"][1] is not run
    assert "kb-eff-4" in drawn(at)


def test_pairs_are_measured_when_asked_for(page):
    at = page()
    at.session_state["flips.more"] = "pairs"
    at.run()
    assert "flips.pairs" not in at.session_state
    at.button(key="flips.pairs_start").click().run()
    rest(at, "pairs")
    first = interactions(case_on(at)).ranked[0]
    assert nats(first.value) in drawn(at)


def test_shapley_values_of_few_triples_are_exact(page):
    at = page()
    at.session_state["flips.more"] = "shapley"
    at.run()
    at.button(key="flips.shapley_start").click().run()
    rest(at, "shapley")
    values = shapley(case_on(at))
    assert values.exact and f"Exact, by all {2 ** len(values.each)} sets" in said(at)
    assert nats(values.ranked[0].value) in drawn(at)


def test_shapley_values_of_more_triples_are_sampled_unless_every_set_is_asked_for(
    page, monkeypatch
):
    monkeypatch.setattr("app.app_pages.flips_further.EXACT_UP_TO", 2)
    at = page()
    at.session_state["flips.more"] = "shapley"
    at.run()
    at.select_slider(key="flips.orders").set_value(16).run()
    at.button(key="flips.shapley_start").click().run()
    rest(at, "shapley")
    assert re.search(r"16 orders, \d+ readings, seed 0", said(at))
    assert drawn(at).count("<u ") == len(case_on(at).pieces)
    at.checkbox(key="flips.exact").check().run()
    assert "16 orders" not in said(at)
    at.button(key="flips.shapley_start").click().run()
    rest(at, "shapley")
    assert "Exact, by all 16 sets" in said(at)


def test_attention_stands_beside_effect_and_cls_sees_no_branch(page):
    at = page("classify")
    assert "The tokens explained are [CLS] alone" in said(at)
    (table,) = [item.proto.body for item in at.get("html") if 'kb-effs">' in item.proto.body]
    assert table.count("<td>0.00 %</td>") == len(attention_effect(case_on(at)).each)
    assert "Attention is not explanation" in said(at) or ENGLISH["effects.agree"] in said(at)


def test_another_text_measures_anew(page):
    at = page()
    before = at.session_state["flips.effects"]
    rest(write(at, LONG))
    assert at.session_state["flips.effects"][1] is not before[1]
    assert before[1].look().ended
