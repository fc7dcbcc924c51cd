"""The demo knowledge graphs: format, order, and the numbers in their README."""

import re
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "demo_kgs"
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
    with open(FOLDER / name, encoding="utf-8", newline="") as file:
        text = file.read()
    assert text.endswith("\n")
    return [tuple(line.split("\t")) for line in text[:-1].split("\n")]


def by_head(triples):
    heads = {}
    for triple in triples:
        heads.setdefault(triple[0], []).append(triple)
    return heads


def readme():
    return (FOLDER / "README.md").read_text(encoding="utf-8")


def section(name):
    parts = re.split(r"^## ", readme(), flags=re.M)
    found = [part for part in parts if part.startswith(f"`{name}`")]
    assert len(found) == 1
    return found[0]


def table(text, first_column):
    """Rows of the markdown table whose header begins with first_column."""
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith(f"| {first_column}"):
            break
    else:
        raise AssertionError(f"no table {first_column!r}")
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if not set(cells[0]) <= set("-:"):
            rows.append(cells)
    return rows


def test_no_other_graphs():
    assert {path.name for path in FOLDER.glob("*.spo")} == set(MINIMUM)


@pytest.mark.parametrize("name", MINIMUM)
def test_format(name):
    raw = (FOLDER / name).read_bytes()
    assert not raw.startswith(b"\xef\xbb\xbf")
    assert b"\r" not in raw
    triples = read(name)
    assert len(triples) >= MINIMUM[name]
    for triple in triples:
        assert len(triple) == 3, triple
        for field in triple:
            assert field and field == field.strip(), triple
            assert field.isprintable(), triple
        assert not triple[0].startswith("#"), triple
    assert [t for t, n in Counter(triples).items() if n > 1] == []


@pytest.mark.parametrize("name", MINIMUM)
def test_lines_of_a_head_are_together(name):
    seen, last = set(), None
    for head, _, _ in read(name):
        if head != last:
            assert head not in seen, head
            seen.add(head)
            last = head


def test_figure2_is_the_papers():
    assert read("figure2.spo") == [
        ("Tim Cook", "CEO", "Apple"),
        ("Beijing", "capital", "China"),
        ("Beijing", "is_a", "City"),
    ]


def test_medical_zh_types():
    triples = read("medical_zh.spo")
    assert {t for _, r, t in triples if r == "类别"} == TYPES
    for head, lines in by_head(triples).items():
        typed = [i for i, line in enumerate(lines) if line[1] == "类别"]
        if typed:
            assert typed == [0], head
        else:  # an alias head says nothing but another name, and that is known
            assert {line[1] for line in lines} == {"别名"}, head
            assert {line[2] for line in lines} <= {t[0] for t in triples}, head


def test_medical_zh_covers():
    triples = read("medical_zh.spo")
    kind = {h: t for h, r, t in triples if r == "类别"}
    assert sum(t == "疾病" for t in kind.values()) >= 80
    for head in (
        "心电图 布洛芬 糖尿病 胸痛 头痛 腹部 阿司匹林 CT B超 血常规 胰岛素 青霉素 "
        "高血压 肺炎 冠心病 脑梗死 胃溃疡 骨折 哮喘 白血病 甲亢"
    ).split():
        assert head in kind
    for head, lines in by_head(triples).items():
        if kind.get(head) == "疾病":
            assert {"症状", "治疗", "检查"} <= {line[1] for line in lines}, head


def test_medical_en_type_first():
    for head, lines in by_head(read("medical_en.spo")).items():
        assert lines[0][1] == "is_a", head
        assert [line[1] for line in lines].count("is_a") == 1, head


def test_everyday_zh_says_two_things_of_every_word():
    assert {len(lines) for lines in by_head(read("everyday_zh.spo")).values()} == {2}


def test_readme_overview():
    rows = {row[0]: row[2:] for row in table(readme(), "file ")}
    assert set(rows) == set(MINIMUM)
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


def test_readme_medical_zh_types():
    text = section("medical_zh.spo")
    triples = read("medical_zh.spo")
    kinds = Counter(t for _, r, t in triples if r == "类别")
    rows = table(text, "type ")
    assert {row[0]: int(row[1]) for row in rows} == kinds
    typed = sum(kinds.values())
    alias = len(by_head(triples)) - typed
    assert f"{typed} heads have a type" in text
    assert f"The other {alias} heads" in text
    for name in ("心梗", "乙肝", "牛皮癣"):  # the alias heads named there
        assert [r for h, r, _ in triples if h == name] == ["别名"]


def test_readme_example():
    assert [t[1:] for t in read("medical_zh.spo") if t[0] == "糖尿病"][:2] == [
        ("类别", "疾病"),
        ("症状", "多饮"),
    ]
    assert "“类别 疾病” and “症状 多饮”" in readme()


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


@pytest.mark.parametrize("name", HOMONYMS)
def test_homonyms_say_first_what_kind_of_thing_it_is(name):
    for head, lines in by_head(read(f"{name}.spo")).items():
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
