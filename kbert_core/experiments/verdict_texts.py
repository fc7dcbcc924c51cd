"""What a verdict says, in English, and by keys for whoever says it in another language."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ENGLISH = {
    "gap": " ",  # between two sentences
    "list": ", ",
    "end": ".",
    "headline.nothing": "The graph names nothing in the {held_out} set: a K-BERT with it would "
    "read these texts as plain BERT does.",
    "headline.leaks_room": "This split can hardly show what knowledge adds: it leaks, and training "
    "shows nearly every name.",
    "headline.leaks": "Scores on this split are too good: the splits leak.",
    "headline.room": "This split leaves knowledge little to add: training shows nearly every name.",
    "headline.made_from_data": "Gains with this graph would show that the model reads it, not that "
    "independent knowledge helps: the graph looks as if it had been made from these annotations.",
    "headline.coverage": "The graph knows too little of these texts to expect much of it.",
    "headline.good": "Nothing counted here stands against the experiment: compare a model trained "
    "with the graph, one without it and one with a shuffled graph.",
    "headline.good_ner": "Nothing counted here stands against the experiment: compare a model "
    "trained with the graph, one without it and one with a shuffled graph, beside a plain "
    "dictionary.",
    "missing.one": "There is no {first} set here. What follows is about the {held_out} set.",
    "missing.two": "There is no {first} and no {second} set here. What follows is about the "
    "{held_out} set.",
    "size.one": "The {held_out} set has 1 row: take the shares as rough.",
    "size": "The {held_out} set has {rows} rows: take the shares as rough.",
    "coverage.texts": "{share.percent} of the {held_out} texts name a head of the graph, {per:.1f} "
    "names a text. Whether what is said of them bears on the label can't be counted here.",
    "coverage": "The graph knows {known.percent} of the {known.total:,} {held_out} mentions by "
    "name",
    "coverage.labels": ", most of {most} ({high.percent}), least of {least} ({low.percent})",
    "coverage.reached": "; {reached.percent} are found whole, the others inside a longer match",
    "room": "{share.percent} of the {share.total:,} {held_out} mentions have a name that training "
    "doesn't show",
    "room.known": ", and the graph knows {known.percent} of those: at most {new.percent} of all "
    "mentions are new to the model and known to the graph",
    "room.little": "Split entity-disjoint (`kbert split`) to see what knowledge adds.",
    "room.silent": "Where training is silent, so is the graph.",
    "leaks.none": "The splits share no text.",
    "leaks.hardly": "The splits hardly share a text: at most {texts.percent} of the "
    "{texts.total:,} {of} rows stand in {into}.",
    "leaks.share": "{texts.percent} of {of} stand in {into}",
    "leaks": "The splits share texts: {shares}. Report a deduplicated split as well "
    "(`kbert split --by deduplicated`).",
    "made.names": "{known.percent} of those of {split}",
    "made.evidence": " (of the names that stand in one split only it knows {names})",
    "made.group": "{name} {gold.percent}",
    "made": "Nearly all heads of some types are gold mentions of this data, word for word: "
    "{groups}; {mentions.percent} of the {mentions.total:,} known {held_out} mentions are of such "
    "a type. The graph may have been made from the annotations{evidence}: use one made by others "
    "as well.",
    "made.not": "Nothing says that the graph was made from this data: {heads.percent} of the "
    "{heads.total:,} heads are gold mentions{evidence}.",
    "dictionary.nothing": "A plain dictionary of the graph tags nothing.",
    "dictionary": "A plain dictionary of the graph alone reaches F1 {f1:.1f} on {held_out} "
    "(precision {precision:.1f}, recall {recall:.1f}; {unseen:.1f} on unseen names). A model that "
    "reads the graph has to beat it, and BERT with the dictionary written over.",
    "majority": "Always saying the training set's most frequent label is right for "
    "{share.percent} of the {share.total:,} {held_out} rows.",
    "noise": "{share.percent} of the {share.total:,} matches in {held_out} are gold mentions.",
    "noise.others": "The others are knowledge noise for this task.",
    "ambiguity": "{matched.percent} of the {matched.total:,} matches in {held_out} are of heads "
    "whose tails disagree",
    "ambiguity.relation": "; {several.percent} of the {several.total:,} heads have several tails "
    "under “{relation}”",
    "homonyms": "{matched.percent} of the {matched.total:,} matches in {held_out} have a name that "
    "may mean several heads, in {rows.percent} of the rows with a match: {names}",
    "homonyms.name": "“{name}” ({heads})",
    "homonyms.head": "{head}",
    "homonyms.more": "…",
    "homonyms.all": "Their triples share the places of one mention, in graph order; `--strategy "
    "context --one-sense` keeps to the head that fits best.",
    "conflicts.one": "One text is labelled in more than one way, in {rows.percent} of the "
    "{rows.total:,} rows: no model can be right on all of them.",
    "conflicts": "{count:,} texts are labelled in more than one way, in {rows.percent} of the "
    "{rows.total:,} rows: no model can be right on all of them.",
    "length": "Injection adds {mean:.1f} tokens to the {tokens:.1f} of a {held_out} input "
    "({added.percent})",
    "length.over": "; {long.percent} of the inputs are over {limit} tokens, and "
    "{no_room.percent} of the branches' tokens find no room",
    "length.cuts_none": "; a limit of {limit} cuts no input",
    "length.cuts_one": "; a limit of {limit} cuts 1 input",
    "length.cuts": "; a limit of {limit} cuts {count} inputs",
}
SPLIT_NAMES = frozenset({"held_out", "first", "second", "of", "into", "split"})


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of a text: which one, and with what in it.

    Attributes:
        key: of ``ENGLISH``.
        values: by placeholder; those named in ``SPLIT_NAMES`` are names of
            splits, a tuple of pieces is a list.
    """

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)


def said(key: str, **values: Any) -> Said:
    """Say one piece."""
    return Said(key, values)


def in_words(
    pieces: tuple[Said, ...],
    texts: Mapping[str, str] = ENGLISH,
    split_name: Callable[[str], str] = str,
) -> str:
    """Write pieces out, one after the other.

    Args:
        pieces: in order; they bring their own spaces and stops.
        texts: by the keys of ``ENGLISH``, with the same placeholders.
        split_name: what a split is called in the language of ``texts``.
    """

    def shown(name: str, value: Any) -> Any:
        if name in SPLIT_NAMES:
            return split_name(value)
        if isinstance(value, Said):
            return write(value)
        if isinstance(value, tuple):
            return texts["list"].join(write(piece) for piece in value)
        return value

    def write(piece: Said) -> str:
        values = {name: shown(name, value) for name, value in piece.values.items()}
        return texts[piece.key].format(**values)

    return "".join(write(piece) for piece in pieces)
