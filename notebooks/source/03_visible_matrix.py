# %% [markdown]
# # 3 · The visible matrix
#
# **Question.** Who may look at whom, and how do two small integers per token say it?
#
# **You need** [1](01_sentence_tree.ipynb) (trunk, branches, mentions) and [2](02_soft_positions.ipynb) (tokens that share
# a position). **You get** the matrix of the paper's Figure 2, and what each of its cells forbids.
#
# **After this notebook you can** decide for any two tokens who may look at whom, and write Eq. 3 with two integers per token.

# %%
from _tools import ready

ready()

# %% [markdown]
# ## The rule
#
# In a transformer every token may look at every other. In a flattened tree that would be wrong: *Apple* was said of Tim
# Cook, and *Beijing* has nothing to do with it. So K-BERT makes a **visible matrix** with a row and a column for each of the
# $N$ tokens: cell $(i, j)$ is true where token $i$ may look at (*attend to*) token $j$. In the paper it is a matrix $M$ of numbers,
#
# $$M_{ij} = \begin{cases} 0 & w_i \ominus w_j\\ -\infty & w_i \oslash w_j \end{cases} \qquad \text{(Eq. 3)}$$
#
# where $w_i \ominus w_j$ means "in the same branch" and $w_i \oslash w_j$ "not in the same branch" ([notebook
# 4](04_mask_self_attention.ipynb) says what the 0 and the −∞ are for). The trunk counts as a branch. And a mention
# belongs to both: to the trunk, and to each branch that hangs from it.
#
# ## Two integers per token
#
# To say who is in which branch, each token of the row gets two numbers:
#
# - its **branch**: 0 for the trunk, 1, 2, 3 for the branches in reading order;
# - its **anchor**: the number of the mention that it belongs to or hangs from; 0 for none.
#
# By hand, for Figure 2:

# %%
tokens = "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]".split()
branch = [0, 0, 0, 1, 1, 0, 0, 0, 2, 2, 3, 3, 0, 0]
anchor = [0, 1, 1, 1, 1, 0, 0, 2, 2, 2, 2, 2, 0, 0]

print(f"{'token':9} branch  anchor")
for row in zip(tokens, branch, anchor):
    print("{:9} {:6} {:7}".format(*row))

# %% [markdown]
# Now Eq. 3 is a few lines of Python. Two tokens see each other if they are in the same branch, or if they have the same
# anchor and one of them is the mention itself (it has an anchor, and is on the trunk):


# %%
def sees_by_hand(i, j):
    same_branch = branch[i] == branch[j]
    is_mention = [branch[k] == 0 and anchor[k] > 0 for k in (i, j)]
    same_anchor = anchor[i] == anchor[j]
    return same_branch or (same_anchor and any(is_mention))


N = len(tokens)
by_hand = [[sees_by_hand(i, j) for j in range(N)] for i in range(N)]
for token, row in zip(tokens, by_hand):
    print(f"{token:9}", " ".join("■" if visible else "·" for visible in row))

# %% [markdown]
# ## The same with the library
#
# `flatten` makes the two numbers. From them `visible_matrix` makes the matrices of a whole batch of $B$ trees at once:
# a tensor of shape $(B, N, N)$.

# %%
import torch

from kbert_core import Words, collate, flatten, grow_trees, load_graph, visible_matrix

figure2 = load_graph("demo_kgs/figure2.spo")
flat = flatten(grow_trees(["Tim Cook is visiting Beijing now"], figure2), Words(special=True))[0]

batch = collate([flat])  # a batch of one tree
visible = visible_matrix(batch.branch_ids, batch.anchor_ids)
print("shape", tuple(visible.shape))
print("the same as by hand:", visible[0].tolist() == by_hand)

# %% tags=["test"]
assert (flat.tokens, flat.branch_ids, flat.anchor_ids) == (tokens, branch, anchor)
assert torch.equal(visible[0], torch.tensor(by_hand))

# %% [markdown]
# This is the matrix of the paper's Figure 2 (with `[SEP]`, the end of BERT's input). In the picture each visible cell
# has the colour of the clause that opens it. (`Ablation()` says that nothing of K-BERT is taken away; more of that
# below.)

# %%
from _charts import visible_chart
from _tools import show
from kbert_core import Ablation

show(visible_chart(flat, Ablation()), "The visible matrix of Figure 2", width=480)

# %% [markdown]
# Three things to see in it:
#
# - the **trunk** (blue) sees all of itself: the sentence is read as BERT reads it;
# - a **branch** sees itself (orange) and its mention (green). It sees nothing else, and nobody else sees it;
# - `[CLS]`, from which a classifier reads its answer, sees **no knowledge at all**. How knowledge gets there is the subject of
#   [notebook 5](05_from_bert_to_kbert.ipynb).
#
# ## What a cell forbids
#
# Run the next cell and click a cell of the matrix: a sentence says why it is visible or hidden. (The paper's own example is
# *Apple* and *China*.) A double click blocks a cell or opens it.

# %%
from kbert_lab.lab.widget import lab

lab("words", figure2, "Tim Cook is visiting Beijing now")

# %% [markdown]
# In the library `why_visible` names the clause that decides:

