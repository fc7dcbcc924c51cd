# %% [markdown]
# # 2 · Soft positions
#
# **Question.** Why do two tokens share position 3, and what would happen if they didn't?
#
# **You need** [1 · The sentence tree](01_sentence_tree.ipynb): triples, mentions, trunk and branches. **You get** the
# numbers below the tokens of Figure 2, and a measurement with a real model of what they are good for.
#
# **After this notebook you can** number the tokens of any tree, and say what hard positions do to neighbours.

# %%
from _tools import ready

ready("models/zh-mini")

# %% [markdown]
# ## What a position is
#
# A transformer such as BERT looks at all tokens at once; by itself it doesn't know their order. So each token's vector gets
# another vector added that stands for its **position**: 0 for the first token, 1 for the second, and so on. From these
# the model knows that *is* comes right after *Cook*.
#
# In a flattened tree that goes wrong. The **hard position** of a token is its place in the row. After every branch,
# the words of the sentence are counted too high:

# %%
from kbert_core import KnowledgeGraph, Words, flatten, grow_trees, load_graph

sentence = "Tim Cook is visiting Beijing now"
figure2 = load_graph("demo_kgs/figure2.spo")
trees = [grow_trees([sentence], graph)[0] for graph in (KnowledgeGraph(), figure2)]
plain, tree = flatten(trees, Words(special=True))  # K-Query, K-Inject, flattened
for name, row in (("sentence", plain), ("tree", tree)):
    print(f"in the {name:9}", *(f"{word} {row.tokens.index(word)}" for word in ("Cook", "is")))

# %% [markdown]
# ## By hand
#
# K-BERT counts differently. The **soft position** of a trunk token is its place in the *sentence*, as if there were no
# branches. A branch counts on from its mention: its first token has the position after the mention's last one. So *is* and *CEO*
# both have position 3: each of them comes right after *Tim Cook*.

# %%
rows = [  # ("trunk", words) or ("branch", words), in the order of the line
    ("trunk", ["[CLS]", "Tim", "Cook"]),
    ("branch", ["CEO", "Apple"]),
    ("trunk", ["is", "visiting", "Beijing"]),
    ("branch", ["capital", "China"]),
    ("branch", ["is_a", "City"]),
    ("trunk", ["now", "[SEP]"]),
]

soft, next_position = [], 0
for kind, words in rows:
    soft += range(next_position, next_position + len(words))
    if kind == "trunk":
        next_position += len(words)  # a branch leaves the trunk's count as it was

tokens = [word for _, words in rows for word in words]
for number, (token, position) in enumerate(zip(tokens, soft)):
    print(f"{token:9} soft {position}   hard {number}")

# %% [markdown]
# The library finds the same. A flattened tree shows them below its tokens (soft first, then hard):

# %%
tree

# %% tags=["test"]
assert tree.tokens == tokens and tree.soft_positions == soft

# %% [markdown]
# ## What hard positions do to the trunk
#
# Take every two neighbours of the sentence and ask how far apart they are: in the sentence, and in the tree with hard
# and with soft positions.

# %%
# `branch_ids` says on which branch each token is; 0 is the trunk
trunk = [i for i, branch in enumerate(tree.branch_ids) if branch == 0]
print(f"{'neighbours':22} sentence  hard  soft")
for a, b in zip(trunk, trunk[1:]):
    hard_apart = b - a
    soft_apart = tree.soft_positions[b] - tree.soft_positions[a]
    print(f"{tree.tokens[a] + ' – ' + tree.tokens[b]:22} {1:5} {hard_apart:8} {soft_apart:5}")

# %% tags=["test"]
places = [tree.soft_positions[i] for i in trunk]
assert all(b - a == 1 for a, b in zip(places, places[1:]))

# %% [markdown]
# Soft positions leave every distance at 1. With hard positions *Beijing* and *now* are 5 apart, and the more knowledge a
# mention has, the further the sentence is torn. Move the number of triples for 糖尿病 (*diabetes*, which the demo graph says
# many things of) in 患者有糖尿病史 (*the patient has a history of diabetes*):

# %%
from _tools import slider
from kbert_core import Characters, InjectionOptions

medical = load_graph("demo_kgs/medical_zh.spo")


def read(count):
    """患者有糖尿病史 with up to this number of triples for 糖尿病, in one line."""
    options = InjectionOptions(max_triples=count)
    return flatten(grow_trees(["患者有糖尿病史"], medical, options), Characters(special=True))[0]


