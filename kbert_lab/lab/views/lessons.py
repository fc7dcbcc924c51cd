"""Seven lessons: a text, a question to predict, and an answer computed at that moment. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

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
from kbert_lab.lab.texts import N_, listed, sentences, t
from kbert_lab.lab.views.html import escape, shown, table_html
from kbert_lab.lab.views.prediction import Side, before_and_now, percent, spans_html
from kbert_lab.lab.views.tree import tree_html, tree_view
from kbert_lab.lab.views.why import why
from kbert_lab.lab.written import Identity

# lesson → its title, texts and notebook, in the order of the lessons
LESSON: dict[str, dict[str, str]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
LESSONS = tuple(LESSON)
LEARN_NOISE = {
    "neither": N_("Nowhere: not one tag changes"),
    "only_all": N_("Only where everything is visible"),
    "only_tree": N_("Only with the visible matrix"),
    "both": N_("In both readings"),
}

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
    picture: str  # HTML, before the answer is revealed; it doesn't tell it
    question: str  # plain text
    choices: dict[str, str]  # key → plain text, in the order shown
    right: str  # key of the right choice, as it came out
    why: tuple[str, ...]  # plain text, told with the answer, a paragraph each
    revealed: str  # HTML, drawn with the answer
    values: dict[str, object] = field(default_factory=dict)  # of its text
    matrix: FlatTree | None = None  # the tree whose visible matrix is drawn with the answer

    def __post_init__(self) -> None:
        if self.right not in self.choices:
            raise ValueError(f"'{self.right}' is none of {', '.join(self.choices)}.")


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
    return _MAKERS[lesson](read, demo)


def place(lesson: str) -> int:
    """The number of a lesson, from 1."""
    return LESSONS.index(lesson) + 1


# Figure 2


def _figure(read: Read, demo: Demo) -> tuple[Setting, KBertTrace, FlatTree]:
    setting = Setting(TIM_COOK, demo("figure2"))
    trace = read(setting)
    return setting, trace, trace.rows[0]


def _tokens(read: Read, demo: Demo) -> Exercise:
    setting, trace, flat = _figure(read, demo)
    trunk = sum(1 for branch in flat.branch_ids if branch == 0)
    words = trunk - len(flat.specials)
    triples = len(trace.used)
    guesses = sorted({words, trunk, trunk + triples, len(flat)})
    why_it_is = t(
        LESSON["tokens"]["why"],
        all=len(flat),
        trunk=trunk,
        specials=listed(flat.tokens[i] for i, _ in flat.specials),
        branch=len(flat) - trunk,
        branches=triples,
    )
    return Exercise(
        setting,
        _words_and_triples(flat, trace.used),
        t(
            LESSON["tokens"]["question"],
            triples=triples,
        ),
        {str(guess): str(guess) for guess in guesses},
        str(len(flat)),
        (why_it_is,),
        _tree(trace, positions=False),
    )


def _tree_lesson(read: Read, demo: Demo) -> Exercise:
    setting, trace, flat = _figure(read, demo)
    last = flat.tokens.index("Cook")
    asked = {name: name for name in ("is", "CEO", "visiting", "Beijing")}
    return Exercise(
        setting,
        _tree(trace, positions=False),
        t(LESSON["tree"]["question"], token=flat.tokens[last]),
        asked,
        flat.tokens[last + 1],
        (
            t(
                LESSON["tree"]["why"],
                mention="Tim Cook",
            ),
        ),
        _chips(flat, range(len(flat))),
    )


def _positions(read: Read, demo: Demo) -> Exercise:
    setting, trace, flat = _figure(read, demo)
    hard = flat.tokens.index("is")
    soft = flat.soft_positions
    before = flat.tokens.index("Cook")
    shared = next(i for i, p in enumerate(soft) if p == soft[hard] and flat.branch_ids[i] > 0)
    why_it_is = t(
        LESSON["positions"]["why"],
        token=flat.tokens[hard],
        before=flat.tokens[before],
        before_soft=soft[before],
        soft=soft[hard],
        shared=flat.tokens[shared],
    )
    guesses = sorted({soft[hard] - 1, soft[hard], soft[hard] + 1, hard})
    return Exercise(
        setting,
        _tree(trace, positions=False),
        t("Which soft position does “{token}” get?", token=flat.tokens[hard]),
        {str(guess): str(guess) for guess in guesses},
        str(soft[hard]),
        (why_it_is,),
        _tree(trace),
        {"token": flat.tokens[hard], "hard": hard},
    )


def _visible(read: Read, demo: Demo) -> Exercise:
    setting, trace, flat = _figure(read, demo)
    column = flat.tokens.index("Apple")
    asked = [flat.tokens.index(name) for name in ("[CLS]", "Cook", "is", "China")]
    seeing = [row for row in asked if bool(trace.visible[0, row, column])]
    right = flat.tokens[seeing[0]] if len(seeing) == 1 else ""
    cell = (flat.identities[seeing[0]], flat.identities[column]) if seeing else None
    return Exercise(
        Setting(TIM_COOK, setting.graph, cell=cell),
        _tree(trace, positions=False),
        t(LESSON["visible"]["question"], token=flat.tokens[column]),
        {flat.tokens[row]: flat.tokens[row] for row in asked},
        right,
        tuple(why(flat, row, column, trace.ablation) for row in asked),
        "",
        matrix=flat,
    )


SCORES = {"Tim": 1.0, "Cook": 2.0, "CEO": 1.0, "Apple": 0.0}  # made up; 1 for every other token


def _attention(read: Read, demo: Demo) -> Exercise:
    setting, trace, flat = _figure(read, demo)
    row, column = flat.tokens.index("Apple"), flat.tokens.index("Cook")
    scores = torch.tensor([SCORES.get(token, 1.0) for token in flat.tokens])
    mask = additive_mask(trace.visible, torch.float32)[0, 0, row]
    weights = (scores + mask).softmax(dim=0)
    seen = [i for i in range(len(flat)) if bool(trace.visible[0, row, i])]
    raised = [math.exp(float(score)) for score in scores]
    by_hand = {
        "masked": raised[column] / sum(raised[i] for i in seen),
        "unmasked": raised[column] / sum(raised),
        "equal": 1 / len(seen),
        "nothing": 0.0,
    }
    right = min(by_hand, key=lambda name: abs(by_hand[name] - float(weights[column])))
    why_it_is = t(
        LESSON["attention"]["why"],
        n=len(seen),
        score=f"{float(scores[column]):g}",
        raised=f"{raised[column]:.2f}",
        total=f"{sum(raised[i] for i in seen):.2f}",
        p=percent(float(weights[column])),
        unmasked=percent(by_hand["unmasked"]),
    )
    order = sorted(by_hand, key=lambda name: by_hand[name])
    text = LESSON["attention"]["question"]
    return Exercise(
        Setting(TIM_COOK, setting.graph, MINILM, panel="attention"),
        _scores_table(flat, scores, mask, None),
        t(text, row=flat.tokens[row], column=flat.tokens[column]),
        {name: percent(by_hand[name]) for name in order},
        right,
        (
            why_it_is,
            t(LESSON["attention"]["why_2"]),
        ),
        _scores_table(flat, scores, mask, weights),
        {"row": flat.tokens[row]},
    )


# A trained model


def _noise(read: Read, demo: Demo) -> Exercise:
    quiet = Setting(HISTORY, _about(HISTORY, demo("medical_zh"), "lesson-6", read), MODEL)
    entities = [node.mention.entity for node in read(quiet).tree.nodes]
    noisy_graph = with_noise(
        quiet.graph, entities, NOISE, seed=SEED, source=list(demo("everyday_zh")), place="before"
    )
    noisy_graph.name = "lesson-6-noise"
    noisy = Setting(HISTORY, noisy_graph, MODEL, more_triples=NOISE)
    tree, every = (
        [read(replace(one, ablation=ablation)).prediction for one in (quiet, noisy)]
        for ablation in (FULL, Ablation(visible="all"))
    )
    changed, without = _changed(*tree), _changed(*every)
    right = list(LEARN_NOISE)[bool(without) + 2 * bool(changed)]
    tokens = len(tree[0].tokens)
    how_often = [t(LESSON["noise"]["why_2"])]
    if without_matrix := _changed(tree[0], every[0]):
        text = LESSON["noise"]["why_3"]
        how_often.append(t(text, n=without_matrix, tokens=tokens))
    lines = ""  # the tags of each reading without noise and with it; those that changed are ringed
    for title, found in (t("Visible matrix"), tree), (t("Everything visible"), every):
        names = t("without noise"), t("with noise")
        pair = [Side(title, name, one) for name, one in zip(names, found, strict=True)]
        lines += spans_html(HISTORY, pair)
    why_it_is = t(
        LESSON["noise"]["why"],
        tokens=tokens,
        tree=changed,
        all=without,
    )
    return Exercise(
        noisy,
        _tree(read(noisy)),
        t("Where do tags change because of the noise?"),
        {kind: t(text) for kind, text in LEARN_NOISE.items()},
        right,
        (why_it_is, sentences(how_often)),
        _tree(read(noisy)) + lines,
        {"count": NOISE, "seed": SEED},
    )


def _hurts(read: Read, demo: Demo) -> Exercise:
    graph = _about(HISTORY, demo("medical_zh"), "lesson-7", read)
    right = next(x for x in graph.triples_of(MENTION) if x.relation == TYPE)
    wrong = Triple(right.head, TYPE, WRONG)
    setting = Setting(HISTORY, graph, MODEL, (Edit("replace", right, wrong),))
    before, after = Setting(HISTORY, graph, MODEL), read(setting)
    plain = Setting(HISTORY, KnowledgeGraph(), MODEL)
    told = read(before).prediction
    found = {"right": told, "wrong": after.prediction, "plain": read(plain).prediction}
    labels = {name: _label(prediction) for name, prediction in found.items()}
    hurt = labels["plain"][0] == labels["right"][0] != labels["wrong"][0]
    text = LESSON["hurts"]["why"]
    said = t(text, **{name: _named(*label) for name, label in labels.items()})
    outcome = t(
        "The model knew better by itself: here the graph made a right answer wrong."
        if hurt
        else "Here the wrong triple did no harm."
    )
    names = (t("with the right triple"), t("with the wrong triple"))
    sides = before_and_now(None, after.prediction, told, names)
    kinds = sorted({tag.split("-", 1)[1] for tag in told.tokens[0].probabilities if "-" in tag})
    return Exercise(
        setting,
        _tree(after),
        t("What does the model take “{mention}” for?", mention=MENTION),
        {kind: kind for kind in kinds} | {NONE: t("no entity")},
        labels["wrong"][0],
        (
            sentences([said, outcome]),
            t(LESSON["hurts"]["why_2"]),
        ),
        _tree(after) + spans_html(HISTORY, sides),
        {"mention": MENTION, "old": right, "new": wrong},
    )


_ALL = (_tokens, _tree_lesson, _positions, _visible, _attention, _noise, _hurts)
_MAKERS: dict[str, Callable[[Read, Demo], Exercise]] = dict(zip(LESSONS, _ALL, strict=True))


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


def _tree(trace: KBertTrace, *, positions: bool = True) -> str:
    drawn = tree_html(tree_view(trace))
    return drawn if positions else f'<div class="kb-no-positions">{drawn}</div>'


def _words_and_triples(flat: FlatTree, triples: Sequence[Triple]) -> str:
    special = {index for index, _ in flat.specials}
    words = [i for i, b in enumerate(flat.branch_ids) if b == 0 and i not in special]
    heads = (t("head"), t("relation"), t("tail"))
    rows = ([escape(x.head), escape(x.relation), escape(x.tail)] for x in triples)
    return _chips(flat, words) + table_html(heads, rows, more="kb-narrow")


def _chips(flat: FlatTree, places: Iterable[int]) -> str:
    """Tokens in a row, those of branches in another colour."""
    chips = (
        f'<span class="kb-word{" kb-of-branch" if flat.branch_ids[i] > 0 else ""}">'
        f"{shown(flat.tokens[i])}</span>"
        for i in places
    )
    return f'<div class="kb-words">{"".join(chips)}</div>'


def _scores_table(
    flat: FlatTree, scores: torch.Tensor, mask: torch.Tensor, weights: torch.Tensor | None
) -> str:
    """One row of attention: score, mask, e to their sum, and its share; the last two if told."""
    rows = []
    for i, token in enumerate(flat.tokens):
        hidden = bool(mask[i] < 0)
        cells = [shown(token), f"{float(scores[i]):g}", "−∞" if hidden else "0"]
        if weights is not None:
            raised = 0.0 if hidden else math.exp(float(scores[i]))
            weight = float(weights[i])
            cells += [f"{raised:.2f}" if raised else "0", percent(weight) if weight else "0"]
        rows.append([f'<span class="kb-dull">{own}</span>' if hidden else own for own in cells])
    told = [t("e^(score + mask)"), t("weight")] if weights is not None else []
    heads = [t("token"), t("score"), t("mask"), *told]
    return table_html(heads, rows, numbers=len(heads) - 1, more="kb-narrow")
