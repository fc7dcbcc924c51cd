# %% [markdown]
# # 9 · Explain a prediction
#
# **Question.** Which triples made a prediction what it is, and how can one know?
#
# **You need** notebooks [4](04_mask_self_attention.ipynb) and [5](05_from_bert_to_kbert.ipynb): attention, and the
# model of clinical texts. **You get** three ways to ask (leave a triple out, share the effect fairly, find the smallest
# edit that flips the prediction), each by hand and by the library, and a reason not to read attention as an
# explanation.
#
# **After this notebook you can** compute an effect and a Shapley value, find a counterfactual, and say why attention is none of them.

# %%
from _tools import ready

ready("models/medical-ner-kbert")

# %% [markdown]
# ## One prediction
#
# 因黑便伴上腹痛就诊: the patient *came because of black stool and pain of the upper abdomen*. With up to three triples for each
# mention the model finds two symptoms; without any it takes 黑便 (*black stool*) for a body part, and tears 上腹痛 (*pain of
# the upper abdomen*) in two.

# %%
from _tools import show
from kbert_core import NO_KNOWLEDGE, InjectionOptions, Pipeline, load_graph

kbert = Pipeline.from_pretrained("models/medical-ner-kbert", device="cpu")
medical = load_graph("demo_kgs/medical_zh.spo")
text = "因黑便伴上腹痛就诊。"
THREE = InjectionOptions(max_triples=3)

trace = kbert(text, graph=medical, options=THREE, attentions=True)
plain = kbert(text, graph=NO_KNOWLEDGE)
trace.show()

# %% [markdown]
# And without knowledge:

# %%
plain.prediction

# %% [markdown]
# ## Leave one out
#
# To explain a prediction is to ask what would be different. First one needs a number that says how much the model
# believes it. Here it is the **score** $s$: the mean log-probability of the tags that make 黑便 a symptom (natural
# logarithms; the unit is the *nat*). The **effect** of a triple $z$ is what the score loses without it, all else as it
# was:
#
# $$\mathrm{effect}(z) = s(\text{all}) - s(\text{all} \setminus z)$$
#
# It takes one more run of the model for each triple, and is exact: nothing is estimated. By hand:

# %%
from kbert_core.explain.case import Case

case = Case.of(kbert, text, graph=medical, options=THREE)  # a text as read, and variants of it
TAGS = ("B-Symptom", "I-Symptom")  # for 黑 and 便
number = {name: index for index, name in kbert.labels.items()}


def score(kept):
    """Mean log-probability of the two tags, with only some of the triples."""
    (logits,) = kbert.reader.logits([case.with_only(kept)])  # (tokens of the text, tags)
    likely = logits.log_softmax(-1)
    return sum(likely[i, number[tag]].item() for i, tag in zip((1, 2), TAGS)) / 2  # 因 黑 便


everything = case.facts
by_hand = [
    score(everything) - score([other for other in everything if other != fact])
    for fact in everything
]
for fact, effect in zip(everything, by_hand):
    print(f"{fact.triple!s:20} {effect:+.3f} nats")

# %%
from kbert_core.explain.effects import effects

measured = effects(case)
show(measured.figure(), "The effects of six triples: one is large")

# %% tags=["test"]
assert all(abs(e.effect - ours) < 1e-4 for e, ours in zip(measured.each, by_hand))

# %% [markdown]
# One triple does it: what 黑便 is. To leave a triple out is not to *delete* it from the graph: then the mention's next
# triple moves up. That is another question with another answer, which the library gives, too:

# %%
first = measured.each[0]
print(
    f"left out: {first.effect:+.2f}; deleted: {first.deleted_effect:+.2f}, and {first.moved_up[0]} moves up"
)

# %% tags=["test"]
assert first.flips and first.deleted_flips

# %% [markdown]
# ## The parts and the whole
#
# Together the triples raise the score by much more than the sum of their effects:

# %%
whole = score(everything) - score([])
print(f"all together {whole:.2f}, the sum of the effects {sum(by_hand):.2f}")

# %% tags=["test"]
assert whole > 2 * sum(by_hand)
assert abs(whole - measured.whole) < 1e-4

# %% [markdown]
# Where two triples say the same, each can be left out as long as the other is there; so each seems worth little. (常见于
# 胃溃疡, *common in gastric ulcer*, is what the graph says of symptoms. It hints at the kind as well.)
# Who shall get the credit? The **Shapley value** shares it fairly: put the triples in one by one, in every possible
# order, and take the mean of what each adds when it comes.
#
# $$\phi(z) = \frac{1}{n!} \sum_{\text{orders}} \bigl[ s(\text{before } z, \text{and } z) - s(\text{before } z) \bigr]$$
#
# Six triples have 720 orders, but only 64 sets, so 64 runs are enough.

