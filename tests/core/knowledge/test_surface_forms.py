"""Names written otherwise than in the graph: found, and by which rule."""

import time
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import Edit, KnowledgeGraph, Triple, find_mentions, join_graphs
from kbert_core.knowledge import surface_forms
from kbert_core.knowledge.mentions import find_all_names
from kbert_core.knowledge.names import loose_key, loosen
from kbert_core.knowledge.surface_forms import (
    ALL_RULES,
    AS_WRITTEN,
    BASIC,
    NameRule,
    NameRules,
    without_sense,
)
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations
from kbert_lab.graphs.store.importing import Source, import_triples
from kbert_lab.graphs.store.names import rebuild_names
from kbert_lab.graphs.store.store import GraphStore

NONE = NameRules(**{field.name: False for field in fields(NameRules)})


def graph_of(*heads):
    return KnowledgeGraph(Triple(head, "r", "t") for head in heads)


def only(text, graph, rules=ALL_RULES):
    """The one mention of a text: its characters and its rules."""
    (mention,) = find_mentions([text], graph, rules=rules)[0]
    return text[mention.start : mention.end], set(mention.rules)


@pytest.mark.parametrize(
    ("text", "head", "span", "rule"),
    [
        ("服ＣＴ后", "CT", "ＣＴ", "WIDTH"),
        ("the aspirin I took", "Aspirin", "aspirin", "CASE"),
        ("既往有糖尿病與頭痛", "头痛", "頭痛", "SCRIPT"),
        ("既往有头痛史", "頭痛", "头痛", "SCRIPT"),
        ("an X ray of it", "X-ray", "X ray", "DASHES"),
        ("an Xray of it", "X-ray", "Xray", "DASHES"),
        ("an X\u2011ray of it", "X-ray", "X\u2011ray", "DASHES"),
        ("约翰·史密斯说", "约翰史密斯", "约翰·史密斯", "DASHES"),
        ("Parkinson\u2019s disease", "Parkinson's disease", "Parkinson\u2019s disease", "DASHES"),
        ("行X 线检查", "X线", "X 线", "SPACES"),
        ("IL 6 was high", "IL6", "IL 6", "SPACES"),
        ("β 受体阻滞剂", "β受体阻滞剂", "β 受体阻滞剂", "SPACES"),
        ("two headaches a day", "headache", "headaches", "PLURAL"),
        ("one headache a day", "headaches", "headache", "PLURAL"),
        ("food allergies", "allergy", "allergies", "PLURAL"),
        ("a food allergy", "allergies", "allergy", "PLURAL"),
        ("many viruses", "virus", "viruses", "PLURAL"),
        ("苹果发布新品", "苹果（公司）", "苹果", "SENSE"),
        ("he wrote Java", "Java (programming language)", "Java", "SENSE"),
        ("a heart attack", "heart_attack", "heart attack", "UNDERSCORES"),
        ("Crohn's disease", "Crohn&#39;s disease", "Crohn's disease", "HTML"),
        ("R&D", "R&amp;D", "R&D", "HTML"),
        ("of α-synuclein", "alpha-synuclein", "α-synuclein", "GREEK"),
        ("of alpha-synuclein", "α-synuclein", "alpha-synuclein", "GREEK"),
        ("TNF-alpha rose", "TNF-α", "TNF-alpha", "GREEK"),
        ("interferon λ", "interferon lambda", "interferon λ", "GREEK"),
        ("a type 2 error", "type II error", "type 2 error", "NUMERALS"),
        ("a type II error", "type 2 error", "type II error", "NUMERALS"),
        ("factor VIII", "factor 8", "factor VIII", "NUMERALS"),
        ("Crohns disease", "Crohn's disease", "Crohns disease", "POSSESSIVE"),
        ("Crohn's disease", "Crohns disease", "Crohn's disease", "POSSESSIVE"),
        ("Crohn disease", "Crohn's disease", "Crohn disease", "POSSESSIVE"),
        ("Crohn's disease", "Crohn disease", "Crohn's disease", "POSSESSIVE"),
        ("two diagnoses", "diagnosis", "diagnoses", "LATIN"),
        ("one diagnosis", "diagnoses", "diagnosis", "LATIN"),
        ("bone metastases", "bone metastasis", "bone metastases", "LATIN"),
        ("the bacteria", "bacterium", "bacteria", "LATIN"),
        ("lumbar vertebrae", "lumbar vertebra", "lumbar vertebrae", "LATIN"),
        ("some nuclei", "nucleus", "nuclei", "LATIN"),
        ("the appendices", "appendix", "appendices", "LATIN"),
        ("pregnant women", "pregnant woman", "pregnant women", "LATIN"),
    ],
)
def test_a_name_is_found_by_a_rule_and_not_without_it(text, head, span, rule):
    graph = graph_of(head)
    assert only(text, graph) == (span, {NameRule[rule]})
    assert not find_mentions([text], graph, rules=replace(ALL_RULES, **{rule.lower(): False}))[0]


