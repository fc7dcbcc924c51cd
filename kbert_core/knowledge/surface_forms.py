"""Surface forms: the ways in which a text may write an entity's name, and by which rule.

Names are looked up by a key that forgets everything a rule may forgive: width, case, traditional
characters, dashes and spaces. :func:`agreement` then says which rules that took, if they are on.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from html import unescape
from itertools import chain, product

from kbert_core.errors import OptionError
from kbert_core.knowledge.names import (
    APOSTROPHES,
    DASHES,
    is_word_character,
    loose_key,
    normalise_name,
    simplified,
)
from kbert_core.knowledge.respelling import (
    ONLY_ENDS_IN_S,
    OWNER,
    has_more_forms,
    in_other_number,
    spellings,
    without_greek,
    without_roman,
)
from kbert_core.knowledge.triple import AliasRelations, Triple


class NameRule(StrEnum):
    """How a name in a text may differ from the graph's."""

    WIDTH = "full and half width"
    CASE = "upper and lower case"
    SCRIPT = "traditional and simplified characters"
    DASHES = "dashes and dots"
    SPACES = "spaces"
    PLURAL = "English plural"
    SENSE = "without what the graph puts in parentheses"
    ALIAS = "another name in the graph"
    UNDERSCORES = "underscores for spaces"
    HTML = "characters written as in HTML"
    GREEK = "Greek letters spelt out"
    NUMERALS = "Roman numerals"
    POSSESSIVE = "a possessive 's"
    LATIN = "Latin plural"


_FOLDS = (  # in the order in which they are given up
    *(NameRule.UNDERSCORES, NameRule.HTML, NameRule.GREEK, NameRule.NUMERALS, NameRule.POSSESSIVE),
    *(NameRule.DASHES, NameRule.SPACES, NameRule.SCRIPT, NameRule.CASE, NameRule.WIDTH),
)


@dataclass(frozen=True)
class NameRules:
    """Which differences between a text and the graph don't matter, and what is no name.

    The rules from ``underscores`` on are newer than many models; a text in a script without
    spaces between words is read without them.
    """

    width: bool = True  # full and half width, and what else Unicode holds compatible (NFKC)
    case: bool = True
    script: bool = True  # traditional and simplified characters, one by one
    dashes: bool = True  # which dash, dot or apostrophe; a dash against none, or a space
    spaces: bool = True  # beside a Chinese character, or between a letter and a digit
    plural: bool = True  # a regular English plural, of the last word
    sense: bool = True  # a head's last part in parentheses: 苹果 for 苹果（公司）
    alias: bool = True  # other names that the graph gives (see ``triple.AliasRelations``)
    underscores: bool = True  # the graph's heart_attack
    html: bool = True  # the graph's Crohn&#39;s disease
    greek: bool = True  # α-synuclein, alpha-synuclein
    numerals: bool = True  # type II, type 2
    possessive: bool = True  # Crohn's, Crohns, Crohn disease
    latin: bool = True  # bacteria, women; and Wales is no plural
    acronyms: bool = True  # a name of two to five capitals is found only so: us isn't US
    whole: bool = True  # not inside a word or number that goes on: non-smoker, 1.12

    @classmethod
    def of(cls, names: Iterable[str]) -> "NameRules":
        """Return the rules named; "all", "basic" and "as-written" name sets of rules.

        Raises:
            OptionError: there is no such rule.
        """
        on: set[str] = set()
        if isinstance(names, str):
            raise OptionError(f"names is '{names}', expected a list. Put a single one into a list.")
        for name in names:
            some = _SETS.get(name, (name,))
            if not {*some} <= {*RULES}:
                raise OptionError(
                    f"'{name}' isn't a rule for comparing names; expected all, basic, "
                    f"as-written, or some of {', '.join(RULES)}."
                )
            on.update(some)
        return cls(**{rule: rule in on for rule in RULES})

    def as_list(self) -> list[str]:
        """Return the names of the rules that are on."""
        return [rule for rule in RULES if getattr(self, rule)]

    @cached_property
    def on(self) -> frozenset[NameRule]:
        """The rules that are on."""
        return frozenset(rule for rule in NameRule if getattr(self, rule.name.lower()))

    @cached_property
    def basic(self) -> "NameRules":
        """The same without those that are newer than many models."""
        newer = [rule for rule in self.as_list() if rule not in _SETS["basic"]]
        return replace(self, **dict.fromkeys(newer, False)) if newer else self


RULES = tuple(field.name for field in fields(NameRules))
_SETS = {"all": RULES, "basic": RULES[:8], "as-written": ("width", "case")}
ALL_RULES = NameRules()
BASIC = NameRules.of(["basic"])
AS_WRITTEN = NameRules.of(["as-written"])  # but for width and case


