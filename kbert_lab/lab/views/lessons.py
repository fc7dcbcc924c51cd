"""Seven lessons: a text, a question to predict, and an answer computed at that moment. Pure.

What is said stands in ``lessons.yaml``; here is what comes out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import torch
import yaml

from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.kbert import KBertTrace
from kbert_core.kbert.visible import FULL, Ablation
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple
from kbert_core.layers import additive_mask
from kbert_core.tasks import NerPrediction
from kbert_lab.graphs.controls import with_noise
from kbert_lab.lab.examples import MINILM
from kbert_lab.lab.scene import WORDS
from kbert_lab.lab.texts import listed, t
from kbert_lab.lab.views.html import rendered
from kbert_lab.lab.views.prediction import Side, percent, spans_html
from kbert_lab.lab.views.tree import tree_html, tree_view
from kbert_lab.lab.views.why import why
from kbert_lab.lab.written import Identity

# lesson → its title, texts and notebook, in the order of the lessons
LESSON: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
LESSONS = tuple(LESSON)
MODEL = "medical-ner-kbert"  # of the lessons that need one; shipped
TIM_COOK = "Tim Cook is visiting Beijing now"
HISTORY = "患者有高血压病史，予阿司匹林治疗"  # history of hypertension, given aspirin
MENTION, TYPE, WRONG = "高血压", "类别", "检查"  # hypertension, type, examination
NOISE, SEED = 5, 1  # unrelated triples at each mention, and of what is drawn
NONE = "none"


@dataclass(frozen=True)
class Setting:
    """A scene that a lesson shows and the Lab opens."""

    text: str  # one sentence
    graph: KnowledgeGraph  # before the edits
    model: str = WORDS  # a checkpoint's folder name, MINILM, or WORDS
    edits: tuple[Edit, ...] = ()  # made to the graph
    more_triples: int = 0  # of a mention, beyond what the model was trained with
    ablation: Ablation = FULL  # how the tree is read
    panel: str = "visible"  # of the Lab's matrix
    cell: tuple[Identity, Identity] | None = None  # chosen in it

    @property
    def edited(self) -> KnowledgeGraph:
        """The graph with the edits made."""
        return reduce(KnowledgeGraph.apply, self.edits, self.graph)


Read = Callable[[Setting], KBertTrace]
Demo = Callable[[str], KnowledgeGraph]


@dataclass(frozen=True)
class Exercise:
    """One lesson, worked out."""

    setting: Setting  # what the Lab opens
    choices: Mapping[str, str]  # key → plain text, in the order shown
    right: str  # key of the right choice, as it came out
    picture: str  # HTML, before the answer is revealed; it doesn't tell it
    revealed: str = ""  # HTML, drawn with the answer
    values: dict[str, object] = field(default_factory=dict)  # of the lesson's texts
    reasons: tuple[str, ...] = ()  # plain text, beside the lesson's own, a paragraph each
    matrix: FlatTree | None = None  # the tree whose visible matrix is drawn with the answer

    def __post_init__(self) -> None:
        if self.right not in self.choices:
            raise ValueError(f"'{self.right}' is none of {', '.join(self.choices)}.")


def texts_of(lesson: str) -> Iterator[str]:
    """All that a lesson says, in English."""
    own = LESSON[lesson]
    yield from (own["title"], own["text"], own["question"])
    yield from (*own.get("why", ()), *own.get("choices", {}).values())


def needs_model(lesson: str) -> bool:
    """Whether a lesson can't be shown without ``MODEL``."""
    return lesson in ("noise", "hurts")


def exercise(lesson: str, read: Read, demo: Demo) -> Exercise:
    """Work a lesson out.

    Args:
        lesson: one of ``LESSONS``.
        read: runs a setting.
        demo: a graph that comes with the project, by its name.

    Raises:
        KBertError: its scene can't be run.
    """
    if needs_model(lesson):
        return (_noise if lesson == "noise" else _hurts)(read, demo)
    setting = Setting(TIM_COOK, demo("figure2"))
    return FIGURE_2[lesson](setting, read(setting))


# Figure 2


def _tokens(setting: Setting, trace: KBertTrace) -> Exercise:
    flat = trace.rows[0]
    trunk, triples = flat.branch_ids.count(0), len(trace.used)
    special = {index for index, _ in flat.specials}
    words = [i for i, b in enumerate(flat.branch_ids) if b == 0 and i not in special]
    values: dict[str, object] = {
        "all": len(flat),
        "trunk": trunk,
        "specials": listed(flat.tokens[i] for i in special),
        "branch": len(flat) - trunk,
        "triples": triples,
    }
    return Exercise(
        setting,
        _numbers(len(words), trunk, trunk + triples, len(flat)),
        str(len(flat)),
        _chips(flat, words, trace.used),
        _tree(trace, positions=False),
        values,
    )