@pytest.mark.parametrize(
    ("text", "heads", "names", "names_by_basic"),
    [
        ("it told us who is ill", ["US", "IT", "WHO"], [], ["it", "us", "who"]),
        ("IT and the WHO in the US", ["US", "IT", "WHO"], ["IT", "WHO", "US"], ["IT", "WHO", "US"]),
        ("Ecg, two ECGs", ["ECG"], ["ECGs"], ["Ecg", "ECGs"]),
        ("il6", ["IL6"], ["il6"], ["il6"]),  # with a digit it is no everyday word
        ("carcinoma", ["CARCINOMA"], ["carcinoma"], ["carcinoma"]),
        ("state-of-the-art", ["art"], [], ["art"]),
        ("state-of-the-art", ["state of the art"], ["state-of-the-art"], ["state-of-the-art"]),
        ("her mother-in-law", ["mother", "law"], [], ["mother", "law"]),
        ("a non-smoker, no smoker", ["smoker"], ["smoker"], ["smoker", "smoker"]),
        ("a non-smoker", ["non-smoker", "smoker"], ["non-smoker"], ["non-smoker"]),
        ("pre\u2011eclampsia", ["eclampsia"], [], ["eclampsia"]),
        ("aspirin-induced asthma", ["aspirin"], ["aspirin"], ["aspirin"]),
        ("anti-HIV, IL-6-positive", ["HIV", "IL-6"], ["HIV", "IL-6"], ["HIV", "IL-6"]),
        ("1.12 and 12.5", ["12", "1"], [], ["1", "12", "12"]),
        ("12. So 12, and 1.12", ["12", "1.12"], ["12", "12", "1.12"], ["12", "12", "1.12"]),
        ("👨\u200d👩\u200d👧 👨", ["👨", "👩", "👧"], ["👨"], ["👨", "👩", "👧", "👨"]),
        ("👨\u200d👧", ["👨\u200d👧", "👨"], ["👨\u200d👧"], ["👨\u200d👧"]),
        ("in Wales, two whales", ["Wale", "whale"], ["whales"], ["Wales", "whales"]),
        ("colon, cola, mini, ammonia", ["cola", "minus", "ammonium"], ["cola"], ["cola"]),
        ("4 fluids, Fragile X", ["IV fluids", "Fragile 10"], [], []),
        ("aspirin_dose", ["aspirin"], [], []),
    ],
)
def test_a_name_is_found_only_where_it_is_meant(text, heads, names, names_by_basic):
    for rules, expected in ((ALL_RULES, names), (BASIC, names_by_basic)):
        found = find_mentions([text], graph_of(*heads), rules=rules)[0]
        assert [text[m.start : m.end] for m in found] == expected


@given(
    st.text(st.sampled_from("病ct -_.12αⅡ's&\u200d👨"), max_size=12),
    st.lists(st.text(st.sampled_from("CTct病-_12.α's"), min_size=1, max_size=5), max_size=4),
)
def test_a_text_in_chinese_is_read_by_the_basic_rules(text, heads):
    graph = KnowledgeGraph(t for h in heads if not (t := Triple(h, "r", "t")).problem())
    both = (
        find_mentions([f"患者{text}", "us"], graph),
        find_mentions([f"患者{text}"], graph, rules=BASIC),
    )
    assert both[0][0] == both[1][0]


def test_a_graph_file_of_an_earlier_version_is_indexed_anew_when_it_is_opened(
    tmp_path, monkeypatch
):
    path = tmp_path / "g.kg"
    with monkeypatch.context() as then:
        then.setattr("kbert_lab.graphs.store.names.FORMATS", (5, 6))
        then.setattr(surface_forms, "spellings", lambda name, base: [name])
        stored(path, [Triple("heart_attack", "is_a", "disease")])
    for _ in range(2):
        with GraphStore(path) as store:
            assert only("a heart attack", store.graph())[0] == "heart attack"
            assert store._names.format == 7