# %%
from functools import cache
from itertools import permutations
from statistics import mean

score_of = cache(lambda kept: score([fact for fact in everything if fact in kept]))


def added(fact, order):
    before = frozenset(order[: order.index(fact)])
    return score_of(before | {fact}) - score_of(before)


orders = list(permutations(everything))
fair = [mean(added(fact, order) for order in orders) for fact in everything]
print(len(orders), "orders")
for fact, value in zip(everything, fair):
    print(f"{fact.triple!s:20} {value:+.3f}")
print(f"{'sum':20} {sum(fair):+.3f}, all together {whole:+.3f}")

# %% tags=["test"]
assert abs(sum(fair) - whole) < 1e-4

# %%
from kbert_core.explain.effects import shapley

values = shapley(case)
show(values.figure(), "Shapley values: they add up to the whole")

# %% tags=["test"]
assert values.exact and all(abs(v.value - ours) < 1e-3 for v, ours in zip(values.each, fair))

# %% [markdown]
# They add up, always. The two triples about ulcers have hardly any effect as long as the kind is there. They get a
# share all the same, because without the kind they would help.
#
# ## The smallest edit that flips it
#
# A **counterfactual** answers: what would have to change for another prediction? Type what the graph shall say of 黑便: ✎ on
# its branch 类别 症状. The list says of each tail what the model would predict.

# %%
from kbert_lab.lab.widget import lab

lab(kbert, medical, text, options=THREE)

# %% [markdown]
# The same in a loop:

# %%
from kbert_core import Triple

kind = Triple("黑便", "类别", "症状")
KINDS = {
    "症状": "symptom",
    "疾病": "disease",
    "检查": "examination",
    "部位": "body part",
    "治疗": "treatment",
}


def predicted(tail):
    """What is found if 黑便 is of this kind."""
    graph = medical if tail == kind.tail else medical.replace(kind, Triple("黑便", "类别", tail))
    spans = kbert(text, graph=graph, options=THREE).prediction.spans
    return [(span.text, span.label, round(span.probability, 2)) for span in spans]


for tail, english in KINDS.items():
    print(f"{tail} ({english}): {predicted(tail)}")

# %% [markdown]
# The library searches: it removes, replaces and adds triples, one edit first, and two or more only where no single one
# has flipped the prediction (here: single ones alone).

# %%
from kbert_lab.explain.counterfactuals import Search, counterfactuals

flips = counterfactuals(case, search=Search(most_edits=1))
for found in flips.found:
    print(f"{' and '.join(map(str, found.edits)):50} {found.before.answer} → {found.after.answer}")
print(f"{flips.runs} runs; single edits: {flips.ended} tried")
replaced = {found.edits[0].new.tail for found in flips.found if found.edits[0].action == "replace"}

# %% tags=["test"]
assert {"疾病", "检查", "部位", "治疗"} <= replaced  # as by hand

# %% [markdown]
# ## Is attention an explanation?
#
# Attention is there for free: how much does 黑便 look at each branch? The **mass** on a branch is the sum of the weights
# on its tokens, here of the two characters, as a mean over the attention heads, for each layer.

# %%
row = trace.rows[0]
trunk = [i for i, branch in enumerate(row.branch_ids) if branch == 0]
lookers = [trunk[2], trunk[3]]
branch = [i for i, number_ in enumerate(row.branch_ids) if number_ == 1]  # the first one: 类别 症状
mass = [layer[0, :, lookers][:, :, branch].sum(-1).mean().item() for layer in trace.attentions]
print("mass on", "".join(row.tokens[i] for i in branch), "by layer:", *(f"{m:.3f}" for m in mass))

# %%
from kbert_lab.explain.attention import attention_effect

beside = attention_effect(case)
show(beside.figure(), "Attention across, size of the effect up")

# %% tags=["test"]
assert all(abs(a - b) < 1e-4 for a, b in zip(beside.each[0].by_target, mass))

# %% [markdown]
# (The picture counts the attention of the whole trunk; blue triples raise the score, orange ones lower it.) The
# strongest triple is looked at a lot, and so is 上腹痛 类别 症状, which does nothing. Now 因胸痛、心悸入院 (*came because of chest
# pain and palpitations*):

# %%
other = attention_effect(Case.of(kbert, "因胸痛、心悸入院。", graph=medical, options=THREE))
for one in other.each[:3]:
    print(
        f"{one.fact.triple!s:20} attention {one.mass('target'):.3f}   effect {one.effect.effect:+.3f}"
    )
most = max(other.each, key=lambda one: one.mass("target"))

# %% tags=["test"]
assert most.mass("target") > 0.1 and abs(most.effect.effect) < 0.05

