"""Links and session files: what goes in comes out, and nothing else gets in."""

import base64
import json
import re
import time
import tracemalloc
import zlib
from contextlib import suppress
from dataclasses import astuple, replace
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbert_core import (
    Ablation,
    InjectionOptions,
    Intervention,
    KBertError,
    KnowledgeGraph,
    Pipeline,
    Triple,
)
from kbert_core.kbert.interventions import Tokens
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.selection import SCORED, Strategy
from kbert_core.knowledge.surface_forms import BASIC, RULES, NameRules
from kbert_core.knowledge.triple import AliasRelations
from kbert_lab.lab import share
from kbert_lab.lab.scene import GRAPHS, MOST_EDITS, MOST_INTERVENTIONS, Choice, GraphRef, Scene
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.share import (
    MOST_BYTES,
    MOST_CHARACTERS,
    MOST_UNPACKED,
    Shared,
    ShareError,
    TooLong,
    from_file,
    from_link,
    to_file,
    to_link,
)

SCENE = Scene(
    ("患者行胃镜检查未见异常",),
    "medical-ner-kbert",
    GraphRef("f" * 64, "medical_zh"),
    (Edit("switch_off", Triple("胃镜", "类别", "检查")),),
)
SHARED = Shared(SCENE, "ner")
TRIPLE = ["a", "b", "c"]
BLOCK = Intervention("block", Tokens("trunk"), Tokens("branches")).as_dict()
PANEL = {"model": "m", "graph": "none"}
KEPT = Path(__file__).parent / "shared"
ROOT = Path(__file__).parents[2]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
words = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=20)
triples = st.builds(Triple, words, words, words)
folders = st.from_regex(r"[A-Za-z0-9_\u4e00-\u9fff-]{1,20}", fullmatch=True)
edits = st.one_of(
    st.builds(Edit, st.sampled_from(["remove", "switch_off", "switch_on"]), triples),
    st.builds(Edit, st.just("replace"), triples, triples),
    st.builds(Edit, st.just("add"), triples, index=st.none() | st.integers(0, 99)),
)
identities = st.one_of(
    st.tuples(st.just("special"), st.integers(0, 9)),
    st.tuples(st.just("trunk"), st.integers(0, 1), st.integers(0, 500)),
    st.tuples(st.just("branch"), st.integers(0, 1), st.integers(0, 99), triples, st.integers(0, 9)),
)


@st.composite
def injection(draw):
    strategy = draw(st.sampled_from(Strategy))
    scored = strategy in SCORED
    return InjectionOptions(
        draw(st.integers(0, 20)),
        draw(st.booleans()),
        draw(st.none() | st.lists(texts, max_size=3).map(tuple)),
        not_relations=draw(st.lists(texts, max_size=2).map(tuple)),
        first_relations=draw(st.lists(texts, max_size=2).map(tuple)),
        strategy=strategy,
        threshold=draw(st.none() | st.floats(-5, 5)) if scored else None,
        one_sense=draw(st.booleans()) if scored else False,
        scorer=draw(st.none() | folders) if strategy is Strategy.CONTEXT else None,
        names=NameRules.of(draw(st.lists(st.sampled_from(RULES), unique=True))),
    )


tokens = st.one_of(
    st.builds(Tokens, st.sampled_from(["all", "trunk", "branches", "specials"])),
    st.builds(Tokens, st.sampled_from(["mention", "hung"]), st.integers(0, 1), st.integers(0, 99)),
    st.builds(Tokens, st.just("branch"), st.integers(0, 1), st.integers(0, 99), triples),
    st.builds(Tokens, st.just("token"), identity=identities),
)
interventions = st.builds(
    Intervention,
    st.sampled_from(["block", "open"]),
    *(tokens, tokens, st.booleans()),
    st.lists(st.integers(1, 12), max_size=3).map(tuple),
)
scenes = st.builds(
    Scene,
    st.lists(texts, min_size=1, max_size=2).map(tuple),
    folders,
    st.builds(GraphRef, folders, texts),
    st.lists(edits, max_size=5).map(tuple),
    injection(),
    st.builds(Ablation, st.sampled_from(["soft", "hard"]), st.sampled_from(["tree", "all"])),
    interventions=st.lists(interventions, max_size=3).map(tuple),
    system=st.sampled_from(["", "plain-text"]),
    threshold=st.none() | st.floats(-5, 5),
)
panels = st.builds(
    Choice,
    folders,
    graph=st.sampled_from(GRAPHS),
    ablation=st.builds(Ablation, st.sampled_from(["soft", "hard"]), st.just("all")),
    system=st.sampled_from(["", "plain-text"]),
)
views = st.dictionaries(st.sampled_from(["matrix_view", "specials"]), st.booleans() | texts)


