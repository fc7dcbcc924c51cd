# %% [markdown]
# # 4 · Mask-self-attention
#
# **Question.** What exactly happens to a hidden cell, and can a mask go wrong without anyone noticing?
#
# **You need** [3 · The visible matrix](03_visible_matrix.ipynb), and what a matrix product is. **You get** the paper's Equations
# 4 to 6 three times: in NumPy, with PyTorch, and with the library that real models run in; the three agree to a millionth.
#
#
# **After this notebook you can** compute attention with a mask, and name two ways in which a mask fails without an error.

# %%
from _tools import ready

ready("models/zh-mini")

# %% [markdown]
# ## The three equations
#
# Layer $i$ gets a vector $h^i$ of $H$ numbers for each of the $N$ tokens: a matrix of $N$ rows. It makes three others
# of it, the **queries** $Q$, **keys** $K$ and **values** $V$, each with weights that were learnt (the letters are the
# paper's: $V$ isn't the visible matrix here):
#
# $$Q^{i+1},\; K^{i+1},\; V^{i+1} = h^i W_q,\; h^i W_k,\; h^i W_v \qquad \text{(Eq. 4)}$$
#
# How much token $a$ looks at token $b$ depends on how well $a$'s query fits $b$'s key; the product of both says that.
# The matrix $M$ of [notebook 3](03_visible_matrix.ipynb) is added. Then *softmax* ($e^x$ divided by the sum of all
# $e^x$ in the row) turns each row into weights that are positive and add up to 1:
#
# $$S^{i+1} = \mathrm{softmax}\!\left(\frac{Q^{i+1} {K^{i+1}}^{\top} + M}{\sqrt{d_k}}\right) \qquad \text{(Eq. 5)}$$
#
# ($d_k$, the number of columns of $Q$ and $K$, keeps the products from growing with it.) The new vectors are means of the
# values, with these weights:
#
# $$h^{i+1} = S^{i+1} V^{i+1} \qquad \text{(Eq. 6)}$$
#
# Where $M$ is −∞, $e^{-\infty} = 0$: a hidden token gets the weight 0. That is all that K-BERT changes in BERT's
# attention, and why the paper calls it **mask-self-attention**.
#
# ## By hand, in NumPy
#
# The tokens are those of Figure 2. What the vectors are doesn't matter here, so we draw them: 14 tokens of 8 numbers.

# %%
import numpy as np

from kbert_core import Words, collate, flatten, grow_trees, load_graph, visible_matrix

figure2 = load_graph("demo_kgs/figure2.spo")
flat = flatten(grow_trees(["Tim Cook is visiting Beijing now"], figure2), Words(special=True))[0]
batch = collate([flat])
visible = visible_matrix(batch.branch_ids, batch.anchor_ids)  # (1, N, N) bool
can_see = visible[0].numpy()

random = np.random.default_rng(0)
N, H = len(flat), 8
h = random.normal(size=(N, H))
W_q, W_k, W_v = (random.normal(size=(H, H)) for _ in range(3))

# %%
M = np.where(can_see, 0.0, -np.inf)


def softmax(scores):
    power = np.exp(scores - scores.max(axis=-1, keepdims=True))  # the largest is e^0: no overflow
    return power / power.sum(axis=-1, keepdims=True)


Q, K, V = h @ W_q, h @ W_k, h @ W_v  # Eq. 4
S = softmax((Q @ K.T + M) / np.sqrt(H))  # Eq. 5
h_new = S @ V  # Eq. 6

print("rows add up to 1:       ", np.allclose(S.sum(axis=1), 1))
print("hidden cells are just 0:", np.all(S[~can_see] == 0))

# %% tags=["test"]
assert np.allclose(S.sum(axis=1), 1) and np.all(S[~can_see] == 0)

# %%
from _charts import matrix_chart
from _tools import show

picture = matrix_chart(flat.tokens, S, visible=can_see, title="S of Eq. 5")
show(picture, "Attention weights: the hidden cells are hatched", width=480)

# %% [markdown]
# What if one vector changes? Give *Apple* another one. *Apple* itself, *CEO* on the same branch, and its mention, *Tim* and
# *Cook*, may notice; nobody else may.