def forms_of(
    entity: str, triples: Iterable[Triple], aliases: AliasRelations
) -> Iterator[tuple[str, str]]:
    """Yield each key under which an entity's name is looked up, with the entity."""
    for form in _own_forms(entity):
        yield form, entity
    for triple in triples:
        said = aliases.aliases_in(triple)
        if said is not None:
            alias, of = (normalise_name(name) for name in said)
            if alias and of:
                for form in _own_forms(alias):
                    yield form, of


def _own_forms(name: str) -> Iterator[str]:
    if not has_more_forms(name):
        names = [name]
    else:
        names = [form for known in spellings(name, without_sense(name)) for form in _forms(known)]
    yield from filter(None, map(loose_key, names))


def _forms(name: str) -> Iterator[str]:
    base = without_sense(name)
    yield from dict.fromkeys((name, base))
    yield from _singulars(base)
    if re.search(r"[A-Za-z][^\W\d_aeiou]y$", base):  # a plural that doesn't begin with the name
        yield base[:-1] + "ies"


def without_sense(name: str) -> str:
    """Remove the sense in parentheses at the end of a name: 苹果(公司) → 苹果.

    Parentheses right after Latin letters or digits are a part of the name: Fe(III), p(Cl).
    """
    if name[-1:] not in ")）":
        return name
    return _SENSE.sub("", name) or name


_SENSE = re.compile(r"(?!(?<=[A-Za-z0-9])[(（][\x20-\x7e]*[)）]$)\s*[(（][^()（）]*[)）]$")


def agreement(span: str, names: Iterable[str], rules: NameRules) -> tuple[NameRule, ...] | None:
    """Return the rules that are needed to read one of an entity's names in a text.

    Returns:
        The rules of the name that needs the fewest; None: with the rules that are on, no
        name equals the span of the text.
    """
    every = (_agreement(span, name, rules) for name in names)
    return min((taken for taken in every if taken is not None), key=len, default=None)


@lru_cache(maxsize=65_536)
def _agreement(span: str, name: str, rules: NameRules) -> tuple[NameRule, ...] | None:
    ways = _ways(span, name, rules.basic)
    if rules is not rules.basic:
        ways = chain(ways, _ways(span, name, rules))
    taken = next(ways, None)
    if taken and rules.acronyms and NameRule.CASE in taken and is_acronym(name):
        return None
    if taken and rules.latin and NameRule.PLURAL in taken:
        return None if ONLY_ENDS_IN_S.search(f"{span}\n{name}") else taken
    return taken


def is_acronym(name: str) -> bool:
    """Say whether a name is of two to five capitals, such as WHO, which isn't who."""
    return re.fullmatch("[A-Z]{2,5}", without_sense(name)) is not None


def _ways(span: str, name: str, rules: NameRules) -> Iterator[tuple[NameRule, ...]]:
    """Yield the rules by which a span may be read as a name, in one way after the other."""
    names: list[tuple[str, tuple[NameRule, ...]]] = [(name, ())]
    if rules.sense and (base := without_sense(name)) != name:
        names.append((base, (NameRule.SENSE,)))
    for named, sense in names:
        for one, other, number in _in_one_number(span, named, rules):
            folds = _folded(one, other, rules.on)
            if folds is not None:
                yield (*folds, *number, *sense)


def _in_one_number(
    span: str, name: str, rules: NameRules
) -> Iterator[tuple[str, str, tuple[NameRule, ...]]]:
    """Yield two names as they are, then one of them in the singular or in the Latin plural."""
    yield span, name, ()
    if rules.plural and span[-1:].isalpha() and span[-1:].isascii():
        pairs = [(singular, name) for singular in _singulars(span)]
        pairs += [(singular, span) for singular in _singulars(name)]
        for singular, written in pairs:
            acronym = len(written) <= _LONGEST_ACRONYM and written.isupper()
            if singular.isupper() or not acronym:  # cats are no plural of CAT, which has CATs
                yield singular, written, (NameRule.PLURAL,)
    for other in in_other_number(span) if rules.latin else ():
        yield other, name, (NameRule.LATIN,)


def _folded(span: str, name: str, on: Set[NameRule]) -> tuple[NameRule, ...] | None:
    """Compare two names; if they are the same, keep only the rules that are needed for that."""
    if span == name:
        return ()
    taken = [rule for rule in _FOLDS if rule in on]
    if not _same(span, name, taken):
        taken = [rule for rule in taken if rule is not NameRule.SPACES]  # a wide gap is none
        if not _same(span, name, taken):
            return None
    for rule in tuple(taken):
        fewer = [other for other in taken if other is not rule]
        if _same(span, name, fewer):
            taken = fewer
    return tuple(taken)


