"""Long fuzz runs of the readers and of flattening; `make soak` writes their figures."""

import random
import shutil
import sys
import time
from pathlib import Path

import pytest
from conftest import tiny_tokenizer
from core.checkpoints.test_adapters import make_adapter
from edited_graphs import try_damaged
from fuzzed_files import (
    DATA,
    ENCODINGS,
    READERS,
    files,
    read_or_refused,
    read_or_refused_data,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from mutated_models import read_or_refused as read_or_refused_model
from tiny_knowbert import knowbert_in

from kbert_core import InjectionOptions, KBertError, WordPieces, Words, flatten, grow_trees
from kbert_core.errors import GraphFileError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io import in_memory, rows_of
from kbert_core.knowledge.mentions import find_mentions
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.surface_forms import ALL_RULES, AS_WRITTEN
from kbert_core.knowledge.triple import Triple

sys.path.insert(0, str(Path(__file__).parents[1]))
from slow_trees import NO_VOCABULARY, check_random_batch, random_scene, slowly_flattened

pytestmark = pytest.mark.soak
ODD = "a\tb\nc\r\0\x85\u2028\ufeff\ud7ff\uff21ﬁß\u0301가ｶﾞ😀𠀀 　患者"


def test_any_bytes_make_a_graph_or_a_clear_error(figures):
    dice, began, refused = random.Random(1), time.monotonic(), 0
    for _ in range(20_000):
        text = "".join(dice.choice(ODD) for _ in range(dice.randint(0, 60)))
        if dice.random() < 0.5:
            text = "\n".join(f"{dice.choice(ODD)}x\tr\t{dice.choice(ODD)}y" for _ in range(3))
        data = text.encode("utf-8", "surrogatepass")
        if dice.random() < 0.3:
            data = bytes(dice.randrange(256) for _ in range(dice.randint(0, 40)))
        try:
            read = in_memory(rows_of(data, "fuzz.spo"))
            assert read.triples
            assert all(triple.problem() is None for triple in read.triples)
            KnowledgeGraph(read.triples)
        except GraphFileError as error:
            refused += 1
            assert "fuzz.spo" in str(error)
    figures["graph files"] = {
        "cases": 20_000,
        "refused": refused,
        "seconds": round(time.monotonic() - began, 1),
    }


def test_any_model_folder_is_read_or_refused_with_a_clear_message(tmp_path, checkpoints, figures):
    began, read = time.monotonic(), {True: 0, False: 0}
    shutil.copytree(checkpoints["mask"], tmp_path / "encoder")
    make_adapter(tmp_path / "encoder", tmp_path / "adapter")
    knowbert_in(tmp_path / "knowbert", {"encoder": tmp_path / "encoder"})
    for folder, names in (
        (checkpoints["ner"], ("config.json", "tokenizer.json", "tokenizer_config.json")),
        (tmp_path / "adapter", ("config.json", "adapter_config.json")),
        (tmp_path / "knowbert", ("config.json",)),
    ):
        for file in names:
            counts = read_or_refused_model(folder, file, tmp_path / "room", seeds=range(600))
            read = {kind: read[kind] + count for kind, count in counts.items()}
    seconds = round(time.monotonic() - began, 1)
    figures["model folders"] = {"cases": 3_600, "refused": read[False], "seconds": seconds}


def test_a_graph_with_any_damage_is_used_or_refused_with_a_clear_message(tmp_path, figures):
    began, read = time.monotonic(), try_damaged(tmp_path, range(3_000))
    seconds = round(time.monotonic() - began, 1)
    figures["damaged graphs"] = {"cases": 3_000, "refused": read[False], "seconds": seconds}


@pytest.mark.parametrize("reader", READERS)
def test_any_file_of_a_format_is_read_or_refused_with_a_clear_message(reader, figures):
    read = {True: 0, False: 0}

    @settings(max_examples=2_000)
    @given(files(reader), st.sampled_from(ENCODINGS), st.booleans())
    def try_to_read(data, encoding, skip_bad):
        read[read_or_refused(data, reader, encoding=encoding, skip_bad=skip_bad)] += 1

    try_to_read()
    assert min(read.values()) > 0
    figures[f"files {reader}"] = {"read": read[True], "refused": read[False]}


@pytest.mark.parametrize("name", DATA)
def test_any_file_of_data_is_read_or_refused_with_a_clear_message(name, tmp_path, figures):
    read = read_or_refused_data(name, tmp_path, range(900))
    assert min(read.values()) > 0
    figures[f"data {name}"] = {"read": read[True], "refused": read[False]}


def test_offsets_always_point_into_the_text_as_given(figures):
    dice, began, found = random.Random(2), time.monotonic(), 0
    for _ in range(20_000):
        text = "".join(dice.choice(ODD) for _ in range(dice.randint(0, 40)))
        heads = {text[i : i + dice.randint(1, 4)].strip() for i in range(0, len(text), 5)}
        triples = [Triple(head, "r", "t") for head in sorted(heads)]
        graph = KnowledgeGraph(t for t in triples if t.problem() is None)
        for rules in (AS_WRITTEN, ALL_RULES):
            end = 0
            for mention in find_mentions([text], graph, rules=rules)[0]:
                assert mention.start >= end
                end = mention.end
                if rules is AS_WRITTEN:
                    assert normalise_name(text[mention.start : end]) == mention.entity
                found += 1
    assert found > 1000
    figures["mentions"] = {
        "cases": 20_000,
        "mentions": found,
        "seconds": round(time.monotonic() - began, 1),
    }


def test_flattening_agrees_with_the_slow_way(figures):
    dice, began, cut = random.Random(3), time.monotonic(), 0
    for _ in range(20_000):
        scene = random_scene(dice, dice.randint(1, 2))
        limit = dice.choice([None, dice.randint(4, 30)])
        graph, options = scene.graph, InjectionOptions(max_triples=10)
        flat = flatten(
            grow_trees([scene.texts], graph, options), Words(special=True), max_length=limit
        )[0]
        slow = slowly_flattened(scene, special=True, max_length=limit)
        assert flat.tokens == slow.tokens
        assert flat.soft_positions == slow.soft_positions
        assert limit is None or len(flat) <= limit
        assert flat.tokens[-1] == "[SEP]"
        cut += bool(flat.trunk_cuts)
    figures["trees"] = {
        "cases": 20_000,
        "trunk cut": cut,
        "seconds": round(time.monotonic() - began, 1),
    }


def test_random_batches_are_grown_and_flattened_as_the_paper_says(figures):
    began, tiny = time.monotonic(), tiny_tokenizer()
    tokenizers = (*NO_VOCABULARY, WordPieces(tiny), WordPieces(tiny, masks=True))
    for seed in range(10_000, 14_000):
        check_random_batch(seed, tokenizers)
    figures["batches"] = {"cases": 4_000, "seconds": round(time.monotonic() - began, 1)}


def test_options_out_of_range_are_refused_and_nothing_else_breaks(figures):
    dice, refused = random.Random(4), 0
    for _ in range(5_000):
        scene = random_scene(dice, 1)
        try:
            options = InjectionOptions(max_triples=dice.randint(-2, 6))
            tree = grow_trees([scene.texts], scene.graph, options)[0]
            flatten([tree], Words(special=True), max_length=dice.randint(0, 9))[0]
        except KBertError:
            refused += 1
    figures["options"] = {"cases": 5_000, "refused": refused}