def _tree_lesson(setting: Setting, trace: KBertTrace) -> Exercise:
    flat = trace.rows[0]
    last = flat.tokens.index("Cook")
    return Exercise(
        setting,
        {name: name for name in ("is", "CEO", "visiting", "Beijing")},
        flat.tokens[last + 1],
        _tree(trace, positions=False),
        _chips(flat, range(len(flat))),
        {"token": flat.tokens[last], "mention": "Tim Cook"},
    )


def _positions(setting: Setting, trace: KBertTrace) -> Exercise:
    flat = trace.rows[0]
    soft, hard, before = flat.soft_positions, flat.tokens.index("is"), flat.tokens.index("Cook")
    shared = next(i for i, p in enumerate(soft) if p == soft[hard] and flat.branch_ids[i] > 0)
    values: dict[str, object] = {
        "token": flat.tokens[hard],
        "hard": hard,
        "soft": soft[hard],
        "before": flat.tokens[before],
        "before_soft": soft[before],
        "shared": flat.tokens[shared],
    }
    choices = _numbers(soft[hard] - 1, soft[hard], soft[hard] + 1, hard)
    picture = _tree(trace, positions=False)
    return Exercise(setting, choices, str(soft[hard]), picture, _tree(trace), values)


def _visible(setting: Setting, trace: KBertTrace) -> Exercise:
    flat = trace.rows[0]
    column = flat.tokens.index("Apple")
    asked = [flat.tokens.index(name) for name in ("[CLS]", "Cook", "is", "China")]
    seeing = [row for row in asked if bool(trace.visible[0, row, column])]
    cell = (flat.identities[seeing[0]], flat.identities[column]) if seeing else None
    return Exercise(
        replace(setting, cell=cell),
        {flat.tokens[row]: flat.tokens[row] for row in asked},
        flat.tokens[seeing[0]] if len(seeing) == 1 else "",
        _tree(trace, positions=False),
        values={"token": flat.tokens[column]},
        reasons=tuple(why(flat, row, column, trace.ablation) for row in asked),
        matrix=flat,
    )


SCORES = {"Tim": 1.0, "Cook": 2.0, "CEO": 1.0, "Apple": 0.0}  # made up; 1 for every other token


def _attention(setting: Setting, trace: KBertTrace) -> Exercise:
    flat = trace.rows[0]
    row, column = flat.tokens.index("Apple"), flat.tokens.index("Cook")
    scores = torch.tensor([SCORES.get(token, 1.0) for token in flat.tokens])
    mask = additive_mask(trace.visible, torch.float32)[0, 0, row]
    weights = (scores + mask).softmax(dim=0)
    raised = scores.exp()
    seen = raised[mask == 0]
    by_hand = {
        "masked": float(raised[column] / seen.sum()),
        "unmasked": float(raised[column] / raised.sum()),
        "equal": 1 / len(seen),
        "nothing": 0.0,
    }
    values: dict[str, object] = {
        "row": flat.tokens[row],
        "column": flat.tokens[column],
        "n": len(seen),
        "score": f"{scores[column]:g}",
        "raised": f"{raised[column]:.2f}",
        "total": f"{seen.sum():.2f}",
        "p": percent(float(weights[column])),
        "unmasked": percent(by_hand["unmasked"]),
    }
    return Exercise(
        replace(setting, model=MINILM, panel="attention"),
        {name: percent(by_hand[name]) for name in sorted(by_hand, key=lambda one: by_hand[one])},
        min(by_hand, key=lambda name: abs(by_hand[name] - float(weights[column]))),
        _scores_table(flat, scores, mask, None),
        _scores_table(flat, scores, mask, weights),
        values,
    )


FIGURE_2 = {
    "tokens": _tokens,
    "tree": _tree_lesson,
    "positions": _positions,
    "visible": _visible,
    "attention": _attention,
}


# A trained model


