"""Texts of what every triple does to a prediction, in every language."""

ENGLISH = {
    "effects.now": "With knowledge: {answer}. Without any: {plain}.",
    "effects.whole": "All {count} triples together: {change} ({points}).",
    "effects.whole_one": "The one triple there is: {change} ({points}).",
    "effects.most_flips": "{triple} does most: without it {change} ({points}), and the "
    "prediction becomes {answer}.",
    "effects.most": "{triple} does most: without it {change} ({points}); the prediction stays "
    "{answer}.",
    "effects.nothing": "No triple does anything to this prediction.",
    "effects.rest": "The single effects sum to {sum}, not to {whole}: triples need or replace "
    "each other.",
    "effects.column.triple": "triple",
    "effects.column.deleted": "adds, if deleted",
    "effects.column.attention": "attention",
    "effects.left_out_help": "The probability with the triple and without it, all else the same.",
    "effects.deleted_help": "Percentage points, where the triple is deleted from the graph "
    "and the next one of its name moves up.",
    "effects.attention_help": "Attention of the whole trunk on the triple's branch, mean of "
    "all layers and heads.",
    "effects.becomes": "becomes {answer}",
    "effects.moved_up": "{triples} moves up",
    "effects.moved_up_several": "{triples} move up",
    "effects.moved_out": "{triples} goes as well",
    "effects.moved_out_several": "{triples} go as well",
    "effects.at": "at {mentions}",
    "effects.mention": "“{text}”",
    "effects.off": "Switch off {triple}",
    "effects.off_help": "Switches the triple off in the graph, so that the next one moves up, "
    "and opens the Lab. It can be undone there.",
    "effects.off_shared": "Switches the triple off in the workspace, for everybody, and opens "
    "the Lab.",
    "effects.by_mention": "Each mention by itself",
    "effects.by_mention_help": "A triple that hangs at several places is left out at one of "
    "them at a time. Deleting has no such thing: a graph has a triple once.",
    "effects.start": "Measure {count} triples",
    "effects.again": "Measure again",
    "effects.csv": "As CSV",
    "effects.another": "another …",
    "effects.span": "Words of the text",
    "effects.span_help": "As they stand in the text; where they stand several times, choose which.",
    "effects.place": "Which of them",
    "effects.no_span": "“{text}” doesn't stand in the text.",
    "effects.label": "as",
    "effects.explained": "Explain",
    "effects.mask": "Which [MASK]",
    "effects.token": "Token",
    "effects.no_token": "The model has no token “{token}”.",
    "effects.attention_what": "How much attention a triple gets says little of what it does. "
    "Attention is of the whole trunk on the triple's branch.",
    "effects.attention_class": "The tokens explained are [CLS] alone. Under the visible "
    "matrix it sees no branch, so it gives them no attention in any layer: what they do comes "
    "through the mention.",
    "effects.rho": "Rank correlation of attention and size of the effect: {rho}, over {count} "
    "triples.",
    "effects.no_rho": "A rank correlation needs three triples.",
    "effects.rho_equal": "There is no rank correlation: the triples all get the same "
    "attention, or all do the same.",
    "effects.unattended": "The trunk gives no triple any attention, so there is nothing to "
    "put beside the effects.",
    "effects.idle": "Attention is not explanation: {triple} gets the most, and adds {effect} "
    "only; {strongest} adds {strongest_effect}.",
    "effects.overlooked": "Attention is not explanation: {triple} does most ({effect}), and "
    "is only number {rank} of {count} by attention.",
    "effects.agree": "Here the triple that is looked at most is no idle one, and the one that "
    "does most is looked at.",
    "explain.page": "Explain",
    "explain.part": "Part",
    "explain.effects": "Effects",
    "explain.flips": "What flips it?",
    "explain.paths": "Paths",
    "explain.noise": "Noise",
    "explain.effects_what": "Each triple is left out once, all others held fixed: what then "
    "becomes of the probability is its effect, exactly. Below, the same probability shared "
    "out among the tokens.",
    "explain.flips_what": "Triples are removed, replaced and added, made of what the graph "
    "says itself: single changes first, then larger sets of those that came nearest. Each set "
    "is tried by making its edits and reading the text again.",
    "explain.paths_what": "In each layer a token learns from those it sees. What can have "
    "come where follows from the visible matrix; what it changed there is measured, by "
    "leaving the triple out.",
    "explain.noise_what": "Each mention gets triples about other entities, after its own. The "
    "text is then read in three ways: as K-BERT reads it, without soft positions, and with "
    "everything visible. Which of them the noise moves least differs from text to text.",
    "effects.chance_class": "Shown: the probability of “{label}”.",
    "effects.chance_span": "Shown: the probability that “{text}” is {label} (the geometric "
    "mean over its tokens).",
    "effects.chance_mask": "Shown: the probability of “{label}” at the mask.",
    "effects.chance_qa": "Shown: the probability of the answer “{label}”.",
    "effects.chance_link": "Shown: the weight of {label} among the candidates of “{text}”.",
    "effects.points": "{value} points",
    "effects.text": "text",
    "effects.axis": "percentage points",
    "effects.tokens_title": "What every token adds",
    "effects.shares": "Integrated gradients, from a text of [MASK]s to this one: {change}. A "
    "token's share is measured along that way; the effects above compare two readings.",
    "effects.remainder": "The shares leave {points} unexplained.",
    "effects.attention_title": "Attention beside effect",
    "effects.choose": "Choose a row to switch its triple off.",
    "effects.column.at": "at",
    "effects.column.left_out": "left out",
    "effects.column.adds": "adds",
    "effects.column.tokens": "its tokens add",
    "effects.column.becomes": "becomes",
    "effects.column.then": "then",
    "effects.triple_help": "Head · relation · tail.",
    "effects.at_help": "The mentions it hangs from.",
    "effects.adds_help": "Percentage points: the probability as it is minus the one without "
    "the triple. Exact.",
    "effects.tokens_help": "Percentage points: the sum of its tokens' shares, by integrated "
    "gradients.",
    "effects.becomes_help": "The prediction without the triple, where it is another.",
    "effects.then_help": "What deleting it brings in or takes away, and what is predicted then.",
}