def test_a_name_written_as_in_the_graph_takes_no_rule_and_others_all_they_need():
    for name in ("糖尿病", "X-ray", "IL-6", "Tim Cook", "ＣＴ", "頭痛", "苹果（公司）"):
        assert only(name, graph_of(name)) == only(name, graph_of(name), NONE) == (name, set())
    for text, head, rules, taken in (
        ("Ｃ－反應 蛋白", "C反应蛋白", ALL_RULES, "WIDTH DASHES SCRIPT SPACES"),
        ("tumors", "TUMOR", BASIC, "PLURAL CASE"),
        ("2019\u20132020", "2019-2020", ALL_RULES, "DASHES"),
        ("-5", "-5", AS_WRITTEN, ""),
        ("头痛-", "头痛-", AS_WRITTEN, ""),
    ):
        assert only(text, graph_of(head), rules) == (text, {NameRule[r] for r in taken.split()})


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        *[("diseases", "disease"), ("classes", "class"), ("gases", "gas"), ("lenses", "lens")],
        *[("biases", "bias"), ("branches", "branch"), ("rashes", "rash"), ("boxes", "box")],
        *[("allergies", "allergy"), ("calories", "calorie"), ("areas", "area"), ("arms", "arm")],
        *[("antibiotics", "antibiotic"), ("food additives", "food additive"), ("ECGs", "ECG")],
    ],
)
def test_a_regular_plural_and_its_singular_are_one_name(plural, singular):
    for text, head in ((plural, singular), (singular, plural)):
        assert only(f"the {text} of it", graph_of(head)) == (text, {NameRule.PLURAL})
    assert only(f"the {plural} of it", graph_of(singular.lower()))[0] == plural


NO_PLURALS = (
    *[("news", "new"), ("News", "new"), ("means", "mean"), ("lens", "len"), ("bias", "bia")],
    *[("series", "serie"), ("species", "specie"), ("corps", "corp"), ("canvas", "canva")],
    *[("diabetes", "diabete"), ("caries", "cary"), ("rabies", "raby"), ("mumps", "mump")],
    *[("hives", "hive"), ("herpes zoster and shingles", "herpes zoster and shingle")],
    *[("genetics", "genetic"), ("medical physics", "medical physic"), ("optics", "optic")],
    *[("gas", "ga"), ("its", "it"), ("bus", "bu"), ("virus", "viru"), ("class", "clas")],
    *[("sepsis", "sepsi"), ("AIDS", "AID"), ("AIDS", "aid"), ("aids", "AID"), ("cats", "CAT")],
)
OTHER_WORDS = (  # that only look like a name
    *NO_PLURALS,
    *[(name, word) for word, name in NO_PLURALS],
    *[("the rapist", "therapist"), ("he has it", "ha"), ("glasses", "glass es")],
    *[("classs", "class"), ("2 3", "23"), ("won 3-5", "35"), ("头\n痛", "头痛")],
    ("心脏——病房", "心脏病"),  # a dash between clauses
)
SENSES = ("苹果（水果）", "苹果（公司）", "苹果")
ASPIRIN = KnowledgeGraph(
    [
        Triple("阿司匹林", "别名", "乙酰水杨酸"),
        Triple("阿司匹林", "治疗", "发热"),
        Triple("ASA", "synonym_of", "阿司匹林"),
        Triple("扑热息痛", "Also Known As", "对乙酰氨基酚"),
    ]
)
CIRCLE = KnowledgeGraph([Triple("甲", "别名", "乙"), Triple("乙", "别名", "甲")])


def entities_of(text, graph, **options):
    return [m.entities for m in find_mentions([text], graph, **options)[0]]


@pytest.mark.parametrize(
    ("graph", "text", "entities"),
    [
        *((graph_of(head), f"the {text} there", []) for text, head in OTHER_WORDS),
        # the name spelt as in the text
        (graph_of("cat", "cats"), "cat, cats", [("cat",), ("cats",)]),
        (graph_of("頭", "头"), "頭, 头", [("頭",), ("头",)]),
        (graph_of("Cl-", "Cl"), "Cl- and Cl", [("cl-",), ("cl",)]),
        (graph_of("头痛", "发热"), "头痛-发热", [("头痛",), ("发热",)]),
        (graph_of("Tim Cook"), "Tim\nCook", [("tim cook",)]),
        (graph_of("甲 乙"), "甲  乙", [("甲 乙",)]),
        # all that a name may mean
        (graph_of(*SENSES), "买了苹果", [("苹果", "苹果(水果)", "苹果(公司)")]),
        (graph_of(*SENSES), "买了苹果（水果）", [("苹果(水果)",)]),
        (ASPIRIN, "take ASA", [("asa", "阿司匹林")]),
        (CIRCLE, "甲乙", [("甲", "乙"), ("乙", "甲")]),
        # a removed name stays away
        (
            join_graphs([graph_of("甲", "甲乙").remove(Triple("甲乙", "r", "t")), graph_of("丙")]),
            *("甲乙", [("甲",)]),
        ),
    ],
)
def test_a_name_means_what_is_spelt_most_like_it_and_nothing_else(graph, text, entities):
    assert entities_of(text, graph) == entities