def _same(one: str, other: str, rules: Iterable[NameRule]) -> bool:
    rules = frozenset(rules)
    dashes = ("", " ") if NameRule.DASHES in rules else ("",)
    endings = ("s", "") if NameRule.POSSESSIVE in rules else ("",)
    return any(
        _canonical(one, rules, *how) == _canonical(other, rules, *how)
        for how in product(dashes, endings)
    )


def _canonical(name: str, rules: frozenset[NameRule], dash: str, ending: str) -> str:
    name = unicodedata.normalize("NFKC" if NameRule.WIDTH in rules else "NFC", name)
    if NameRule.HTML in rules:
        name = unescape(name)
    if NameRule.UNDERSCORES in rules:
        name = name.replace("_", " ")
    if NameRule.GREEK in rules:
        name = without_greek(name)
    if NameRule.NUMERALS in rules:
        name = without_roman(name)
    if NameRule.CASE in rules:
        name = name.casefold()
    if NameRule.SCRIPT in rules:
        name = "".join(map(simplified, name))
    if NameRule.DASHES in rules:
        name = _RANGE.sub("\0", name)  # a dash between digits says something
        name = "".join(dash if c in DASHES else "'" if c in APOSTROPHES else c for c in name)
    if NameRule.POSSESSIVE in rules:
        name = OWNER.sub(ending, name)
    name = _SPACES.sub(lambda run: " " if run.group() in _ONE_SPACE else "\n", name.strip())
    if NameRule.SPACES in rules and " " in name:
        name = "".join(
            c for i, c in enumerate(name) if c != " " or _parts_words(name[i - 1], name[i + 1])
        )
    return name.replace("\n", " ")


_RANGE = re.compile(f"(?<=[0-9])[{re.escape(''.join(sorted(DASHES)))}](?=[0-9])")
_SPACES = re.compile(r"\s+")
_ONE_SPACE = (" ", "\t", "\u00a0", "\u3000")  # others part what isn't parted in the graph


def _parts_words(before: str, after: str) -> bool:
    """Say whether a space must stay between two characters: both letters, or both digits."""
    both = is_word_character(before) and is_word_character(after)
    return both and before.isdigit() == after.isdigit()


def _singulars(name: str) -> tuple[str, ...]:
    """Return the singulars whose regular plural is the last word of a name."""
    if not name.endswith("s") or re.split("[^A-Za-z]", name)[-1].lower() in NO_PLURALS:
        return ()
    found = []
    if name.endswith("ies"):
        found.append(name[:-3] + "y")
    elif name.endswith(("ses", "xes", "zes", "ches", "shes")):
        found.append(name[:-2])
    if not name.endswith(("ss", "us", "is")):
        found.append(name[:-1])
    return tuple(one for one in found if re.search(r"[A-Za-z]{3}$", one))


_LONGEST_ACRONYM = 4  # characters
_NO_PLURALS = """
caries diabetes herpes hives measles mumps rabies rickets scabies shingles biceps forceps pancreas
triceps acoustics aesthetics athletics biomechanics dynamics economics electronics ethics genetics
genomics geriatrics gymnastics kinetics linguistics logistics mathematics obstetrics optics
orthopaedics orthopedics paediatrics pediatrics pharmacodynamics pharmacokinetics phonetics physics
politics proteomics robotics semantics thermodynamics alias atlas bias canvas chaos clothes corps
cosmos does goods headquarters jeans lens means news pants series species thanks whereas
"""
NO_PLURALS = frozenset(_NO_PLURALS.split())  # without their s other words, or none


def plural_end(text: str, end: int) -> int | None:
    """Return the end of a plural, given the place where the name ends: headache|s.

    None: no plural ending follows, or the word goes on after it.
    """
    found = _PLURAL_ENDING.match(text, max(end - 3, 0))
    if found is None or found.start("ending") != end:
        return None
    goes_on = found.end() < len(text) and is_word_character(text[found.end()])
    return None if goes_on else found.end()


_PLURAL_ENDING = re.compile(r"[A-Za-z]{3}(?P<ending>(?<=[sxzSXZ]|[hH])es|(?<![sS])s)")


def with_dashes(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a span with the dashes that stand beside it: with one, the other, and both."""
    before = start > 0 and text[start - 1] in DASHES
    after = end < len(text) and text[end] in DASHES
    if after:
        yield start, end + 1
    if before:
        yield start - 1, end
    if before and after:
        yield start - 1, end + 1


def without_spaces_between_words(span: str) -> str:
    """Drop the spaces that stand between two words written without spaces."""
    if " " not in span:
        return span
    return "".join(
        c
        for i, c in enumerate(span)
        if c != " " or is_word_character(span[i - 1]) or is_word_character(span[i + 1])
    )