CHINESE = {
    "effects.now": "有知识时：{answer}。没有知识时：{plain}。",
    "effects.whole": "{count} 个三元组合起来：{change}（{points}）。",
    "effects.whole_one": "唯一的三元组：{change}（{points}）。",
    "effects.most_flips": "{triple} 作用最大：没有它，{change}（{points}），预测变为 {answer}。",
    "effects.most": "{triple} 作用最大：没有它，{change}（{points}），预测仍为 {answer}。",
    "effects.nothing": "没有三元组对这一预测有任何作用。",
    "effects.rest": "各单项作用之和为 {sum}，而不是 {whole}：三元组相互依赖或相互替代。",
    "effects.column.triple": "三元组",
    "effects.column.deleted": "贡献（若删除）",
    "effects.column.attention": "注意力",
    "effects.left_out_help": "有该三元组与没有它时的概率，其余不变。",
    "effects.deleted_help": "百分点：从图谱中删除该三元组、由同名的下一个补上时。",
    "effects.attention_help": "整个主干对该三元组分支的注意力，取所有层和头的平均。",
    "effects.becomes": "变为 {answer}",
    "effects.moved_up": "{triples} 补上",
    "effects.moved_up_several": "{triples} 补上",
    "effects.moved_out": "{triples} 也随之消失",
    "effects.moved_out_several": "{triples} 也随之消失",
    "effects.at": "位于{mentions}",
    "effects.mention": "“{text}”",
    "effects.off": "停用 {triple}",
    "effects.off_help": "在图谱中关闭该三元组，由下一个补上，并打开实验室。可在那里撤销。",
    "effects.off_shared": "在工作区中为所有人关闭该三元组，并打开实验室。",
    "effects.by_mention": "逐个提及分开",
    "effects.by_mention_help": "挂在多处的三元组，每次只从其中一处去掉。删除没有这种区别：图谱"
    "中每个三元组只有一个。",
    "effects.start": "测量 {count} 个三元组",
    "effects.again": "重新测量",
    "effects.csv": "导出 CSV",
    "effects.another": "其他……",
    "effects.span": "文本中的词语",
    "effects.span_help": "须与文本一致；若出现多次，可选择第几处。",
    "effects.place": "第几处",
    "effects.no_span": "文本中没有“{text}”。",
    "effects.label": "作为",
    "effects.explained": "解释",
    "effects.mask": "第几个 [MASK]",
    "effects.token": "词元",
    "effects.no_token": "模型没有词元“{token}”。",
    "effects.attention_what": "三元组受到多少注意力，几乎说明不了它的作用。这里是整个主干对该"
    "三元组分支的注意力。",
    "effects.attention_class": "被解释的词元只有 [CLS]。在可见矩阵下它看不到任何分支，因此在任"
    "何层都不给它们注意力：它们的作用经由提及传来。",
    "effects.rho": "注意力与作用大小的秩相关：{rho}（{count} 个三元组）。",
    "effects.no_rho": "秩相关至少需要三个三元组。",
    "effects.rho_equal": "没有秩相关：各三元组受到的注意力全都相同，或作用全都相同。",
    "effects.unattended": "主干不给任何三元组注意力，因此没有什么可与作用对照。",
    "effects.idle": "注意力不等于解释：{triple} 受到的注意力最多，却只贡献 {effect}；{stronges"
    "t} 贡献 {strongest_effect}。",
    "effects.overlooked": "注意力不等于解释：{triple} 作用最大（{effect}），按注意力却只排第 {"
    "rank}（共 {count} 个）。",
    "effects.agree": "在这里，最受注意的三元组并非无作用，作用最大的也受到注意。",
    "explain.page": "解释",
    "explain.part": "部分",
    "explain.effects": "作用",
    "explain.flips": "什么会使它翻转？",
    "explain.paths": "路径",
    "explain.noise": "噪声",
    "explain.effects_what": "每次去掉一个三元组，其余不变：概率因此变成多少，就是它的作用，是"
    "精确值。下方把同一概率分摊到各个词元。",
    "explain.flips_what": "删除、替换和添加三元组，内容都取自图谱本身：先试单个改动，再把最接"
    "近的改动合在一起。每一组都真正修改图谱并重新读取文本来检验。",
    "explain.paths_what": "每一层里，词元从它看得见的词元学习。信息可能到达何处由可见矩阵决定"
    "；在那里改变了多少，则通过去掉三元组来测量。",
    "explain.noise_what": "每个提及在自己的三元组之后再挂上关于其他实体的三元组，然后以三种方"
    "式读取文本：按 K-BERT、不用软位置、全部可见。哪种方式受噪声影响最小，因文本而异。",
    "effects.chance_class": "显示的是“{label}”的概率。",
    "effects.chance_span": "显示的是“{text}”为 {label} 的概率（各词元的几何平均）。",
    "effects.chance_mask": "显示的是“{label}”在掩码处的概率。",
    "effects.chance_qa": "显示的是答案“{label}”的概率。",
    "effects.chance_link": "显示的是 {label} 在“{text}”的候选中所占的权重。",
    "effects.points": "{value} 个百分点",
    "effects.text": "文本",
    "effects.axis": "百分点",
    "effects.tokens_title": "每个词元的贡献",
    "effects.shares": "积分梯度：从全为 [MASK] 的文本到此文本，{change}。词元的份额沿这条路径"
    "测得；上面的作用则比较两次读取。",
    "effects.remainder": "各份额之和还差 {points}。",
    "effects.attention_title": "注意力与作用对照",
    "effects.choose": "选中一行即可关闭该三元组。",
    "effects.column.at": "位置",
    "effects.column.left_out": "去掉",
    "effects.column.adds": "贡献",
    "effects.column.tokens": "其词元的贡献",
    "effects.column.becomes": "变为",
    "effects.column.then": "之后",
    "effects.triple_help": "头实体 · 关系 · 尾实体。",
    "effects.at_help": "它挂在哪些提及上。",
    "effects.adds_help": "百分点：现在的概率减去没有该三元组时的概率，精确值。",
    "effects.tokens_help": "百分点：其各词元份额之和（积分梯度）。",
    "effects.becomes_help": "没有该三元组时的预测，仅在不同时显示。",
    "effects.then_help": "删除后补上或消失的三元组，以及届时的预测。",
}
