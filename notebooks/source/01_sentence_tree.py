# %% [markdown]
# # 1 · The sentence tree
#
# **Question.** How does knowledge get into a sentence, and what is lost when the result is written in a line?
#
# **You need** to read Python. **You get** K-BERT's knowledge layer, built by hand on the
# paper's own example: *K-Query* and *K-Inject*.
#
# K-BERT (Liu et al., *K-BERT: Enabling Language Representation with Knowledge Graph*, AAAI 2020,
# [arXiv:1909.07606](https://arxiv.org/abs/1909.07606)) lets BERT read facts beside a sentence. BERT is a language
# model: it takes a row of *tokens* (words, parts of words or characters) and gives a vector for each. Here nothing
# is trained yet, and no model runs; we only prepare what it will read.
#
# **After this notebook you can** name K-Query and K-Inject, draw the tree of a sentence, and say what its flat line loses.

# %%
from _tools import ready

ready(models=False)

# %% [markdown]
# ## A fact is a triple
#
# A **triple** says one thing in three parts: *head*, *relation*, *tail*. The head is an **entity**, something with a
# name. A **knowledge graph** is a set of triples; we call it $\mathcal{K}$, as the paper does. Figure 2 of the paper needs three:

# %%
K = [
    ("Tim Cook", "CEO", "Apple"),
    ("Beijing", "capital", "China"),
    ("Beijing", "is_a", "City"),
]
sentence = "Tim Cook is visiting Beijing now"

# %% [markdown]
# ## K-Query: which entities does the sentence name?
#
# $$E = \text{K-Query}(s, \mathcal{K}) \qquad \text{(Eq. 1)}$$
#
# takes a sentence $s$ and looks up every entity that it names, with its triples. A place in the sentence that names an
# entity is a **mention**. By hand: go from left to right; at each word, try the longest name first.

# %%
words = sentence.split()


def end_of_name(words, start, names):
    """Where the longest name that begins at this word ends; None if none begins here."""
    for end in range(len(words), start, -1):  # the longest first
        if " ".join(words[start:end]) in names:
            return end


def k_query_by_hand(words, triples):
    """Mentions as (first word, last word + 1, triples of that entity)."""
    heads = {head for head, _, _ in triples}
    found, start = [], 0
    while start < len(words):
        end = end_of_name(words, start, heads)
        if end is None:
            start += 1
        else:
            name = " ".join(words[start:end])
            found.append((start, end, [t for t in triples if t[0] == name]))
            start = end
    return found


E = k_query_by_hand(words, K)
for start, end, triples in E:
    print(f"words {start} to {end - 1}, {' '.join(words[start:end])!r}: {triples}")

# %% [markdown]
# Try a sentence of your own: change `sentence` or `K` above, and run the cells from there again.
#
# ## K-Inject: hang the triples on their mentions
#
# $$t = \text{K-Inject}(s, E) \qquad \text{(Eq. 2)}$$
#
# makes a **sentence tree** $t$. The sentence is its **trunk**. Each triple becomes a **branch**: its relation and its
# tail hang from the mention, which is the triple's head. A branch has no branches of its own (the tree has depth 1).
# By hand a tree is a list: each word, or each mention with all its branches.


# %%
def k_inject_by_hand(words, found):
    """A list of (trunk words, branches); a branch is a list of words."""
    tree, at = [], 0
    for start, end, triples in found:
        tree += [([word], []) for word in words[at:start]]
        branches = [f"{relation} {tail}".split() for _, relation, tail in triples]
        tree.append((words[start:end], branches))
        at = end
    return tree + [([word], []) for word in words[at:]]


tree = k_inject_by_hand(words, E)
for trunk, branches in tree:
    print(f"{' '.join(trunk):10}", "   ".join("└ " + " ".join(branch) for branch in branches))

# %% [markdown]
# ## Flattening: a tree in one line
#
# BERT reads a row of tokens, not a tree. So the tree is **flattened**: every branch is written right after its mention.

# %%
line = []
for trunk, branches in tree:
    line += trunk
    for branch in branches:
        line += branch
print(" ".join(line))

# %% tags=["test"]
assert line == "Tim Cook CEO Apple is visiting Beijing capital China is_a City now".split()

# %% [markdown]
# This is the row that Figure 2 of the paper shows. It contains everything, and it is no longer a sentence: *is*
# used to follow *Cook*, now it follows *Apple*.
#
# ## The same with the library
#
# In `kbert_core` the two steps are `k_query` and `k_inject`, and the row is made by `flatten`. `Words` cuts a text at
# white space; real models cut it into smaller pieces. `Words(special=True)` adds the **special tokens** that BERT reads
# at both ends, `[CLS]` before a text and `[SEP]` after it. (The library ignores
# case when it looks for names: *tim cook* is found too. Ours by hand doesn't.)

# %%
from kbert_core import (
    KnowledgeGraph,
    Triple,
    Words,
    flatten,
    grow_trees,
    k_inject,
    k_query,
    load_graph,
)

graph = KnowledgeGraph(Triple(*triple) for triple in K)
(nodes,) = k_query([sentence], graph)  # it takes a list of texts, and gives something for each
sentence_tree = k_inject(sentence, nodes)
(flat,) = flatten([sentence_tree], Words())
print(len(nodes), "mentions,", len(flat.branches), "branches,", len(flat), "tokens")
print("the same row as by hand:", flat.tokens == line)

# %% tags=["test"]
assert flat.tokens == line

