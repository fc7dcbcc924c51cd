"""RDF, N-Triples and Turtle: IRIs stand by their labels, or by the end of their address.

The file is read twice: for labels (``rdfs:label``, ``skos:prefLabel``), and for triples, of which
those of labels are none of the graph's. Texts in other languages than asked for and nodes without
an address are left out. Where several heads have one label, each is told from the others by the
end of its address: "Java (island)".
"""

import codecs
from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO, cast
from urllib.parse import unquote

import pyoxigraph as ox

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io.compression import PROBLEMS, Bounded, packing_error
from kbert_core.knowledge.io.rows import ReadOptions, Row, checked
from kbert_core.knowledge.io.text_lines import Bad, printable

FORMATS = {".nt": ox.RdfFormat.N_TRIPLES, ".ttl": ox.RdfFormat.TURTLE}
Terms = tuple[object, object, object]  # of a statement: subject, predicate, object
GROWTH = 100  # characters of addresses and texts, for a byte of the file: more is a trap
FREE = 10 << 20  # characters that any file may have
_LABELS = {
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
}


def read_rdf(
    opened: Callable[[], Bounded],
    name: str,
    ending: str,
    options: ReadOptions,
    passed: Counter[str],
) -> Iterator[Row | Bad]:
    """Read RDF; the number of a row counts statements, as lines mean nothing in Turtle.

    Args:
        opened: opens the file, each time from its beginning.
        ending: ".nt" or ".ttl".
        passed: counts what is left out, by what it is.

    Raises:
        GraphFileError: the syntax is wrong, with the place; or a few long
            prefixes would fill the memory.
    """
    if options.encoding and codecs.lookup(options.encoding).name not in ("utf-8", "utf-8-sig"):
        raise GraphFileError(
            f"{name}: RDF is always UTF-8, and --encoding {options.encoding} was given. Save the "
            "file as UTF-8, or leave the option out."
        )
    yield from read_statements(lambda: _statements(opened, name, ending), options, passed)


def read_statements(
    statements: Callable[[], Iterator[tuple[int, Terms]]],
    options: ReadOptions,
    passed: Counter[str],
) -> Iterator[Row | Bad]:
    """Read triples of names from numbered statements, which are gone through twice.

    Args:
        statements: yields them, each time from the first.
        passed: counts what is left out, by what it is.
    """
    labels: dict[str, str] = {}
    heads: set[str] = set()
    for _, (subject, predicate, object_) in statements():
        if _key(predicate) in _LABELS:
            label = _text(object_, options.language)
            if label is not None:
                labels.setdefault(_key(subject), label)
        else:
            heads.add(_key(subject))
    heads.discard("")
    several = Counter(label for iri, label in labels.items() if iri in heads)
    told = {
        iri: f"{labels[iri]} ({shortened(iri)})"
        for iri in heads
        if several[labels.get(iri, "")] > 1 and shortened(iri) != labels[iri]
    }
    for number, terms in statements():
        if _key(terms[1]) in _LABELS:
            continue
        names = [_called(term, labels, options.language) for term in terms]
        head, relation, tail = told.get(_key(terms[0])) or names[0], *names[1:]
        if head is not None and relation is not None and tail is not None:
            yield checked(number, head, relation, tail)
        elif isinstance(term := terms[names.index(None)], ox.Literal):
            passed["texts in other languages" if term.value else "empty texts"] += 1
        else:
            passed["nodes without an address"] += 1


def _statements(
    opened: Callable[[], Bounded], name: str, ending: str
) -> Iterator[tuple[int, Terms]]:
    stream = opened()
    characters = 0
    try:
        # lenient: rdflib cuts addresses at a "%" of 糖 and writes a prefix that ends with it
        quads = ox.parse(cast(IO[bytes], stream), format=FORMATS[ending], lenient=True)
        for number, quad in enumerate(quads, start=1):
            triple = quad.triple
            terms = (triple.subject, triple.predicate, triple.object)
            characters += sum(len(getattr(term, "value", "")) for term in terms)
            if characters > FREE + GROWTH * stream.count:
                raise GraphFileError(
                    f"{name}: its {number:,} first statements take {characters >> 20} MB when "
                    f"their prefixes are written out, over {GROWTH} times what was read of it. "
                    "Take a file with shorter addresses."
                )
            yield number, terms
    except (SyntaxError, ValueError) as error:
        remedy = "Mend it there and open it again"
        if b"\0" in stream.start or stream.start.startswith((b"\xff\xfe", b"\xfe\xff")):
            remedy = "It looks like UTF-16, and RDF is always UTF-8: save it so"
        raise GraphFileError(f"{name}: {printable(str(error))}. {remedy}.") from error
    except PROBLEMS as error:
        raise packing_error(name, error) from error
    finally:
        stream.close()


def _text(term: object, language: str | None) -> str | None:
    if not isinstance(term, ox.Literal):
        return None
    own = (term.language or "").split("-")[0]
    return term.value if not language or not own or own == language else None


def _key(term: object) -> str:
    return term.value if isinstance(term, ox.NamedNode) else ""


def _called(term: object, labels: dict[str, str], language: str | None) -> str | None:
    if isinstance(term, ox.NamedNode):
        return labels.get(term.value) or shortened(term.value)
    return _text(term, language) or None


def shortened(iri: str) -> str:
    """The end of an address, readable: "http://x.org/a#Heart_attack" → "Heart attack"."""
    end = iri.rstrip("/#").rsplit("#", 1)[-1].rsplit("/", 1)[-1]
    if end == iri:
        end = iri.rsplit(":", 1)[-1]  # urn:…
    return unquote(end).replace("_", " ") or iri