@st.composite
def selections(draw):
    chosen = Selection().with_token(draw(st.none() | identities))
    chosen = chosen.with_triple(draw(st.none() | triples))
    cell = draw(st.none() | st.tuples(identities, identities))
    chosen = chosen.with_cell(*cell) if cell else chosen
    return chosen.with_map(draw(st.none() | st.integers(0, 12)), draw(st.integers(0, 12)))


@st.composite
def shares(draw):
    scene = draw(scenes)
    pinned = draw(st.none() | scenes)
    compare = draw(st.sampled_from(["auto", "bert", "pinned", "systems"]))
    steps = ()
    if len(scene.edits) > 1 and draw(st.booleans()):
        steps = (1, len(scene.edits) - 1)
    return Shared(
        scene,
        draw(folders),
        steps,
        compare,
        pinned,
        draw(selections()),
        draw(views),
        draw(st.integers(0, 9)),
        draw(st.lists(panels, max_size=4).map(tuple)),
        *draw(st.just(()) | st.tuples(*[st.lists(triples, max_size=3).map(tuple)] * 2)),
    )


@given(shares())
def test_share_of_a_link_is_what_was_put_into_it(shared):
    try:
        link = to_link(shared)
    except TooLong:
        return
    assert from_link(link) == shared
    assert link.isascii() and not {*link} & {*"+/=&?#% "}


@given(shares())
def test_share_of_a_session_file_is_what_was_put_into_it(shared):
    assert from_file(to_file(shared, LARGE)) == shared
    graph = KnowledgeGraph([Triple("a", "b", "c")], name="mine")
    shared = replace(shared, scene=about(graph, shared.scene), triples=tuple(graph), off=())
    found = from_file(to_file(shared, graph))
    assert found == shared
    assert list(found.graph) == list(graph) and found.graph.fingerprint == graph.fingerprint


def about(graph, scene=SCENE):
    return replace(scene, graph=GraphRef(graph.fingerprint, graph.name))


def packed(data):
    plain = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(zlib.compress(plain, 9)).rstrip(b"=").decode()


def data_of(shared):
    return json.loads(to_file(shared, LARGE))


LARGE = KnowledgeGraph(aliases=AliasRelations(frozenset({"b"})))  # goes along with no file
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


def is_refused(read, given):
    """Whether it is refused in a sentence that can be shown; else it gave something to restore."""
    try:
        read(given)
    except KBertError as error:
        assert isinstance(error, ShareError)
        assert str(error).encode() and str(error)[0].isupper() and str(error).endswith(".")
        return True
    return False


@given(st.text(max_size=300) | st.text("abcXYZ019-_=", max_size=300), st.binary(), json_values)
def test_share_refuses_any_other_text_bytes_or_json_in_a_sentence(text, data, value):
    assert is_refused(from_link, text)
    for other in (data, json.dumps(value).encode()):
        assert is_refused(from_file, other)
        assert is_refused(from_link, packed(other))