# %%
other = h.copy()
other[flat.tokens.index("Apple")] = random.normal(size=H)
S_other = softmax(((other @ W_q) @ (other @ W_k).T + M) / np.sqrt(H))
changed = np.abs(S_other @ (other @ W_v) - h_new).max(axis=1) > 0
print("changed:", [token for token, yes in zip(flat.tokens, changed) if yes])

# %% tags=["test"]
assert [token for token, yes in zip(flat.tokens, changed) if yes] == ["Tim", "Cook", "CEO", "Apple"]

# %% [markdown]
# ## With PyTorch
#
# `scaled_dot_product_attention` (SDPA for short) does Equations 5 and 6 in one step, fast. It wants a mask that is
# *added* to the scores. The library makes it: `additive_mask` gives 0 for a visible cell. For a hidden one it gives the
# smallest number of the computer's format, in place of −∞.

# %%
import torch
from torch.nn.functional import scaled_dot_product_attention

from kbert_core.layers import additive_mask

mask = additive_mask(visible, torch.float32)  # (1, 1, N, N)
q, k, v = (torch.tensor(matrix, dtype=torch.float32)[None, None] for matrix in (Q, K, V))
by_torch = scaled_dot_product_attention(q, k, v, attn_mask=mask)[0, 0]

print("the mask's shape:", tuple(mask.shape))
by_torch = by_torch.numpy()
print("as by hand, to a millionth:", np.allclose(by_torch, h_new, atol=1e-6 * np.abs(h_new).max()))

# %% tags=["test"]
assert np.allclose(by_torch, h_new, atol=1e-6 * np.abs(h_new).max())

# %% [markdown]
# ## With `transformers`
#
# Real models run in the library `transformers`. Here is the attention layer of its BERT with our three matrices in it,
# run in both of the ways that it offers: *eager*, which computes Eq. 5 step by step and can show the weights, and SDPA.

# %%
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertSelfAttention

apart = {}
for way in ("eager", "sdpa"):
    config = BertConfig(
        hidden_size=H,
        num_attention_heads=1,
        attention_probs_dropout_prob=0.0,
        attn_implementation=way,
    )
    layer = BertSelfAttention(config).eval()
    with torch.no_grad():
        for linear, weight in ((layer.query, W_q), (layer.key, W_k), (layer.value, W_v)):
            linear.weight.copy_(torch.tensor(weight.T))  # it keeps its weights transposed
            linear.bias.zero_()
        given = torch.tensor(h, dtype=torch.float32)[None]
        found = layer(given, attention_mask=mask)[0][0].numpy()
    apart[way] = np.abs(found - h_new).max() / np.abs(h_new).max()
    print(f"{way:6} as by hand, to a millionth:", apart[way] < 1e-6)

# %% tags=["test"]
assert max(apart.values()) < 1e-6

# %% [markdown]
# ## Scale before or after the mask?
#
# Look at Eq. 5 again: the paper adds $M$ first and divides by $\sqrt{d_k}$ afterwards. BERT's code divides first and
# adds the mask then. With −∞ it is the same. A computer's −∞ may be any large negative number, though: the released
# K-BERT takes −10,000. How much attention leaks into the hidden cells, if $M$ is a number $-m$? We take $d_k = 64$, as
# in BERT.

# %%
d_k = 64
q64, k64 = random.normal(size=(2, N, d_k))


def leaked(m, order):
    """Mean share of a row's attention that hidden cells get, if M is 0 and -m."""
    finite = np.where(can_see, 0.0, -m)
    scores = q64 @ k64.T
    by_paper, by_code = (scores + finite) / np.sqrt(d_k), scores / np.sqrt(d_k) + finite
    weights = softmax(by_paper if order == "paper" else by_code)
    return (weights * ~can_see).sum(axis=1).mean()


sizes = [0, 2, 5, 10, 15, 20, 30, 40]
leaks = {
    "mask, then scale (Eq. 5)": [leaked(m, "paper") for m in sizes],
    "scale, then mask (BERT's code)": [leaked(m, "code") for m in sizes],
}

# %%
from _charts import line_chart

chart = line_chart(
    sizes, leaks, across="m, where M is 0 and −m", up="attention on hidden cells", log=True
)
show(
    chart,
    "Attention that leaks into hidden cells falls with m, more slowly where the mask is scaled too",
)