# %% [markdown]
# Much attention, hardly any effect: as it seems, the model knows 胸痛 or reads it from the text. (That doesn't make the
# triple idle. *Change* it, and the prediction follows; see exercise 3.) Over all sentences:

# %%
import numpy as np
from scipy.stats import spearmanr

from kbert_core.explain.targets import NothingPredicted
from kbert_lab.data.sources import read_present

parts = read_present("demo_kgs/example_data/medical_ner", "ner").values()  # train, dev and test
texts = list(dict.fromkeys(e.sentences[0].replace(" ", "") for part in parts for e in part))
looked = []
for one in texts:
    try:
        looked.append(attention_effect(Case.of(kbert, one, graph=medical, options=THREE)))
    except NothingPredicted:
        print(one, "has no entity to explain")
looked = [text_ for text_ in looked if text_.each]


points = [one for text_ in looked for one in text_.each]
rho = spearmanr(np.concatenate([text_.points() for text_ in looked])).statistic
print(f"{len(points)} triples of {len(looked)} texts: rank correlation {rho:.2f}")
print("disagree:", sum(bool(text_.disagreements()) for text_ in looked), "texts")

# %%
from kbert_lab.explain.attention import scatter

says = "Attention across, effect up: what is looked at may do much or nothing"
show(scatter(points, title=f"{len(points)} triples"), says)

# %% [markdown]
# A **rank correlation** is 1 where both put the triples in the same order, and 0 where the order of one says nothing
# about the other's. (Texts without any triple don't count. *Disagree* says that the triple with most attention has less
# than a tenth of the largest effect, or that the one with the largest effect is in the less attended half.) So the two
# go together, loosely: what isn't looked at does little, and what is looked at may do much or nothing. Attention says
# where the model looked; what came of it must be measured. The same holds for all explanations here: they say what
# *this model* does, not what is true of the patient.
#
# ## Exercises
#
# **1.** (easy) Write the effect of leaving one out, for any score. `score` is a function of a `frozenset` of triples.

# %% tags=["exercise"]
from checks.explaining import check_effect


def effect(score, all_of_them, one):
    return ...


check_effect(effect)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Sets can be subtracted: `all_of_them - {one}`.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def effect(score, all_of_them, one):
#     return score(all_of_them) - score(all_of_them - {one})
#
#
# check_effect(effect)
# ```
# </details>

# %% [markdown]
# **2.** (medium) Two triples say the same: the score is 0 without either, and 1 with one of them or both. What are their effects
# and their Shapley values?

# %% tags=["exercise"]
from checks.explaining import check_twins

effect_of_each, value_of_each = ..., ...
check_twins(effect_of_each, value_of_each)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Leave one out: what does the other still do? Then go through both orders, and take the mean.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# effect_of_each, value_of_each = 0, 0.5
# check_twins(effect_of_each, value_of_each)
# ```
# </details>

# %% [markdown]
# **3.** (medium) Which of these are always true?

# %% tags=["exercise"]
from checks.explaining import check_statements

always = {
    "the effects add up to what all triples do together": ...,
    "the Shapley values add up to what all triples do together": ...,
    "a triple that gets much attention has a large effect": ...,
    "a triple without effect can't flip the prediction when it is changed": ...,
}
check_statements(always)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# For each statement look for a case above that contradicts it.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# always = {
#     "the effects add up to what all triples do together": False,
#     "the Shapley values add up to what all triples do together": True,
#     "a triple that gets much attention has a large effect": False,
#     "a triple without effect can't flip the prediction when it is changed": False,
# }
# check_statements(always)
# ```
#
# For the last one look at 因胸痛、心悸入院: `counterfactuals` of it begins with an edit of 胸痛 类别 症状, whose effect is 0.
# </details>

# %% [markdown]
# ## Summary
#
# - The **effect** of a triple is what the score loses without it: exact, one run each.
# - Where triples say the same, effects don't add up; **Shapley values** do.
# - A **counterfactual** is the smallest edit that flips the prediction.
# - Attention says where the model looked, and not what came of it.
#
# **Open question.** A doctor asks why the model said *symptom*. Which of the three answers would you show, and what
# must you tell them that it does not say?
#
# ## Go on
#
# *To read:* [Attention is not explanation](https://arxiv.org/abs/1902.10186) (Jain and Wallace 2019); [SHAP](https://arxiv.org/abs/1705.07874) (Lundberg and Lee 2017).

# %%
from _tools import lab_link

lab_link(text, graph=medical, model="medical-ner-kbert", task="ner", options=THREE)

# %% [markdown]
# On a command line: `kbert explain --help`. Next: [10 · Your own graph](10_your_own_graph.ipynb).
