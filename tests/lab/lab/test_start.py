"""The small pictures of Start, and what the guided play says."""

import pytest

from app import services
from kbert_lab.lab.examples import EXAMPLES, FIRST, SCENES
from kbert_lab.lab.texts import speaking
from kbert_lab.lab.views.start import flip_html, picture_html, play_steps

BY_KEY = {example.key: example for example in EXAMPLES}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_scene_has_a_picture_of_its_own(language):
    drawn = set()
    with speaking(language):
        for scene in SCENES:
            example = BY_KEY[scene.example or FIRST[language]]
            drawn.add(picture_html(scene, example, services.demo_graph(example.graph)))
    assert len(drawn) == len(SCENES) == 6


def test_a_picture_shows_the_flip_of_its_own_sentence():
    with speaking("en"):
        off, wrong = (flip_html(BY_KEY["copd"], edit) for edit in ("off", "wrong"))
    assert "Disease 97 %" in off and "no entity" in off and "is a disease" in off
    assert "Chemical 99 %" in wrong and "<s>disease</s> drug" in wrong


def test_the_play_tells_the_story_in_the_visitors_language():
    with speaking("en"):
        said = play_steps(BY_KEY["copd"])
    assert said[1] == "A knowledge graph hangs a fact on COPD: is a disease."
    assert said[4] == "… and the model says something else: no entity."
    with speaking("zh"):
        assert play_steps(BY_KEY["gastroscopy"])[4].endswith("身体部位 BodyPart 85 %。")