def test_another_name_leads_to_the_entity():
    for text, rules in (
        ("服乙酰水杨酸后", (NameRule.ALIAS,)),
        ("服乙酰水楊酸後", (NameRule.SCRIPT, NameRule.ALIAS)),
    ):
        (mention,) = find_mentions([text], ASPIRIN)[0]
        assert (mention.entities, mention.rules) == (("阿司匹林",), rules)
        assert entities_of(text, ASPIRIN, rules=replace(ALL_RULES, alias=False)) == []
    triple = Triple("阿司匹林", "商品名", "拜阿司匹灵")
    own = AliasRelations(frozenset({"商品名"}))
    assert entities_of("拜阿司匹灵", KnowledgeGraph([triple])) == []
    assert entities_of("拜阿司匹灵", KnowledgeGraph([triple], aliases=own)) == [("阿司匹林",)]


def test_another_name_counts_while_its_triple_is_there_and_on():
    alias = Triple("糖尿病", "别名", "消渴症")
    graph = KnowledgeGraph([Triple("糖尿病", "类别", "疾病")])
    added = graph.add(alias)
    loaded = KnowledgeGraph(added)
    for now in (added, loaded, loaded.remove(alias).undo()):
        assert entities_of("消渴症", now) == [("糖尿病",)]
    for now in (graph, added.switch_off(alias), added.remove(alias), loaded.remove(alias)):
        assert entities_of("消渴症", now) == []


def test_names_inside_a_longer_name_are_passed_over_and_say_why():
    graph = graph_of("2型糖尿病", "糖尿病", "病足", "糖")
    taken, passed_over = find_all_names("2型糖尿病足", graph)
    assert [m.entity for m in taken] == ["2型糖尿病"]
    assert [(p.mention.entity, p.taken.entity, p.why) for p in passed_over] == [
        ("糖尿病", "2型糖尿病", "inside a longer name"),
        ("糖", "2型糖尿病", "inside a longer name"),
        ("病足", "2型糖尿病", "overlaps the name before it"),
    ]


TEXTS = st.text(st.sampled_from("abs AB-·國国Ⅱ①ﬁé\u0301ｃ（）\0\ue000\ue001"), max_size=12)


@given(TEXTS)
def test_every_character_for_looking_up_knows_where_it_is_from(text):
    (loose,) = loosen([text]).split()
    assert "".join(map(chr, loose.ids)) == loose_key(text) + "\0"
    assert loose.starts == sorted(loose.starts)
    for start, end in zip(loose.starts, loose.ends, strict=True):
        assert 0 <= start < end <= len(text) + 1


@given(TEXTS.filter(lambda name: loose_key(name).strip("\x02'()")), TEXTS)
def test_a_head_is_found_where_it_stands_alone_whatever_else_is_in_the_graph(name, other):
    triple = Triple(name, "r", "t")
    if triple.problem() or not loose_key(name) or name.strip().startswith("\u0301"):
        return  # a mark belongs to the character before it
    graph = KnowledgeGraph([t for t in (Triple(other, "r", "t"), triple) if not t.problem()])
    assert find_mentions([f"。{name}。"], graph)[0]


@given(TEXTS, st.lists(TEXTS, max_size=5), st.booleans())
def test_fewer_rules_never_find_what_all_do_not(text, heads, spaces):
    graph = KnowledgeGraph(t for h in heads if not (t := Triple(h, "r", "t")).problem())
    rules = replace(ALL_RULES, spaces=spaces, plural=False)
    places = {i for m in find_mentions([text], graph)[0] for i in range(m.start, m.end)}
    for mention in find_mentions([text], graph, rules=rules)[0]:
        assert places & set(range(mention.start, mention.end))


