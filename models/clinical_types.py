"""Two public graphs → which names are drugs and which are diseases, for training `ner-en`.

    python models/clinical_types.py --types en_hetionet_types.spo \
        --diseases en_medical_do_symp_phdb.spo --output clinical_types_en.spo

Compounds of Hetionet are drugs; its side effects and symptoms, and the names of the Disease
Ontology, are diseases, as BC5CDR labels them. A name of both kinds, or of fewer than four
characters, is left out.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from kbert_core import KBertError, load_graph

SHORTEST = 4  # characters of a name
KINDS = {"Compound": "drug", "Side Effect": "disease", "Symptom": "disease"}
NAMED = ("is_a", "synonym_of")  # relations of the Disease Ontology between two names of diseases
NOT_A_NAME = "(disorder)"  # of a catalogue's entry, which no text has


def main() -> None:
    """Write the graph."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--types", type=Path, required=True, help="Hetionet's: name, type, KIND")
    parser.add_argument("--diseases", type=Path, required=True, help="the Disease Ontology's")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    try:
        kinds: dict[str, dict[str, None]] = {}
        for name, kind in names(args.types, args.diseases):
            if len(name) >= SHORTEST and NOT_A_NAME not in name:
                kinds.setdefault(name, {})[kind] = None
    except KBertError as error:
        sys.exit(str(error))
    sure = {name: next(iter(found)) for name, found in kinds.items() if len(found) == 1}
    lines = (f"{name}\tis_a\t{kind}\n" for name, kind in sorted(sure.items()))
    args.output.write_text("".join(lines), encoding="utf-8")
    print(f"{args.output}: {len(sure):,} triples")


def names(types: Path, diseases: Path) -> Iterator[tuple[str, str]]:
    """Every name with its kind."""
    for triple in load_graph(types):
        if triple.tail in KINDS:
            yield triple.head, KINDS[triple.tail]
    for triple in load_graph(diseases):
        if triple.relation in NAMED:
            yield triple.head, "disease"
            yield triple.tail, "disease"


if __name__ == "__main__":
    main()