def _noise(read: Read, demo: Demo) -> Exercise:
    quiet = Setting(HISTORY, _about(HISTORY, demo("medical_zh"), "lesson-6", read), MODEL)
    entities = [node.mention.entity for node in read(quiet).tree.nodes]
    everyday = list(demo("everyday_zh"))
    graph = with_noise(quiet.graph, entities, NOISE, seed=SEED, source=everyday, place="before")
    graph.name = "lesson-6-noise"
    noisy = Setting(HISTORY, graph, MODEL, more_triples=NOISE)
    tree, every = (
        [read(replace(one, ablation=ablation)).prediction for one in (quiet, noisy)]
        for ablation in (FULL, Ablation(visible="all"))
    )
    changed, without = _changed(*tree), _changed(*every)
    lines = ""  # the tags of each reading without noise and with it; those that changed are ringed
    for title, found in (t("Visible matrix"), tree), (t("Everything visible"), every):
        names = t("without noise"), t("with noise")
        pair = [Side(title, name, one) for name, one in zip(names, found, strict=True)]
        lines += spans_html(HISTORY, pair)
    values: dict[str, object] = {
        "count": NOISE,
        "seed": SEED,
        "tokens": len(tree[0].tokens),
        "tree": changed,
        "all": without,
        "n": _changed(tree[0], every[0]),
    }
    choices = {kind: t(text) for kind, text in LESSON["noise"]["choices"].items()}
    right = list(choices)[bool(without) + 2 * bool(changed)]
    drawn = _tree(read(noisy))
    return Exercise(noisy, choices, right, drawn, drawn + lines, values)


def _hurts(read: Read, demo: Demo) -> Exercise:
    graph = _about(HISTORY, demo("medical_zh"), "lesson-7", read)
    right = next(x for x in graph.triples_of(MENTION) if x.relation == TYPE)
    wrong = Triple(right.head, TYPE, WRONG)
    setting = Setting(HISTORY, graph, MODEL, (Edit("replace", right, wrong),))
    after = read(setting)
    readings = {
        "right": read(replace(setting, edits=())).prediction,
        "wrong": after.prediction,
        "plain": read(replace(setting, graph=KnowledgeGraph(), edits=())).prediction,
    }
    labels = {name: _label(found) for name, found in readings.items()}
    tags = readings["right"].tokens[0].probabilities
    kinds = sorted({tag.split("-", 1)[1] for tag in tags if "-" in tag})
    names = (t("with the right triple"), t("with the wrong triple"), t("no knowledge"))
    sides = [Side(name, "", one) for name, one in zip(names, readings.values(), strict=True)]
    values = {name: _named(*label) for name, label in labels.items()}
    return Exercise(
        setting,
        {kind: kind for kind in kinds} | {NONE: t("no entity")},
        labels["wrong"][0],
        _tree(after),
        _tree(after) + spans_html(HISTORY, sides),
        {**values, "mention": MENTION, "old": right, "new": wrong},
    )


def _about(text: str, graph: KnowledgeGraph, name: str, read: Read) -> KnowledgeGraph:
    """What a graph says of the names in a text: small, and apart from the graph itself."""
    tree = read(Setting(text, graph, MODEL)).tree
    entities = dict.fromkeys(e for node in tree.nodes for e in node.mention.entities)
    return KnowledgeGraph([x for e in entities for x in graph.triples_of(e)], name=name)


def _changed(before: NerPrediction, after: NerPrediction) -> int:
    """How many tokens have another tag."""
    pairs = zip(before.tokens, after.tokens, strict=True)
    return sum(one.tag != other.tag for one, other in pairs)


def _label(prediction: NerPrediction) -> tuple[str, float]:
    """The type of ``MENTION`` and its probability; ``NONE`` where it is found otherwise."""
    start = HISTORY.index(MENTION)
    place = (start, start + len(MENTION))
    spans = (own for own in prediction.spans if (own.start, own.end) == place)
    return next(((own.label, own.probability) for own in spans), (NONE, 0.0))


def _named(label: str, probability: float) -> str:
    return t("no entity") if label == NONE else f"{label} {percent(probability)}"


# Pictures


def _numbers(*guesses: int) -> dict[str, str]:
    return {str(guess): str(guess) for guess in sorted({*guesses})}


def _tree(trace: KBertTrace, *, positions: bool = True) -> str:
    drawn = tree_html(tree_view(trace))
    return drawn if positions else f'<div class="kb-no-positions">{drawn}</div>'


def _chips(flat: FlatTree, places: Iterable[int], triples: Sequence[Triple] = ()) -> str:
    """Tokens in a row, those of branches in another colour; triples below."""
    words = [(flat.tokens[i], flat.branch_ids[i] > 0) for i in places]
    return rendered("lesson", words=words, triples=triples)


def _scores_table(
    flat: FlatTree, scores: torch.Tensor, mask: torch.Tensor, weights: torch.Tensor | None
) -> str:
    """One row of attention: score, mask, e to their sum, and its share; the last two if told."""
    told, weights = weights is not None, scores if weights is None else weights
    columns = (flat.tokens, scores, scores.exp(), mask < 0, weights)
    names = ("token", "score", "raised", "hidden", "weight")
    rows = [dict(zip(names, own, strict=True)) for own in zip(*columns, strict=True)]
    return rendered("lesson", scores=rows, told=told, percent=lambda own: percent(float(own)))