TOLD = [
    Triple("苹果（水果）", "类别", "水果"),
    Triple("苹果（公司）", "类别", "公司"),
    Triple("消渴症", "alias_of", "糖尿病"),
    Triple("糖尿病", "类别", "疾病"),
    Triple("拜阿司匹灵", "类别", "商品"),
    Triple("阿司匹林", "商品名", "拜阿司匹灵"),
    Triple("阿司匹林", "别名", "ASA"),
    Triple("food allergies", "is_a", "allergy"),
    Triple("X-ray", "is_a", "test"),
]
TEXT = "苹果，消渴症，拜阿司匹灵，asa，a food allergy，X ray，糖尿病"


def stored(path, triples, **how):
    rows = [(number, t.head, t.relation, t.tail) for number, t in enumerate(triples, start=1)]
    import_triples(path, [Source("told", rows)], **how)
    return path


MEANINGS = "A=alias=K K=alias_of=A headaches=alias_of=headache headache=r=t "
MEANINGS += "痛=alias_of=乙 痛=alias_of=丙 丙=r=1 乙=r=3"


def test_a_graph_file_finds_the_names_that_a_graph_in_memory_finds(tmp_path):
    own = ALIAS_RELATIONS.joined(AliasRelations(frozenset(["商品名"])))
    path = stored(tmp_path / "names.kg", TOLD, aliases=own)
    memory = KnowledgeGraph(TOLD, aliases=own)
    assert [m.entities for m in find_mentions([TEXT], memory)[0]] == [
        ("苹果(水果)", "苹果(公司)"),
        ("消渴症", "糖尿病"),
        ("拜阿司匹灵", "阿司匹林"),
        ("阿司匹林",),
        ("food allergies",),
        ("x-ray",),
        ("糖尿病",),
    ]
    with GraphStore(path, write=True) as store:
        assert find_mentions([TEXT], store.graph())[0] == find_mentions([TEXT], memory)[0]
        store.apply(Edit("remove", TOLD[5]), Edit("add", Triple("糖尿病", "别名", "DM")))
        edited = memory.apply(Edit("remove", TOLD[5]), Edit("add", Triple("糖尿病", "别名", "DM")))
        text = TEXT + "，DM"
        expected = find_mentions([text], edited)[0]
        assert expected[-1].entity == "糖尿病"
        assert find_mentions([text], store.graph())[0] == expected
    rebuild_names(path)
    with GraphStore(path) as store:
        assert find_mentions([text], store.graph())[0] == expected
    (names,) = tmp_path.glob("*.names-*")
    names.unlink()
    with GraphStore(path) as store:
        assert find_mentions([text], store.graph())[0] == expected


def test_another_name_said_twice_stays_when_one_is_taken_back():
    graph = graph_of("zz").add(Triple("A", "alias", "X")).add(Triple("X", "alias_of", "A"))
    graph = graph.remove(Triple("X", "alias_of", "A"))
    assert entities_of("X", graph) == entities_of("X", KnowledgeGraph(graph)) == [("a",)]


def test_the_nearest_of_several_other_names_counts():
    aliases = [Triple("aspirin", "alias", "asa"), Triple("aspirin", "alias", "ASA")]
    for order in (aliases, aliases[::-1]):
        graph = KnowledgeGraph([*order, Triple("ASA", "r", "t")])
        assert entities_of("ASA", graph) == [("asa", "aspirin")]
    graph = KnowledgeGraph([Triple("asa", "alias", "ASA"), Triple("X", "alias", "ASA")])
    assert set(entities_of("ASA", graph)[0]) == {"asa", "x"}


def test_later_relations_of_other_names_join_the_earlier_ones(tmp_path):
    path = tmp_path / "g.kg"
    for relation, name in (("俗名", "乙"), ("外号", "丙")):
        stored(path, [Triple("甲", relation, name)], aliases=AliasRelations(frozenset([relation])))
    with GraphStore(path) as store:
        for graph in (store.graph(), store.at(2)):
            assert entities_of("乙，丙", graph) == [("甲",), ("甲",)]


def test_names_passed_over_in_a_long_text_take_no_quadratic_time():
    graph = graph_of("甲", "甲甲")
    began = time.perf_counter()
    taken, over = find_all_names("甲" * 40_000, graph)
    assert (len(taken), len(over)) == (20_000, 59_999)
    assert time.perf_counter() - began < 30


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("苹果（公司）", "苹果"),
        ("Mercury (planet)", "Mercury"),
        ("维生素B(片)", "维生素B"),
        ("Fe(III)", "Fe(III)"),
        ("Fe (III)", "Fe"),
        ("(x)", "(x)"),
    ],
)
def test_sense_in_parentheses_is_no_sense_where_it_belongs_to_a_formula(name, base):
    assert without_sense(name) == base
