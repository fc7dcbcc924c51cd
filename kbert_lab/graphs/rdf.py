"""RDF in every syntax of pyoxigraph: IRIs stand by their labels, or by the end of their address.

The file is read twice: for labels (``rdfs:label``, ``skos:prefLabel``), and for triples, of which
those of labels are none of the graph's. Texts in other languages than asked for and nodes without
an address are left out, and so is what says nothing in a text. Where several heads have one label,
each is told from the others by the end of its address: "Java (island)".
"""

import codecs
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import IO, cast
from urllib.parse import quote, unquote

import pyoxigraph as ox

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io.compression import PROBLEMS, Bounded, packing_error
from kbert_core.knowledge.io.rows import ReadOptions, Row, checked
from kbert_core.knowledge.io.text_lines import Bad, one_line, printable, refuse_others
from kbert_core.knowledge.triple import Triple

RDF_XML = ox.RdfFormat.RDF_XML
LINES = (".nt", ".nq")  # where a statement stands in a line, and a bad one harms no other
Terms = tuple[object, object, object]  # of a statement: subject, predicate, object
GROWTH = 100  # characters of addresses and texts, for a byte of the file: more is a trap
FREE = 10 << 20  # characters that any file may have
LONGEST_ENTITY, FULL = 200, 20  # characters of one of XML; of all, for a byte of the file
_ENTITY = re.compile(rb"""<!ENTITY\s+[^"'>]*?["']([^"']*)["']""")
_XML = re.compile(rb"<(\?xml|rdf:RDF|!DOCTYPE|!--)")
_SILENT = re.compile(  # addresses of relations that say nothing in a text
    r".*(oboInOwl#(id|hasOBONamespace|hasDbXref|hasAlternativeId|inSubset|created_by|creation_date)"
    r"|owl#(deprecated|versionIRI|versionInfo|imports)|rdf-schema#isDefinedBy|skos/core#inScheme)"
)
_CLASSES = re.compile(  # and of what a thing is said to be, as everything is
    r".*(/owl#\w+|rdf-schema#\w+|rdf-syntax-ns#\w+|skos/core#Concept\w*)"
)
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABEL = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
NAMESPACE = "urn:kbert:"
_LABELS = {LABEL.value, "http://www.w3.org/2004/02/skos/core#prefLabel"}


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
        ending: of RDF; the content may show another syntax.
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
    statements: Callable[[], Iterator[tuple[int, Terms | Bad]]],
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
    for _, terms in statements():
        if isinstance(terms, Bad):
            continue
        subject, predicate, object_ = terms
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
        if isinstance(terms, Bad):
            yield terms
            continue
        if (relation := _key(terms[1])) in _LABELS:
            continue
        silent = _CLASSES.fullmatch(_key(terms[2])) if relation == TYPE else _SILENT.match(relation)
        if silent and not options.silent:
            passed["what says nothing in a text (types of the syntax, numbers, namespaces)"] += 1
            continue
        names = [_called(term, labels, options.language) for term in terms]
        names[0] = told.get(_key(terms[0])) or names[0]
        head, relation_name, tail = (name if name is None else one_line(name) for name in names)
        if head is not None and relation_name is not None and tail is not None:
            yield checked(number, head, relation_name, tail)
        elif isinstance(term := terms[names.index(None)], ox.Literal):
            passed["texts in other languages" if term.value else "empty texts"] += 1
        else:
            passed["nodes without an address"] += 1