# %%
for m in (10, 100, 10_000):
    print(f"m = {m:6,}:  Eq. 5 {leaked(m, 'paper'):.1e}   BERT's code {leaked(m, 'code'):.1e}")

# %% tags=["test"]
assert leaked(10_000, "paper") == leaked(10_000, "code") == 0

# %% [markdown]
# In the paper's order the mask is divided by $\sqrt{64} = 8$: with $m = 10$ a third of the attention still leaks. With
# 10,000 nothing leaks in either order: the power is so small that the computer rounds it to exactly 0. So the order
# doesn't matter if the number is large enough, and the library takes the largest there is.
#
# ## A mask that is silently wrong
#
# `visible` is true or false. Why turn it into numbers; can't a model take it as it is? Some can. Here is a small random
# BERT, and a test that a mask must pass: *hide a token, change it, and nothing that can't see it may change.*

# %%
from transformers import BertModel

torch.manual_seed(0)
config = BertConfig(
    vocab_size=50,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    initializer_range=0.3,
)
bert = BertModel(config).eval()
tokens = torch.arange(5, 13)[None]  # 8 tokens
turned = torch.cat([tokens[:, :4], tokens[:, 4:].flip(1)], dim=1)  # the last four turned round
half = torch.arange(8) < 4
apart = (half[:, None] == half)[None]  # (1, 8, 8): the halves don't see each other


def influence(given_mask, way):
    """How much the first half changes with the second, which it can't see."""
    bert.set_attn_implementation(way)
    with torch.no_grad():
        before = bert(tokens, attention_mask=given_mask).last_hidden_state[0, :4]
        after = bert(turned, attention_mask=given_mask).last_hidden_state[0, :4]
    return (after - before).abs().max().item()


masks = {
    "additive, 0 and the least number": additive_mask(apart, torch.float32),
    "boolean, True and False": apart[:, None],
    "numbers, 1 and 0": apart[:, None].float(),
}
print(f"{'mask':34} {'eager':>6} {'sdpa':>6}")
for name, given_mask in masks.items():
    print(f"{name:34} {influence(given_mask, 'eager'):6.2f} {influence(given_mask, 'sdpa'):6.2f}")

# %% tags=["test"]
assert influence(masks["additive, 0 and the least number"], "eager") == 0
assert influence(masks["boolean, True and False"], "sdpa") == 0
assert influence(masks["boolean, True and False"], "eager") > 0.1

# %% [markdown]
# A boolean mask is right with SDPA and **wrong with eager attention, without any error**: the hidden half comes
# through. Eager attention *adds* the mask to the scores, whatever it is; True counts as 1, False as 0. So visible cells
# get 1 more, and hidden ones stay. (1 and 0 as *numbers* are wrong with both, as SDPA adds them, too.) Exercise 3 asks why.
#
# The library therefore keeps booleans inside, makes the additive mask at the border to the model, and runs this very test, the
# *probe*, on every encoder that it loads. One that leaks is refused.
#
# ## One cell of a real model
#
# The same arithmetic with weights that were learnt: layer, attention head, a query and a key of zh-mini on 患者有糖尿病史
# (*the patient has a history of diabetes*). A real layer has several heads; each has a part of $Q$, $K$ and $V$ to
# itself, here 64 columns of 256 ([zh-mini](../models/zh-mini/README.md) has four heads). Below it `trace.show()` draws
# the trace: choose *Attention* there for the mean of all layers and heads.

# %%
from kbert_core import Pipeline
from kbert_lab.explain.attention import attention_arithmetic

kbert = Pipeline.from_pretrained("models/zh-mini", device="cpu")
medical = load_graph("demo_kgs/medical_zh.spo")
trace = kbert("患者有糖尿病史", graph=medical, attentions=True, hidden_states=True, decode=False)
row = trace.rows[0]


def cell(query, key, layer=1, head=2):
    """Print how one weight comes about, and compare it with the model's own."""
    a, b = row.tokens.index(query), row.tokens.index(key)
    found = attention_arithmetic(kbert.reader, trace, 0, layer, head, a, b)
    print(f"{query} looks at {key}, layer {layer}, head {head}:")
    print(
        f"   q · k = {found.dot:.2f}; over √{found.size}: {found.scaled:.2f}; M: {found.mask:.0f}"
    )
    print(f"   e^{found.score:.2f} over the sum of its row: {found.weight:.4f}")
    own = trace.attentions[layer - 1][0, head - 1, a, b].item()
    print(f"   the model's own weight: {own:.4f}")
    return found.weight - own