def distances(count):
    """Hard and soft distance between 病, the mention's last token, and 史, the next trunk token."""
    flat = read(count)
    trunk = [i for i, branch in enumerate(flat.branch_ids) if branch == 0]
    a, b = trunk[6], trunk[7]
    return b - a, flat.soft_positions[b] - flat.soft_positions[a]


def draw(triples):
    hard, soft = distances(triples)
    print(f"{triples} triples: 病 and 史 are {hard} apart with hard positions, {soft} with soft")
    return read(triples)


slider(draw, triples=(0, 8))

# %%
from _charts import line_chart
from _tools import show

counts = range(0, 13)
apart = [distances(count) for count in counts]
chart = line_chart(
    list(counts),
    {"hard positions": [hard for hard, _ in apart], "soft positions": [soft for _, soft in apart]},
    across="triples injected for 糖尿病",
    up="distance of 病 and 史, tokens",
)
show(chart, "With hard positions the distance grows with every triple, with soft ones it stays 1")

# %%
draw(3)

# %% [markdown]
# ## What it means to a real model
#
# `models/zh-mini` is a small Chinese BERT of this project, pretrained without any knowledge; every character is a
# token. In each of its *layers* a token takes in a weighted mean of the tokens that it looks at. The weights are its
# **attention**; they are positive and add up to 1. A layer has several *attention heads*, each with weights of its own
# ([notebook 4](04_mask_self_attention.ipynb) works them out by hand). Two heads of zh-mini's first layer have learnt to
# look at one neighbour and at hardly anything else, the special tokens aside. This one looks at the next token (rows
# look at columns):

# %%
from _charts import matrix_chart
from kbert_core import NO_KNOWLEDGE, Ablation, Pipeline

kbert = Pipeline.from_pretrained("models/zh-mini", device="cpu")
text = "患者有糖尿病史"
bert = kbert(text, graph=NO_KNOWLEDGE, attentions=True, hidden_states=True, decode=False)
NEXT, PREVIOUS = 1, 2  # heads of the first layer, counted from 0

weights = bert.attentions[0][0, NEXT].numpy()  # (N, N): row looks at column
picture = matrix_chart(bert.rows[0].tokens, weights, title="layer 1, head 2")
show(picture, "Attention of one head: every character looks at the next token", width=420)

# %% [markdown]
# Such a head asks "who stands one position after me?". Now give 糖尿病 three triples and ask the tokens around the branches
# whom they look at: 病, the mention's last token, and 史, which follows it in the sentence. An `Ablation` takes a part of
# K-BERT away, here the soft positions; `attentions=True` keeps the weights.

# %%
three = InjectionOptions(max_triples=3)


def looks_at(trace, head, token):
    """Tokens that get more than a twentieth of a token's attention, the most first."""
    row = trace.rows[0]
    trunk = [i for i, branch in enumerate(row.branch_ids) if branch == 0]
    place = next(i for i in trunk if row.tokens[i] == token)
    attention = trace.attentions[0][0, head, place]
    found = [
        (row.tokens[i], round(attention[i].item(), 2)) for i in attention.argsort(descending=True)
    ]
    return [(token, weight) for token, weight in found if weight > 0.05]


given = {"attentions": True, "hidden_states": True, "decode": False}
soft_read = kbert(text, graph=medical, options=three, **given)
hard_read = kbert(text, graph=medical, options=three, ablation=Ablation(positions="hard"), **given)
for name, trace in (("BERT", bert), ("soft positions", soft_read), ("hard positions", hard_read)):
    print(f"{name:15} after 病:  {looks_at(trace, NEXT, '病')}")
    print(f"{name:15} before 史: {looks_at(trace, PREVIOUS, '史')}")

# %% tags=["test"]
assert looks_at(bert, NEXT, "病")[0][0] == looks_at(soft_read, NEXT, "病")[0][0] == "史"
assert looks_at(hard_read, NEXT, "病")[0][0] != "史"

# %% [markdown]
# With soft positions 病 still finds 史, and beside it the beginnings of its branches, which have the same position; 史 finds 病.
# With hard positions 病 finds the first branch alone. And 史 doesn't find 病 any more: the token one position before it
# is now the last one of a branch, which K-BERT hides from it, so it is left with `[SEP]`.
#
# ## Measured: who is disturbed?
#
# Each layer turns the vectors of the tokens, their **hidden states**, into new ones. After the first layer, how much has
# the state of each trunk token changed against plain BERT's? The change is the length of the difference, as a share of
# the length of BERT's state.
#
# One thing must be said beforehand: K-BERT hides branches from all of the trunk but their mention ([the next
# notebook](03_visible_matrix.ipynb) shows how). So only the mention, 糖尿病, should notice anything in the first layer.


