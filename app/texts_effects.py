"""Texts of what every triple does to a prediction, in every language."""

ENGLISH = {
    "effects.title": "What every triple does",
    "effects.what": "Every triple is left out once, with all others held fixed; the effect is what "
    "that takes from the score of what is explained. It is exact. Deleting the triple from the "
    "graph is another question, as the next triple of its name may move up.",
    "effects.score_class": "Score: the log-odds of “{label}”, in nats.",
    "effects.score_span": "Score: the mean log-probability of the tags that make “{text}” {label}, "
    "in nats.",
    "effects.score_mask": "Score: the log-odds of “{label}” at the mask, in nats.",
    "effects.score_qa": "Score: the log-probability of the answer “{label}”, in nats.",
    "effects.score_link": "Score: the log-odds of the weight of {label} among the candidates of "
    "“{text}”, in nats.",
    "effects.now": "With knowledge: {answer}. Without any: {plain}.",
    "effects.whole": "All {count} triples together: {whole}.",
    "effects.whole_one": "The one triple there is: {whole}.",
    "effects.most_flips": "{triple} does most, {effect}: without it the prediction is {answer}.",
    "effects.most": "{triple} does most, {effect}; without it the prediction stays {answer}.",
    "effects.nothing": "No triple does anything to this prediction.",
    "effects.rest": "The single effects sum to {sum}, not to {whole}: triples need or replace each "
    "other. Shapley values share the whole out without a rest.",
    "effects.column.triple": "triple",
    "effects.column.left_out": "left out",
    "effects.column.deleted": "deleted",
    "effects.column.attention": "attention",
    "effects.left_out_help": "What the triple adds to the score: the score as it is minus the one "
    "without it, all else the same.",
    "effects.deleted_help": "The same where the triple is deleted from the graph and the next one "
    "of its name moves up.",
    "effects.attention_help": "Attention of the whole trunk on the triple's branch, mean of all "
    "layers and heads.",
    "effects.becomes": "becomes {answer}",
    "effects.moved_up": "{triples} moves up",
    "effects.moved_up_several": "{triples} move up",
    "effects.moved_out": "{triples} goes as well",
    "effects.moved_out_several": "{triples} go as well",
    "effects.at": "at {mentions}",
    "effects.mention": "“{text}”",
    "effects.off": "Switch off",
    "effects.off_help": "Switches the triple off in the graph, so that the next one moves up, and "
    "opens the Lab. It can be undone there.",
    "effects.off_shared": "Switches the triple off in the workspace, for everybody, and opens the "
    "Lab.",
    "effects.by_mention": "Each mention by itself",
    "effects.by_mention_help": "A triple that hangs at several places is left out at one of them "
    "at a time. Deleting has no such thing: a graph has a triple once.",
    "effects.all": "Show all {count}",
    "effects.start": "Measure {count} triples",
    "effects.again": "Measure again",
    "effects.csv": "As CSV",
    # choosing
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
    # pairs
    "effects.more": "Look further",
    "effects.more.pairs": "Pairs of triples",
    "effects.more.shapley": "Shapley values",
    "effects.more.attention": "Attention",
    "effects.pairs_what": "What two triples do together beyond the sum of what each does without "
    "the other. Above zero they raise the score by more than that, or lower it by less; below zero "
    "they raise it by less, or lower it by more.",
    "effects.pairs_start": "Measure {count} pairs",
    "effects.pairs_none": "There is no pair: one triple stands in the text.",
    "effects.pair": "pair",
    "effects.interaction": "interaction",
    "effects.pairs_rest": "{count} more pairs, all smaller.",
    # Shapley
    "effects.shapley_what": "The whole effect shared out: what a triple changes when it comes in, "
    "as a mean over all orders in which the triples could. With few triples every set of them is "
    "run; else orders are drawn, each with its reverse.",
    "effects.orders": "Orders to draw",
    "effects.exact": "All {sets} sets",
    "effects.exact_help": "Exact values, where there are at most {most} triples.",
    "effects.shapley_start": "Share it out",
    "effects.shapley_exact": "Exact, by all {runs} sets. Sum: {whole}.",
    "effects.shapley_drawn": "{orders} orders, {runs} readings, seed {seed}; the line is the 95 % "
    "interval. Sum: {whole}.",
    "effects.shapley_begun": "The whole effect is {whole}; {runs} readings so far.",
    "effects.value": "share",
    "effects.interval": "95 %",
    # attention
    "effects.attention_what": "How much attention a triple gets says little of what it does. "
    "Attention is of the whole trunk on the triple's branch, and of the tokens explained.",
    "effects.attention_class": "The tokens explained are [CLS] alone. Under the visible matrix it "
    "sees no branch, so it gives them no attention in any layer: what they do comes through the "
    "mention.",
    "effects.rho": "Rank correlation of attention and size of the effect: {rho}, over {count} "
    "triples.",
    "effects.no_rho": "A rank correlation needs three triples.",
    "effects.rho_equal": "There is no rank correlation: the triples all get the same attention, or "
    "all do the same.",
    "effects.unattended": "The trunk gives no triple any attention, so there is nothing to put "
    "beside the effects.",
    "effects.idle": "Attention is not explanation: {triple} gets the most, and leaving it out "
    "changes the score by {effect} only; {strongest} changes it by {strongest_effect}.",
    "effects.overlooked": "Attention is not explanation: {triple} does most, {effect}, and is only "
    "number {rank} of {count} by attention.",
    "effects.agree": "Here the triple that is looked at most is no idle one, and the one that does "
    "most is looked at.",
    "effects.by_trunk": "of the trunk",
    "effects.by_target": "of what is explained",
    "effects.size": "effect",
}

