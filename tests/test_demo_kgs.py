"""The demo knowledge graphs: format, order, and the numbers in their README."""

import re
from collections import Counter
from dataclasses import astuple
from pathlib import Path

import pytest
from conftest import FIGURE_2

FOLDER = Path(__file__).resolve().parent.parent / "demo_kgs"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
MINIMUM = {
    "figure2.spo": 3,
    "medical_zh.spo": 700,
    "everyday_zh.spo": 400,
    "general_en.spo": 180,
    "medical_en.spo": 200,
    "homonyms_zh.spo": 150,
    "homonyms_en.spo": 60,
    "senses_en.spo": 80,
}
HOMONYMS = ("homonyms_zh", "homonyms_en")
TYPES = {"疾病", "症状", "部位", "治疗", "检查"}


def read(name):
    text = (FOLDER / name).read_bytes().decode("utf-8")
    assert text.endswith("\n") and not re.search("[\ufeff\r]", text)
    return [tuple(line.split("\t")) for line in text[:-1].split("\n")]


def by_head(triples):
    heads = {}
    for triple in triples:
        heads.setdefault(triple[0], []).append(triple)
    return heads


def section(name):
    (found,) = re.findall(rf"^## `{name}`.*?(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)
    return found


def table(text, first_column):
    """Rows of the markdown table whose header begins with first_column."""
    below = text.partition(f"\n| {first_column}")[2]
    assert below, f"no table {first_column!r}"
    rows = re.match(r".*\n\|[-:| ]+\n((?:\|.*\n)+)", below)[1].splitlines()
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize("name", MINIMUM)
def test_every_line_is_a_triple_and_those_of_a_head_stand_together(name):
    triples = read(name)
    assert len(set(triples)) == len(triples) >= MINIMUM[name]
    for triple in triples:
        assert len(triple) == 3 and not triple[0].startswith("#"), triple
        assert all(f and f == f.strip() and f.isprintable() for f in triple), triple
    assert [t for of in by_head(triples).values() for t in of] == triples


def test_figure2_is_the_papers():
    assert read("figure2.spo") == [astuple(triple) for triple in FIGURE_2]


def test_medical_zh_says_first_of_what_type_a_head_is():
    triples = read("medical_zh.spo")
    kind = {head: tail for head, relation, tail in triples if relation == "类别"}
    assert set(kind.values()) == TYPES
    for head, lines in by_head(triples).items():
        relations = [relation for _, relation, _ in lines]
        if head in kind:
            assert relations[0] == "类别" and "类别" not in relations[1:], head
        else:  # an alias head says nothing but another name, and that is known
            assert {*relations} == {"别名"} and {t for *_, t in lines} <= {h for h, *_ in triples}
        assert kind.get(head) != "疾病" or {"症状", "治疗", "检查"} <= {*relations}, head
    assert sum(of == "疾病" for of in kind.values()) >= 80
    shown = "心电图 布洛芬 糖尿病 胸痛 头痛 腹部 阿司匹林 CT B超 血常规 胰岛素 青霉素 "
    shown += "高血压 肺炎 冠心病 脑梗死 胃溃疡 骨折 哮喘 白血病 甲亢"
    assert {*shown.split()} <= kind.keys()


def test_readme_overview():
    rows = {row[0]: row[2:] for row in table(README, "file ")}
    assert set(rows) == set(MINIMUM) == {path.name for path in FOLDER.glob("*.spo")}
    for name, numbers in rows.items():
        triples = read(name)
        counted = [len(triples), len(by_head(triples)), len({r for _, r, _ in triples})]
        assert [int(number) for number in numbers] == counted, name


@pytest.mark.parametrize("name", [n for n in MINIMUM if Path(n).stem not in HOMONYMS])
def test_readme_relations(name):
    triples = read(name)
    rows = table(section(name), "relation ")
    assert len({row[0] for row in rows}) == len(rows)
    assert {row[0]: int(row[1]) for row in rows} == Counter(r for _, r, _ in triples)
    for row in rows:
        assert tuple(row[-1].split(" · ")) in triples, row


def test_readme_of_medical_zh():
    text, triples = section("medical_zh.spo"), read("medical_zh.spo")
    kinds = Counter(t for _, r, t in triples if r == "类别")
    assert {row[0]: int(row[1]) for row in table(text, "type ")} == kinds
    assert f"{kinds.total()} heads have a type" in text
    assert f"The other {len(by_head(triples)) - kinds.total()} heads" in text
    for name in ("心梗", "乙肝", "牛皮癣"):  # the alias heads named there
        assert [r for h, r, _ in triples if h == name] == ["别名"]
    said = [" ".join(triple[1:]) for triple in by_head(triples)["糖尿病"][:2]]
    assert "“{}” and “{}”".format(*said) in README


def homonyms(name):
    lines = (FOLDER / "example_data" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "text\tname\thead"
    return [tuple(line.split("\t")) for line in lines[1:]]


def plain(head):
    return re.split(r"\s*[（(]", head)[0].lower()


@pytest.mark.parametrize(("name", "least"), [("homonyms_zh", 48), ("homonyms_en", 16)])
def test_homonyms_have_two_sentences_for_each_meaning_of_a_name(name, least):
    heads = by_head(read(f"{name}.spo"))
    rows = homonyms(name)
    assert len(rows) >= least
    assert Counter(head for _, _, head in rows) == dict.fromkeys(heads, 2)
    for text, spelt, head in rows:
        assert text.count(spelt) == 1
        assert spelt.lower() == plain(head)
    assert min(Counter(map(plain, heads)).values()) >= 2
    text = section(f"{name}.spo")
    assert f"{len(set(map(plain, heads)))} names with {len(heads)} meanings" in text
    for head, lines in heads.items():  # first what kind of thing it is
        assert lines[0][1] in ("类别", "is_a"), head
        assert len(lines) in (4, 5), head


def test_every_name_of_a_chinese_graph_has_one_english_gloss():
    names = {name for graph in MINIMUM if "_zh" in graph for t in read(graph) for name in t}
    glosses = read("glosses.tsv")
    assert {len(line) for line in glosses} == {2}
    assert len(dict(glosses)) == len(glosses)
    chinese = {name for name in names if re.search("[\u4e00-\u9fff]", name)}
    assert chinese <= set(dict(glosses)) <= names
    assert not [gloss for _, gloss in glosses if re.search("[\u4e00-\u9fff]", gloss)]


def test_english_sentences_are_labelled_with_the_types_of_the_english_model_and_counted_right():
    lines = (FOLDER / "example_data" / "medical_ner_en.tsv").read_text("utf-8").splitlines()
    rows = [[field.split() for field in line.split("\t")] for line in lines[1:]]
    assert all(len(words) == len(tags) for words, tags in rows)
    tags = Counter(tag for _, tags in rows for tag in tags)
    assert set(tags) <= {"O", *(f"{b}-{label}" for b in "BI" for label in ("Disease", "Chemical"))}
    text = (FOLDER / "example_data" / "README.md").read_text(encoding="utf-8")
    mentions = tags["B-Disease"] + tags["B-Chemical"]
    assert f"| `medical_ner_en.tsv` | {len(rows)} | {mentions} |" in text