# %%
def change(trace):
    """Relative change of each trunk token's state after layer 1."""
    trunk = [i for i, branch in enumerate(trace.rows[0].branch_ids) if branch == 0]
    before, after = bert.hidden_states[1][0], trace.hidden_states[1][0, trunk]
    return ((after - before).norm(dim=-1) / before.norm(dim=-1)).tolist()


changed = {"hard positions": change(hard_read), "soft positions": change(soft_read)}
tokens = bert.rows[0].tokens
chart = line_chart(tokens, changed, across="token", up="relative change after layer 1")
show(chart, "With soft positions only 糖尿病 changes; with hard ones all of the trunk does")

# %%
for token, hard_change, soft_change in zip(tokens, *changed.values()):
    print(f"{token:6} hard {hard_change:6.3f}   soft {soft_change:6.3f}")

others = [i for i, token in enumerate(tokens) if token not in "糖尿病"]

# %% tags=["test"]
assert all(changed["soft positions"][i] < 1e-5 for i in others)
assert all(changed["hard positions"][i] > 1e-3 for i in others)

# %% [markdown]
# With soft positions, every token but the mention's has the state that plain BERT gives it (up to rounding): the
# sentence is as it was. With hard positions all of them change, though no triple is about them: 史 and `[SEP]` have
# moved, and the others look at them.
#
# Does it matter for a task? In the paper's Figure 5, K-BERT without soft positions is worse. In our own experiment with
# clinical texts it did *not* score worse, and yet did harm: when a triple was added, about one in ten of the *other*
# entities of the sentence changed; with soft positions one in a hundred. [Notebook 7b](07b_ablations.ipynb) has the numbers.
#
# ## Exercises
#
# **1.** (easy) The tree of "London is rainy" with the triple *London · located_on · Thames*: which soft positions do its five tokens have?
# (`[CLS]`, not listed here, has 0.)

# %% tags=["exercise"]
from checks.trees import check_positions

positions = ...  # for London, located_on, Thames, is, rainy
check_positions(positions)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Number the sentence first, without the branch. Then count on from *London* for the branch.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# positions = [1, 2, 3, 2, 3]
# check_positions(positions)
# ```
#
# *is* follows *London* in the sentence, and so does *located_on* in the branch: both have 2.
# </details>

# %% [markdown]
# **2.** (easy) Write a function of the lengths of a mention's branches (in tokens) that gives the *hard* distance between the
# mention's last token and the trunk token that follows it.

# %% tags=["exercise"]
from checks.trees import check_distance


def hard_distance(lengths):
    return ...


check_distance(hard_distance)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Without any branch the distance is 1. What does a branch of three tokens add?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def hard_distance(lengths):
#     return 1 + sum(lengths)
#
#
# check_distance(hard_distance)
# ```
#
# The soft distance is 1, whatever the lengths are.
# </details>

# %% [markdown]
# **3.** (medium) *Beijing* of Figure 2 gets a third branch after the other two, *located_in Asia*. Which soft positions do
# *Asia* and *now* have?

# %% tags=["exercise"]
from checks.trees import check_third_branch

of_asia, of_now = ..., ...
check_third_branch(of_asia, of_now)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# *Beijing* has soft position 5. Which tokens count on from it?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# of_asia, of_now = 7, 6
# check_third_branch(of_asia, of_now)
# ```
#
# *located_in* has 6 and *Asia* 7, as if *Beijing* had no other branch. Six tokens on branches then share the positions 6 and 7
# with *now* and `[SEP]`. By position alone the model can't tell them apart; that is what the visible matrix is for.
# </details>

# %% [markdown]
# ## Summary
#
# - The **hard position** is a token's place in the row; the **soft position** is its place in the sentence, and a
#   branch counts on from its mention.
# - With hard positions every triple pushes neighbours of the sentence apart, and heads that look one place on find
#   the wrong token.
# - With soft positions tokens share a position. Who may look at whom must then be said in another way: by the visible
#   matrix.
#
# **Open question.** Two branches of one mention share their positions. What could a model no longer tell apart if the
# visible matrix let them see each other? Would positions that count on from branch to branch be better?
#
# ## Go on
#
# *To read:* [K-BERT](https://arxiv.org/abs/1909.07606), Figure 2; [BERT](https://arxiv.org/abs/1810.04805) (Devlin et al. 2019), Figure 2, for the position table.

# %%
from _tools import lab_link

lab_link(text, graph=medical, model="zh-mini", options=three)

# %% [markdown]
# In the Lab, *Positions* changes between soft and hard. Next: [3 · The visible matrix](03_visible_matrix.ipynb).