def _statements(
    opened: Callable[[], Bounded], name: str, ending: str
) -> Iterator[tuple[int, Terms | Bad]]:
    stream = opened()
    characters = number = bad = 0
    try:
        buffered = io.BufferedReader(stream, 1 << 16)
        start = buffered.peek()
        if start.startswith(codecs.BOM_UTF8):
            buffered.read(len(codecs.BOM_UTF8))
            start = start[len(codecs.BOM_UTF8) :]
        refuse_others(start, name)
        syntax = _syntax(ending, start.lstrip())
        bounded = _Entities(buffered, stream, name) if syntax == RDF_XML else buffered
        # lenient: rdflib cuts addresses at a "%" of 糖 and writes a prefix that ends with it
        quads = ox.parse(cast(IO[bytes], bounded), format=syntax, lenient=True)
        while True:
            number += 1
            try:
                quad = next(quads)
            except StopIteration:
                return
            except SyntaxError as error:
                if ending not in LINES:
                    raise
                number = error.lineno or number
                if number != bad:  # a line may hold several errors
                    problem = f"this isn't RDF ({printable(str(error))}). Mend or delete the line."
                    yield number, Bad(number, problem)
                bad = number
                continue
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
    except GraphFileError:
        raise
    except (SyntaxError, ValueError) as error:
        remedy = "Mend it there and open it again"
        if b"\0" in stream.start or stream.start.startswith((b"\xff\xfe", b"\xfe\xff")):
            remedy = "It looks like UTF-16, and RDF is always UTF-8: save it so"
        raise GraphFileError(f"{name}: {printable(str(error))}. {remedy}.") from error
    except PROBLEMS as error:
        raise packing_error(name, error) from error
    finally:
        stream.close()


def _syntax(ending: str, start: bytes) -> ox.RdfFormat:
    """The syntax of a file by its ending; of ontologies by what they begin with."""
    if _XML.match(start):
        return RDF_XML
    if ending in (".owl", ".rdf", ".jsonld"):
        ending = ".jsonld" if start.startswith((b"{", b"[")) else ".ttl"
    return format_of(ending)


def format_of(ending: str) -> ox.RdfFormat:
    """The syntax that an ending says, as pyoxigraph knows it; of ``.owl`` the usual one."""
    return ox.RdfFormat.from_extension(ending[1:]) or RDF_XML


class _Entities:
    """A stream of XML whose entities, such as ``&owl;``, can't fill the memory."""

    def __init__(self, file: IO[bytes] | io.BufferedReader, stream: Bounded, name: str) -> None:
        self._file, self._stream, self._name = file, stream, name
        self._before, self._longest, self._used = b"", 0, 0

    def read(self, size: int = -1) -> bytes:
        """Read on; GraphFileError where entities are built of others, or long, or too many."""
        data = self._file.read(size)
        seen = self._before + data
        self._before = seen[-2 * LONGEST_ENTITY :]
        self._used += data.count(b"&")
        values = _ENTITY.findall(seen)
        self._longest = max([self._longest, *map(len, values)])
        begun = seen.count(b"<!ENTITY") > len(values) and len(seen) > 4 * LONGEST_ENTITY
        late = begun and seen.rfind(b"<!ENTITY") < len(seen) - 2 * LONGEST_ENTITY
        full = self._used * self._longest > FREE + FULL * self._stream.count
        if full or late or self._longest > LONGEST_ENTITY or any(b"&" in v for v in values):
            raise GraphFileError(
                f"{self._name}: its entities (<!ENTITY …>) are long, or built of others, so that "
                "they could fill the memory. Save it as Turtle, and open that file."
            )
        return data


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


def write_rdf(triples: Iterable[Triple], stream: IO[bytes], ending: str) -> None:
    """Write triples; every name has an address and its label, and a tail is a text."""
    ox.serialize(_written(triples), cast(IO[bytes], _Plain(stream)), format=format_of(ending))


class _Plain:
    """What pyoxigraph can write to, whatever kind of packed stream is below."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.flush = stream, stream.flush

    def write(self, data: bytes) -> int:
        return self._stream.write(bytes(data))


def _written(triples: Iterable[Triple]) -> Iterator[ox.Triple]:
    """Every name's label once, as long as a name's triples stand together."""

    def named(name: str) -> ox.NamedNode:
        return ox.NamedNode(f"{NAMESPACE}{quote(name, safe='')}")

    labelled: set[str] = set()
    last = ""
    for triple in triples:
        new = [triple.relation] if triple.relation not in labelled else []
        new += [triple.head] if triple.head != last else []
        for name in new:
            yield ox.Triple(named(name), LABEL, ox.Literal(name))
        labelled.add(triple.relation)
        last = triple.head
        yield ox.Triple(named(triple.head), named(triple.relation), ox.Literal(triple.tail))
