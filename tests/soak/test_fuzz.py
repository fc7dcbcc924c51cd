"""Long fuzz runs of the readers and of trees; `make soak` writes their figures."""

import shutil
import time

import pytest
from conftest import tiny_tokenizer
from core.checkpoints.test_adapters import make_adapter
from edited_graphs import try_damaged
from fuzzed_files import DATA, ENCODINGS, READERS, files, read_or_refused, read_or_refused_data
from hypothesis import given, settings
from hypothesis import strategies as st
from mutated_models import read_or_refused as read_or_refused_model
from slow_trees import NO_VOCABULARY, check_random_batch
from tiny_knowbert import knowbert_in

from kbert_core import WordPieces

pytestmark = pytest.mark.soak


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


def test_random_batches_are_grown_and_flattened_as_the_paper_says(figures):
    began, tiny = time.monotonic(), tiny_tokenizer()
    tokenizers = (*NO_VOCABULARY, WordPieces(tiny), WordPieces(tiny, masks=True))
    for seed in range(10_000, 14_000):
        check_random_batch(seed, tokenizers)
    figures["batches"] = {"cases": 4_000, "seconds": round(time.monotonic() - began, 1)}