def change_one_part(shared, data):
    """Whatever is put in one place: something to restore, or a sentence; never anything else."""
    changed = data_of(shared)
    place, key = changed, data.draw(st.sampled_from(sorted(changed)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
    if isinstance(place, dict) and data.draw(st.booleans()):
        del place[key]
    elif isinstance(place, dict) and data.draw(st.booleans()):
        place[data.draw(st.text(st.characters(), max_size=3) | st.just("\ud800"))] = 1
    else:
        place[key] = data.draw(json_values)
    is_refused(from_link, packed(changed))
    is_refused(from_file, json.dumps(changed).encode())


@given(shares(), st.data())
def test_share_refuses_or_reads_a_scene_with_one_part_changed(shared, data):
    change_one_part(shared, data)


@pytest.mark.soak
@settings(max_examples=1_000, deadline=None, suppress_health_check=[*HealthCheck])
@given(shares(), st.data())
def test_share_refuses_or_reads_thousands_of_changed_scenes(shared, data):
    change_one_part(shared, data)


@pytest.mark.parametrize("name", ["\ud800", "a\udfffb", "", "kbert ", "\0"])
def test_share_refuses_a_field_of_any_unknown_name_in_a_sentence(name):
    whole = data_of(SHARED)
    for changed in (whole | {name: 1}, whole | {"scene": {name: 1}}):
        assert is_refused(from_link, packed(changed))
        assert is_refused(from_file, json.dumps(changed).encode())


def test_share_takes_no_number_without_bounds():
    scored = {"strategy": "context", "threshold": 10**400}
    refused("threshold", scene=data_of(SHARED)["scene"] | {"options": scored})


@given(st.integers(0, 400), st.integers(0, 255))
def test_share_notices_a_link_that_was_changed_on_its_way(place, value):
    link = to_link(SHARED)
    plain = bytearray(base64.urlsafe_b64decode(link + "=" * (-len(link) % 4)))
    place %= len(plain)
    if plain[place] == value:
        return
    plain[place] = value
    changed = base64.urlsafe_b64encode(bytes(plain)).decode()
    with suppress(ShareError):
        assert from_link(changed) == SHARED  # a bit of the packing that says nothing


@pytest.mark.parametrize("cut", [1, 5, 50])
def test_share_notices_a_link_that_was_cut_short(cut):
    with pytest.raises(ShareError, match="cut off"):
        from_link(to_link(SHARED)[:-cut])


@pytest.mark.parametrize(
    "bomb",
    [
        zlib.compress(b"[" * 20_000_000, 9),
        zlib.compress(zlib.compress(b" " * 20_000_000, 9), 9),
        zlib.compress(b"[" * (MOST_UNPACKED - 1), 9),
        zlib.compress(b"[" + b"[]," * (MOST_UNPACKED // 3 - 2) + b"1]", 9),
        zlib.compress(b'{"kbert": 1' + b"0" * (MOST_UNPACKED - 100) + b"}", 9),
    ],
    ids=["zeros", "twice", "deep", "wide", "number"],
)
def test_share_unpacks_no_bomb(bomb):
    value = base64.urlsafe_b64encode(bomb).decode()
    if len(value) > MOST_CHARACTERS:  # the first blocks of it do as well
        value = base64.urlsafe_b64encode(bomb[: MOST_CHARACTERS * 3 // 4]).decode()
    start = time.process_time()  # others may be busy
    assert is_refused(from_link, value)
    assert time.process_time() - start < 2
    tracemalloc.start()
    assert is_refused(from_link, value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * MOST_UNPACKED


def test_share_reads_no_file_of_any_size(monkeypatch):
    assert is_refused(from_file, b"[" * (MOST_BYTES + 1))
    monkeypatch.setattr(share, "MOST_BYTES", 1 << 19)  # the same for less of everyone's time
    wide = b'{"kbert":1,"triples":[' + b"[]," * ((1 << 19) // 3 - 20) + b"[]]}"
    assert len(wide) < 1 << 19
    tracemalloc.start()
    assert is_refused(from_file, wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * (1 << 19)


def many(count):
    made = [Edit("add", Triple(f"头{i}", f"关系{i % 7}", f"尾{i}")) for i in range(count)]
    return replace(SHARED, scene=replace(SCENE, edits=tuple(made)))


def test_share_of_many_edits_needs_a_file_and_of_more_the_edited_graph():
    assert from_link(to_link(many(60))) == many(60)
    with pytest.raises(TooLong, match="session file"):
        to_link(many(MOST_EDITS))
    assert from_file(to_file(many(MOST_EDITS), LARGE)) == many(MOST_EDITS)
    with pytest.raises(ShareError, match="Download the edited graph"):
        to_file(many(MOST_EDITS + 1), LARGE)


def test_share_carries_names_of_folders_and_never_where_they_lie():
    scored = InjectionOptions(strategy="context", scorer="/home/her/secret/scorer")
    scene = replace(SCENE, model="/home/her/models/mine", options=scored, device="cuda:3")
    link = to_link(Shared(scene, "ner", pinned=replace(scene, model=r"C:\Users\her\mine")))
    plain = zlib.decompress(base64.urlsafe_b64decode(link + "=="))
    assert b"her" not in plain and b"secret" not in plain
    found = from_link(link)
    assert (found.scene.model, found.scene.options.scorer, found.scene.device) == (
        *("mine", "scorer"),
        "auto",
    )
    assert found.pinned.model == "mine"


@pytest.mark.parametrize("path", ["/etc", "../up", "..", "a/b", r"a\b"])
def test_share_takes_no_path_from_a_link(path):
    scored = {"strategy": "context", "scorer": path}
    for part, value in (("model", path), ("options", scored)):
        refused(part, scene=data_of(SHARED)["scene"] | {part: value})
    refused("model", panels=[PANEL | {"model": path}])


def refused(name, **parts):
    """Whether a link with other parts is refused, and which part is said to be wrong."""
    with pytest.raises(ShareError, match=f"“{name}”"):
        from_link(packed(data_of(SHARED) | parts))


WRONG_TOKENS = [
    {"kind": "mention", "start": 10**9},
    {"kind": "branch", "sentence": 0, "start": 0, "triple": ["a", "", "c"]},
    *({"kind": "token", "identity": v} for v in (["trunk", 0], ["leaf", 0, 1], ["trunk", 0, -1])),
]
WRONG = [  # where a part stands, its name, and what is wrong
    *[("", "steps", v) for v in ([-1], 3, ["1"])],
    *[("", "compare", v) for v in (3, None)],
    *[("", "views", v) for v in ({"specials": 1}, [])],
    *[("", "window", -1), ("", "panels", [PANEL] * 5), ("", "panels", 1), ("", "pinned", 3)],
    *[("", "triples", v) for v in ([["a", "b"]], [["a", "b", ""]], [["a", "b", "c\nd"]], 3)],
    *[("scene", "sentences", v) for v in ([], ["a", "b", "c"], "a", [1])],
    *[("scene", "edits", [v]) for v in (["add"], ["eat", TRIPLE], ["remove", ["a", "b"]])],
    *[("scene", "edits", [["remove", ["a", "b", v]]]) for v in ("", "a\nb", 3)],
    *[("scene", "edits", [v]) for v in (["replace", TRIPLE], ["add", TRIPLE, -1])],
    *[("scene", "edits", [["remove", TRIPLE, 0]]), ("scene", "system", "mine")],
    *[("scene", "threshold", v) for v in ("1", True, 10**400)],
    *[("scene", "graph", v) for v in (None, "medical_zh", [])],
    *[("scene", "options", {"max_triples": v}) for v in (-1, 1001, 2.5, True, None)],
    *[("scene", "options", {"tail_only": 1}), ("scene", "options", {"relations": "ab"})],
    *[("scene", "options", {"relations": [1]}), ("scene", "options", {"names": ["none"]})],
    *[("scene", "options", {"strategy": v}) for v in ("best", "learned", [])],
    *[("scene", "options", v) for v in ({"threshold": 0.5}, {"scorer": "mine"}, {"x": 1})],
    ("scene", "options", {"strategy": "context", "threshold": "0.5"}),
    *[("scene", "interventions", v) for v in (BLOCK, [{}], [BLOCK] * (MOST_INTERVENTIONS + 1))],
    *[("scene", "interventions", [BLOCK | {"layers": v}]) for v in ([0], [2, 1], [10**9])],
    *[("scene", "interventions", [BLOCK | {"seen": v}]) for v in WRONG_TOKENS],
    *[("selection", "cell", v) for v in ([], [["trunk", 0, 1]], [["x", 1]] * 2)],
    *[("selection", "token", ["trunk", 0]), ("selection", "triple", ["a", "b"])],
    *[("selection", "layer", -1), ("selection", "head", 1.5)],
]


@pytest.mark.parametrize(("place", "part", "value"), WRONG, ids=lambda value: str(value)[:20])
def test_share_names_the_part_that_is_not_as_it_should_be(place, part, value):
    whole = data_of(SHARED).get(place, {})
    refused(part, **({place: {**whole, part: value}} if place else {part: value}))


@pytest.mark.parametrize("more", [{"kbert": 3}, {"soul": []}, {"kbert": 1, "soul": []}])
def test_share_of_a_newer_version_says_so(more):
    with pytest.raises(ShareError, match="newer version"):
        from_link(packed({**data_of(SHARED), **more}))


@pytest.mark.parametrize("version", [0, "1", 1.0, True, None])
def test_share_of_no_version_is_none(version):
    with pytest.raises(ShareError, match="no session file"):
        from_file(json.dumps(data_of(SHARED) | {"kbert": version}).encode())


def test_share_of_half_a_character_is_refused_and_not_mended_in_silence():
    with pytest.raises(ShareError, match="half a character"):
        to_link(replace(SHARED, scene=replace(SCENE, sentences=("a\ud800",))))


def test_session_file_carries_a_small_graph_with_what_is_off():
    triples = [Triple("a", "is", "b"), Triple("c", "is", "d"), Triple("a", "has", "e")]
    graph = KnowledgeGraph(triples, name="mine").switch_off(triples[1])
    found = from_file(to_file(Shared(about(graph), "ner", pinned=about(graph)), graph))
    carried = found.graph
    assert [carried.triples_of(x) for x in "ac"] == [graph.triples_of(x) for x in "ac"]
    assert carried.off == {triples[1]} and carried.name == "mine" and not carried.history
    assert found.scene.graph == found.pinned.graph == GraphRef(carried.fingerprint, "mine")
    large = KnowledgeGraph(Triple(f"h{i}", "is", "t") for i in range(20_001))
    assert from_file(to_file(Shared(about(large), "ner"), large)).graph is None


def test_links_and_session_files_made_earlier_still_open():
    """Both were made by the first version that could, of every kind of part there is."""
    link = from_link((KEPT / "link.txt").read_text().strip())
    shared = from_file((KEPT / "session.kbert.json").read_bytes())
    assert link.scene.edits == shared.scene.edits
    assert [edit.action for edit in link.scene.edits] == [
        *("switch_off", "add", "replace", "switch_on", "remove")
    ]
    assert link.scene.edits[1].index == 0 and link.scene.edits[2].new.tail == "中国"
    assert link.steps == (2, 1, 1, 1)
    assert link.compare == "models", "its page stood beside the model's twin"
    assert link.pinned.model == "words" and link.pinned.options == InjectionOptions(names=BASIC)
    assert link.scene.options.threshold == 0.25 and link.scene.options.scorer == "mini"
    assert link.scene.options.names == NameRules.of(["case", "width"])
    assert link.scene.interventions[0].layers == (1, 2)
    looks = ("branch", 0, 0, Triple("Tim Cook", "CEO", "Apple"), 0)
    assert link.selection == Selection(looks, cell=(looks, ("special", 0)))
    assert link.scene.system == "" and link.scene.threshold is None and link.views == {}
    assert len(shared.graph) == 3 and shared.graph.off == {Triple("Beijing", "is_a", "City")}
    assert shared.graph.fingerprint == shared.scene.graph.fingerprint
    assert from_file(to_file(shared, shared.graph)) == shared


OLD = {  # a field of the first version → where its value is now
    "panel": ("attention", lambda shared: shared.views["matrix_view"]),
    "views": ({"specials": True}, lambda shared: shared.views),
    "twin": (True, lambda shared: shared.compare == "models"),
    "token": (["trunk", 0, 1], lambda shared: [*shared.selection.token]),
    "head": (3, lambda shared: shared.selection.head),
    "part": ([["a", "b", "c"]], lambda shared: [[*astuple(one)] for one in shared.triples]),
    "triples": ([["a", "b", "c"]], lambda shared: [[*astuple(one)] for one in shared.triples]),
    "threshold": (0.5, lambda shared: shared.scene.threshold),
    "window": (2, lambda shared: shared.window),
}


@pytest.mark.parametrize("name", OLD)
def test_a_field_of_old_is_read_where_it_stands_now(name):
    data = data_of(SHARED)
    scene = data.pop("scene")
    value, found = OLD[name]
    shared = from_link(packed({**data, **scene, "kbert": 1, name: value}))
    assert shared.scene.edits == SCENE.edits and found(shared) == value


def test_a_session_file_runs_in_python_as_the_docs_say(tmp_path, monkeypatch, checkpoints):
    (lines,) = re.findall(
        "```python\n(.*?)```", (ROOT / "docs" / "sharing.md").read_text(encoding="utf-8"), re.DOTALL
    )
    graph = KnowledgeGraph([Triple("胃镜", "类别", "检查"), Triple("胃镜", "部位", "胃")], name="g")
    edits = (Edit("add", Triple("胃镜", "用途", "诊断"), index=0),)
    options, ablation = InjectionOptions(2), Ablation("hard", "all")
    made = (Intervention("block", Tokens("trunk"), Tokens("branches")),)
    ref = GraphRef(graph.fingerprint, "g")
    scene = Scene(SCENE.sentences, "ner", ref, edits, options, ablation, interventions=made)
    (tmp_path / "models").symlink_to(checkpoints["ner"].parent)
    (tmp_path / "mine.kbert.json").write_bytes(to_file(Shared(scene, "ner"), graph))
    monkeypatch.chdir(tmp_path)
    space = {}
    exec(compile(lines, "docs/sharing.md", "exec"), space)
    wanted = Pipeline.from_pretrained(checkpoints["ner"])(
        *scene.sentences,
        graph=graph.apply(*edits),
        options=options,
        ablation=ablation,
        interventions=made,
    )
    assert torch.equal(space["trace"].logits, wanted.logits)
    assert space["trace"].used == wanted.used != ()