apart = [cell("病", "史"), cell("者", "有"), cell("史", "类")]  # 类 is on a branch of 糖尿病

# %% tags=["test"]
assert all(abs(one) < 1e-4 for one in apart)

# %%
trace.show()

# %%
from _tools import slider

slider(
    lambda **chosen: print(f"difference: {cell(**chosen):.0e}"),
    query=row.tokens[1:8],
    key=row.tokens[1:],
    layer=(1, 4),
    head=(1, 4),
)

# %% [markdown]
# ## Exercises
#
# **1.** (medium) Write the softmax of one row yourself: `scores` and `visible` have $N$ entries; hidden tokens get the weight 0,
# the others add up to 1.

# %% tags=["exercise"]
from checks.layers import check_softmax


def masked_softmax(scores, visible):
    return ...


check_softmax(masked_softmax)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Give hidden tokens the score −∞ first (`np.where`). For large scores subtract the largest visible one.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def masked_softmax(scores, visible):
#     shifted = np.where(visible, scores - scores[visible].max(), -np.inf)
#     power = np.exp(shifted)
#     return power / power.sum()
#
#
# check_softmax(masked_softmax)
# ```
# </details>

# %% [markdown]
# **2.** (easy) In the order of Eq. 5, with $d_k = 64$ and $M = -10$ for hidden cells: by which factor is $e^{\text{score}}$ of
# a hidden cell made smaller? (`math.exp` helps.)

# %% tags=["exercise"]
from checks.layers import check_factor

factor = ...
check_factor(factor)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# In Eq. 5 the mask is inside the fraction. What is added to the score of a hidden cell after the division?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# import math
#
# factor = math.exp(-10 / math.sqrt(64))
# check_factor(factor)
# ```
#
# About 0.29: a hidden token still gets more than a quarter of what it would have got.
# </details>

# %% [markdown]
# **3.** (medium) Which of these hide a token, and leave the proportions and the sum of the other weights as they should be? (The
# scores are moderate; single precision.)

# %% tags=["exercise"]
from checks.layers import check_masks

hides = {
    "0 and -inf, added": ...,
    "0 and -10000, added": ...,
    "True and False, added": ...,
    "1 and 0, multiplied with the weights": ...,
}
check_masks(hides)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Try each on two tokens with the scores 1 and 2, the second hidden. Which weights come out?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# hides = {
#     "0 and -inf, added": True,
#     "0 and -10000, added": True,
#     "True and False, added": False,
#     "1 and 0, multiplied with the weights": False,
# }
# check_masks(hides)
# ```
#
# −∞ has a trap of its own: a row that sees *nothing* is 0/0, not a number. That happens to padding, the empty places
# after the shorter texts of a batch. In the library, padding sees padding.
# </details>

# %% [markdown]
# ## Summary
#
# - A hidden cell gets a score so low that its weight is 0; the others are as softmax makes them without it.
# - NumPy, PyTorch and `transformers` agree, if the mask is **additive**: 0 where visible, the least number elsewhere.
# - A boolean mask fails without an error in eager attention. So test it: change what is hidden, and see that nothing
#   moves.
#
# **Open question.** An encoder of next year may take its mask in yet another form. Which test would you run before
# you trust it with a visible matrix, and on what input?
#
# ## Go on
#
# *To read:* [K-BERT](https://arxiv.org/abs/1909.07606), Eq. 4–6; [Attention is all you need](https://arxiv.org/abs/1706.03762) (Vaswani et al. 2017), section 3.2.

# %%
from _tools import lab_link

lab_link("患者有糖尿病史", graph=medical, model="zh-mini")

# %% [markdown]
# In the Lab, choose *attention* instead of *visible* and click a cell: the numbers above stand there for any cell. Next:
# [4b · One layer](04b_one_layer.ipynb), what else happens in a layer. In a hurry: [5 · From BERT to K-BERT](05_from_bert_to_kbert.ipynb).
