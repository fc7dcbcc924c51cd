"""The published figures on choosing triples are what the committed measurements say."""

import json

from benchmarks import selection


def test_the_section_is_made_of_the_committed_measurements():
    told = json.loads((selection.RESULTS / "homonyms.json").read_text("utf-8"))
    made = selection.section(told, selection.noise_results())
    assert selection.SECTION.read_text("utf-8") == made
    _, _, page = made.strip().partition("\n")
    pages = selection.ROOT / "docs" / "results"
    assert page in (pages / "choosing-triples.md").read_text("utf-8")
    assert (pages / "../selection/noise.png").is_file()
    assert selection.PICTURE.is_file()


def test_homonyms_are_found_with_all_their_senses():
    graph, sentences = selection.homonyms("zh")
    assert len(sentences) >= 48
    for one in sentences:
        assert one.text[one.mention.start : one.mention.end] in one.head
        assert len(one.mention.entities) >= 2
        assert all(graph.triples_of(entity) for entity in one.mention.entities)