# %% [markdown]
# `lab` draws a sentence tree in a cell; run it, and you can switch a branch off, or type another tail with ✎. The numbers
# below the tokens (*Details*) are for [the next notebook](02_soft_positions.ipynb), and the matrix beside the tree for
# [the one after it](03_visible_matrix.ipynb).

# %%
from kbert_lab.lab.widget import lab

lab("words", graph, sentence)

# %% [markdown]
# ## What is lost
#
# Nobody can tell from a row of tokens where the trunk ends and a branch begins. Here are two trees that say different
# things. In the first, the graph knows that Tim Cook is the CEO of Apple. In the second, the *sentence* says so, and
# the graph is empty.

# %%
(ours,) = flatten([sentence_tree], Words())

other_sentence = "Tim Cook CEO Apple is visiting Beijing capital China is_a City now"
nothing = KnowledgeGraph()
(other,) = flatten(grow_trees([other_sentence], nothing), Words())  # k_query, then k_inject

print("the same tokens:  ", ours.tokens == other.tokens)
print("the same branches:", len(ours.branches) == len(other.branches))

# %% tags=["test"]
assert ours.tokens == other.tokens and len(ours.branches) == 3 and len(other.branches) == 0

# %% [markdown]
# A model that is given this row alone would read knowledge as if it stood in the sentence. The paper calls the harm that
# comes of it **knowledge noise**: too much knowledge changes what the sentence means. So K-BERT gives the model two more
# things:
#
# - **soft positions**, so that *is* still follows *Cook* ([notebook 2](02_soft_positions.ipynb));
# - a **visible matrix**, so that of the sentence only *Tim Cook* sees *Apple* ([notebook 3](03_visible_matrix.ipynb)).
#
# ## Which triples get in
#
# An entity may have hundreds of triples. K-BERT injects a few for each mention: by default the first two in the order
# of the graph. For every other triple the library names the rule by which it was left out.

# %%
more = load_graph("demo_kgs/general_en.spo")
((beijing,),) = k_query(["We walked through Beijing"], more)
for triple in beijing.used:
    print("injected:", triple)
for item in beijing.left_out:
    print("left out:", item.triple, "—", item.rule)

# %% [markdown]
# ## In Chinese
#
# Chinese is written without spaces, so a name may begin at any character, and every character is a token. Nothing else
# changes. (患者行胃镜检查未见异常: *the patient had a gastroscopy, nothing unusual was seen*. 胃镜 is a gastroscopy; of it the
# graph says 类别 · 检查, *kind: examination*, and 部位 · 胃, *part of the body: stomach*.)

# %%
medical = load_graph("demo_kgs/medical_zh.spo")
lab("characters", medical, "患者行胃镜检查未见异常")

# %% [markdown]
# ## Exercises
#
# Put your answer in place of the `...` and run the cell. The check says what is wrong; try a wrong answer too.
#
# **1.** (easy) The graph has the entities *New*, *York* and *New York*. Which mentions does K-Query find in
# "She left New York for York"?

# %% tags=["exercise"]
from checks.trees import check_longest

mentions = ...  # a list of names, in the order of the text
check_longest(mentions)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# At each word try the longest name first. Which words are used up after that?
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# mentions = ["New York", "York"]
# check_longest(mentions)
# ```
#
# At *New* both *New* and *New York* begin, and the longer is taken. Its *York* is then used up; the other one is free.
# </details>

# %% [markdown]
# **2.** (easy) The graph says *London · located_on · Thames*, *Paris · capital · France* and *Paris · is_a · city*, in this
# order. Write the tree of "London and Paris" in one line.

# %% tags=["exercise"]
from checks.trees import check_line

tokens = ...  # a list, or one string with spaces
check_line(tokens)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Go through the sentence from left to right. After each mention write all its branches: relation, then tail.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# tokens = "London located_on Thames and Paris capital France is_a city"
# check_line(tokens)
# ```
# </details>

# %% [markdown]
# **3.** (medium) Find a *third* tree for Figure 2's line: another sentence with a graph of your own, at least one triple, that flattens to
# "Tim Cook CEO Apple is visiting Beijing capital China is_a City now". (There are many.)

# %% tags=["exercise"]
from checks.trees import check_twin

my_sentence = ...
my_triples = ...  # a list of (head, relation, tail)
check_twin(my_sentence, my_triples)

# %% [markdown] tags=["solution"]
# <details><summary>Hint</summary>
#
# Take Figure 2, and move the words of one branch from the graph into the sentence.
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# my_sentence = "Tim Cook CEO Apple is visiting Beijing now"
# my_triples = [("Beijing", "capital", "China"), ("Beijing", "is_a", "City")]
# check_twin(my_sentence, my_triples)
# ```
#
# Any part of a branch may as well have stood in the sentence.
# </details>

# %% [markdown]
# ## Summary
#
# - **K-Query** finds the names of entities in a sentence, the longest first; **K-Inject** hangs their triples on them
#   as branches.
# - The sentence is the trunk. Flattened, each branch stands right after its mention.
# - The row alone doesn't say what is trunk and what is branch. Soft positions and the visible matrix will.
#
# **Open question.** K-Query compares letters: it knows neither *Apple's CEO* nor a misspelt name, and takes every
# *Apple* for the company. What would you change, and what would it cost?
#
# ## Go on
#
# *To read:* [K-BERT](https://arxiv.org/abs/1909.07606), the paper's Figure 1 and its sections on the knowledge layer.
#
# Open the tree of this notebook in the app, switch a triple off and see the tree change:

# %%
from _tools import lab_link

lab_link(sentence, graph=load_graph("demo_kgs/figure2.spo"), model="words")

# %% [markdown]
# Next: [2 · Soft positions](02_soft_positions.ipynb).