CHINESE = {
    "effects.title": "每个三元组的作用",
    "effects.what": "每次去掉一个三元组，其余保持不变；作用就是所解释内容的得分因此减少多少。"
    "这是精确值。从图谱中删除则是另一个问题，因为同名的下一个三元组可能补上。",
    "effects.score_class": "得分：“{label}”的对数几率，单位奈特。",
    "effects.score_span": "得分：使“{text}”成为 {label} 的标记的平均对数概率，单位奈特。",
    "effects.score_mask": "得分：“{label}”在掩码处的对数几率，单位奈特。",
    "effects.score_qa": "得分：答案“{label}”的对数概率，单位奈特。",
    "effects.score_link": "得分：{label} 在“{text}”的候选中所占权重的对数几率，单位奈特。",
    "effects.now": "有知识时：{answer}。没有知识时：{plain}。",
    "effects.whole": "{count} 个三元组合起来：{whole}。",
    "effects.whole_one": "唯一的三元组：{whole}。",
    "effects.most_flips": "{triple} 作用最大（{effect}）：没有它，预测变为 {answer}。",
    "effects.most": "{triple} 作用最大（{effect}）；没有它，预测仍为 {answer}。",
    "effects.nothing": "没有三元组对这一预测有任何作用。",
    "effects.rest": "各单项作用之和为 {sum}，而不是 {whole}：三元组相互依赖或相互替代。"
    "Shapley 值可把整体无剩余地分摊。",
    "effects.column.triple": "三元组",
    "effects.column.left_out": "去掉",
    "effects.column.deleted": "删除",
    "effects.column.attention": "注意力",
    "effects.left_out_help": "三元组给得分增加多少：现在的得分减去没有它时的得分，其余不变。",
    "effects.deleted_help": "从图谱中删除该三元组、由同名的下一个补上时的作用。",
    "effects.attention_help": "整个主干对该三元组分支的注意力，取所有层和头的平均。",
    "effects.becomes": "变为 {answer}",
    "effects.moved_up": "{triples} 补上",
    "effects.moved_up_several": "{triples} 补上",
    "effects.moved_out": "{triples} 也随之消失",
    "effects.moved_out_several": "{triples} 也随之消失",
    "effects.at": "位于{mentions}",
    "effects.mention": "“{text}”",
    "effects.off": "关闭",
    "effects.off_help": "在图谱中关闭该三元组，由下一个补上，并打开实验室。可在那里撤销。",
    "effects.off_shared": "在工作区中为所有人关闭该三元组，并打开实验室。",
    "effects.by_mention": "逐个提及分开",
    "effects.by_mention_help": "挂在多处的三元组，每次只从其中一处去掉。删除没有这种区别："
    "图谱中每个三元组只有一个。",
    "effects.all": "显示全部 {count} 个",
    "effects.start": "测量 {count} 个三元组",
    "effects.again": "重新测量",
    "effects.csv": "导出 CSV",
    # choosing
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
    # pairs
    "effects.more": "进一步查看",
    "effects.more.pairs": "成对的三元组",
    "effects.more.shapley": "Shapley 值",
    "effects.more.attention": "注意力",
    "effects.pairs_what": "两个三元组合起来超出各自单独作用之和的部分。"
    "大于零表示合起来使得分升得更多或降得更少，小于零表示升得更少或降得更多。",
    "effects.pairs_start": "测量 {count} 对",
    "effects.pairs_none": "没有成对者：文本中只有一个三元组。",
    "effects.pair": "一对",
    "effects.interaction": "交互",
    "effects.pairs_rest": "还有 {count} 对，都更小。",
    # Shapley
    "effects.shapley_what": "把整体作用分摊：三元组加入时带来的变化，对所有可能的加入次序取平均。"
    "三元组较少时运行所有子集；否则随机抽取次序，每个次序连同其逆序。",
    "effects.orders": "抽取的次序数",
    "effects.exact": "全部 {sets} 个子集",
    "effects.exact_help": "精确值，至多 {most} 个三元组时可用。",
    "effects.shapley_start": "分摊",
    "effects.shapley_exact": "精确值，运行全部 {runs} 个子集。总和：{whole}。",
    "effects.shapley_drawn": "{orders} 个次序，{runs} 次读取，种子 {seed}；横线为 95 % 区间。"
    "总和：{whole}。",
    "effects.shapley_begun": "整体作用为 {whole}；已读取 {runs} 次。",
    "effects.value": "分摊值",
    "effects.interval": "95 % 区间",
    # attention
    "effects.attention_what": "三元组受到多少注意力，几乎说明不了它的作用。"
    "这里列出整个主干对其分支的注意力，以及被解释词元对它的注意力。",
    "effects.attention_class": "被解释的词元只有 [CLS]。在可见矩阵下它看不到任何分支，"
    "因此在任何层都不给它们注意力：它们的作用经由提及传来。",
    "effects.rho": "注意力与作用大小的秩相关：{rho}（{count} 个三元组）。",
    "effects.no_rho": "秩相关至少需要三个三元组。",
    "effects.rho_equal": "没有秩相关：各三元组受到的注意力全都相同，或作用全都相同。",
    "effects.unattended": "主干不给任何三元组注意力，因此没有什么可与作用对照。",
    "effects.idle": "注意力不等于解释：{triple} 受到的注意力最多，去掉它得分只改变 {effect}；"
    "{strongest} 则改变 {strongest_effect}。",
    "effects.overlooked": "注意力不等于解释：{triple} 作用最大（{effect}），按注意力却只排第 {rank}"
    "（共 {count} 个）。",
    "effects.agree": "在这里，最受注意的三元组并非无作用，作用最大的也受到注意。",
    "effects.by_trunk": "主干的",
    "effects.by_target": "被解释词元的",
    "effects.size": "作用",
}