# %%
from kbert_core import why_visible


def explain(row, column):
    a, b = tokens.index(row), tokens.index(column)
    clause = why_visible(branch[a], anchor[a], branch[b], anchor[b])
    print(f"{row} {'may' if clause.visible else 'may not'} look at {column}: {clause}")


for row, column in (
    ("Cook", "Apple"),
    ("[CLS]", "Apple"),
    ("Apple", "China"),
    ("China", "is_a"),
    ("visiting", "Beijing"),
    ("is_a", "City"),
):
    explain(row, column)

# %% [markdown]
# Each hidden cell keeps a mistake away:
#
# | hidden | without it |
# |---|---|
# | *visiting* – *Apple* | knowledge of one word would be read as part of the sentence |
# | *Apple* – *China* | facts about different things would be mixed: an Apple of China |
# | *China* – *City* | two facts about one thing would be read as one: China, a city |
#
# ## Why two integers and not the matrix
#
# The matrix has $N^2$ cells, the codes $2N$ numbers. Everything else is worked out from the codes where it is needed,
# on the graphics card if there is one.

# %%
print(f"{'tokens':>7} {'cells':>10} {'codes':>7}")
for size in (14, 128, 512):
    print(f"{size:7,} {size * size:10,} {2 * size:7,}")
share = visible[0].float().mean().item()
print(f"visible in Figure 2: {visible.sum().item()} of {N * N} cells, {share:.0%}")

# %% [markdown]
# ## Without it
#
# One of the paper's *ablations* (a part is taken away, to see what it was good for) makes everything visible. In the
# library that is not another model, only another matrix:

# %%
ablated = Ablation(visible="all")
show(visible_chart(flat, ablated), "Everything visible", width=420)

# %% [markdown]
# K-BERT hides the grey cells. Without that, the shared positions of Figure 2 are confusing: *now*, *capital* and *is_a*
# all seem to come right after *Beijing*, and each of them sees the others. What it costs is measured in [notebook
# 7a](07a_ablation_bench.ipynb).
#
# ## Exercises
#
# **1.** (easy) May the first token of each pair look at the second? Answer from the rule, without the picture.

# %% tags=["exercise"]
from checks.trees import check_cells

may_look = {
    ("Tim", "Apple"): ...,
    ("visiting", "China"): ...,
    ("capital", "City"): ...,
    ("China", "[CLS]"): ...,
    ("now", "Tim"): ...,
    ("City", "Beijing"): ...,
}
check_cells(may_look)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Ask of each pair: same branch? Else: is one the mention, and does the other hang from it?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# may_look = {
#     ("Tim", "Apple"): True,
#     ("visiting", "China"): False,
#     ("capital", "City"): False,
#     ("China", "[CLS]"): False,
#     ("now", "Tim"): True,
#     ("City", "Beijing"): True,
# }
# check_cells(may_look)
# ```
# </details>

# %% [markdown]
# **2.** (medium) Write the rule of another K-BERT, in which the branches of *one* mention see each other too; all else stays. The
# check tries it on 400 pairs of tokens.

# %% tags=["exercise"]
from checks.trees import check_sees


def sees(branch_a, anchor_a, branch_b, anchor_b):
    return ...


check_sees(sees)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Which part of `sees_by_hand` keeps two branches of one mention apart?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def sees(branch_a, anchor_a, branch_b, anchor_b):
#     return branch_a == branch_b or anchor_a == anchor_b
#
#
# check_sees(sees)
# ```
#
# It is simpler than K-BERT's own rule, which must keep two branches with the same anchor apart. (Two tokens with anchor 0
# are both on the trunk, so they see each other anyway.)
# </details>

# %% [markdown]
# **3.** (medium) *Apple* is hidden from `[CLS]`. But a token that saw *Apple* in one layer can be looked at in the next. Find the shortest
# way from *Apple* to `[CLS]`: a list of tokens, of which each may look at the one before it.

# %% tags=["exercise"]
from checks.trees import check_way

way = ...
check_way(way)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Who may look at *Apple*? And who of these is seen by `[CLS]`?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# way = ["Apple", "Cook", "[CLS]"]
# check_way(way)
# ```
#
# *Tim* would do as well. Two steps are two layers: [notebook 5](05_from_bert_to_kbert.ipynb) measures it.
# </details>

# %% [markdown]
# ## Summary
#
# - A branch sees itself and its mention; the trunk sees the trunk; nobody else sees a branch.
# - Two integers per token, **branch** and **anchor**, say all of it: $2N$ numbers in place of $N^2$ cells.
# - `[CLS]` sees no knowledge in one layer, and reaches it in two.
#
# **Open question.** The rule keeps two true facts about one thing apart, too. Think of a question that needs both of
# them. Where in the network could they meet?
#
# ## Go on
#
# *To read:* [K-BERT](https://arxiv.org/abs/1909.07606), Eq. 3 and Figure 2.

# %%
from _tools import lab_link

lab_link("Tim Cook is visiting Beijing now", graph=figure2, model="words")

# %% [markdown]
# In the Lab, click a cell of the matrix. Next: [4 · Mask-self-attention](04_mask_self_attention.ipynb).
