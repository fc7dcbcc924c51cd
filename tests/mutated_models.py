"""Model folders of which one JSON file was changed at random: values of other types, bytes."""

import copy
import json
import random
import shutil
from pathlib import Path

from kbert_core import KBertError, KnowledgeGraph, Pipeline, Triple

GRAPH = KnowledgeGraph([Triple("糖尿病", "类别", "疾病")], name="kg")
OTHERS = (None, True, 0, -1, 2.5, 10**9, "", "text", "../x", [], ["a", 1], {}, {"a": {"b": 0}})


def mutated(data: bytes, dice: random.Random) -> bytes:
    """One to three values or keys of a JSON file changed, or bytes of it."""
    if dice.random() < 0.2:
        changed = bytearray(data)
        for _ in range(dice.randint(1, 3)):
            changed[dice.randrange(len(changed))] = dice.randrange(256)
        return bytes(changed[: dice.choice((len(changed), dice.randrange(len(changed))))])
    tree = json.loads(data)
    for _ in range(dice.randint(1, 3)):
        _change(tree, dice)
    return json.dumps(tree, ensure_ascii=False).encode()


def _change(tree: dict, dice: random.Random) -> None:
    """Change, remove or rename one value, however deep it stands."""
    places = _places(tree)
    for holder, key in places:  # grows meanwhile
        if isinstance(holder[key], dict | list) and len(places) < 400:
            places += _places(holder[key])
    if not places:
        return
    holder, key = dice.choice(places)
    how = dice.random()
    if how < 0.15 and isinstance(holder, dict):
        holder[f"{key}_"] = holder.pop(key)
    elif how < 0.3:
        holder.pop(key)
    else:
        holder[key] = copy.deepcopy(dice.choice(OTHERS))  # a later change may be in it


def _places(holder: dict | list) -> list[tuple]:
    return [(holder, key) for key in (holder if isinstance(holder, dict) else range(len(holder)))]


def read_or_refused(folder: Path, file: str, room: Path, *, seeds: range) -> dict[bool, int]:
    """Count what is read after a change and what is refused; a refusal must be a KBertError.

    Args:
        folder: a model; an adapter's encoder stands beside it.
        file: of the folder, to be changed.
        room: beside ``folder``, and not there.
    """
    shutil.copytree(folder, room)
    whole, read = (room / file).read_bytes(), {True: 0, False: 0}
    for seed in seeds:
        (room / file).write_bytes(mutated(whole, random.Random(seed)))
        try:
            Pipeline.from_pretrained(room, device="cpu")("患者有糖尿病史", graph=GRAPH)
            read[True] += 1
        except KBertError as error:
            assert str(error).strip()
            read[False] += 1
        except Exception as error:
            raise AssertionError(f"{file}, seed {seed}: {(room / file).read_text()}") from error
    shutil.rmtree(room)
    return read
