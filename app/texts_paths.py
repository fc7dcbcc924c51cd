"""Texts of the page Paths of knowledge, in every language."""

ENGLISH = {
    "paths.view": "Show",
    "paths.view_triple": "What a triple changes",
    "paths.view_token": "What a token can know",
    "paths.triple": "Triple",
    "paths.token": "Token",
    "paths.token_name": "{number}: {text}",
    "paths.layers": "after layer",
    "paths.legend_trunk": "a trunk token it can know",
    "paths.legend_branch": "a branch token it can know",
    "paths.gone": "gone",
    "paths.out": "out of reach",
    "paths.first_way": "Without {triple}, “{token}” can differ from layer {layer} on: {way}.",
    "paths.first_moved": "Without {triple}, “{token}” stands at another position, so it is "
    "another before the first layer: hard positions count the branch's tokens too.",
    "paths.first_by_move": "Without {triple}, “{token}” can differ from layer {layer} on: it "
    "sees tokens that then stand at other positions, as hard positions count the branch's "
    "tokens too. By attention alone: {way}.",
    "paths.never": "{triple} can't reach “{token}” in {layers} layers.",
    "paths.own": "“{token}” is part of {triple} itself.",
    "paths.step": "“{text}”",
    "paths.to": " → ",
    "paths.measured": "Measured, its state changes by {values}.",
    "paths.value": "{value} after layer {layer}",
    "paths.most": "It changes most in “{text}”: {value} after the last layer.",
    "paths.agree": "Measured where nothing can have come: at most {largest}, which is rounding.",
    "paths.disagree": "Measured where nothing can have come: {largest}, which is more than "
    "rounding. Please report this text and model.",
    "paths.knows": "After layer {layer}, “{token}” can know {trunk} of {trunks} trunk tokens "
    "and {branches} of {all_branches} branches.",
    "paths.knows_all": "From layer {layer} on, “{token}” can know all that stands in the tree.",
    "paths.column_first": "can from layer",
    "paths.column_last": "changes it by",
    "paths.never_short": "never",
    "paths.chart": "How much “{token}” changes without each triple",
    "paths.chart_x": "after layer",
    "paths.chart_y": "change of its state, %",
    "paths.no_model": "Nothing is measured without a model; what can have come where is shown "
    "for {layers} layers. Choose a model in the Lab to measure.",
    "paths.legend": "Blue: change of the state, in per cent. Empty: nothing can have come "
    "here yet. Orange: the triple's own tokens, gone without it.",
    "paths.column_triple": "Triple",
}

CHINESE = {
    "paths.view": "显示",
    "paths.view_triple": "三元组改变了什么",
    "paths.view_token": "词元可能知道什么",
    "paths.triple": "三元组",
    "paths.token": "词元",
    "paths.token_name": "{number}：{text}",
    "paths.layers": "经过层数",
    "paths.legend_trunk": "可能知道的主干词元",
    "paths.legend_branch": "可能知道的分支词元",
    "paths.gone": "不存在",
    "paths.out": "无法到达",
    "paths.first_way": "去掉 {triple} 后，“{token}”从第 {layer} 层起才可能不同：{way}。",
    "paths.first_moved": "去掉 {triple} 后，“{token}”的位置改变，因此在第一层之前就已不同：硬"
    "位置把分支的词元也计算在内。",
    "paths.first_by_move": "去掉 {triple} 后，“{token}”从第 {layer} 层起就可能不同：它看得见的"
    "一些词元位置会改变，因为硬位置把分支的词元也计算在内。仅凭注意力的路径：{way}。",
    "paths.never": "{triple} 在 {layers} 层内无法到达“{token}”。",
    "paths.own": "“{token}”是 {triple} 自身的一部分。",
    "paths.step": "“{text}”",
    "paths.to": " → ",
    "paths.measured": "实测其状态的变化：{values}。",
    "paths.value": "第 {layer} 层之后 {value}",
    "paths.most": "变化最大的是“{text}”：最后一层之后 {value}。",
    "paths.agree": "在无信息可到达之处，实测变化至多 {largest}，属于舍入误差。",
    "paths.disagree": "在无信息可到达之处，实测变化为 {largest}，超过舍入误差。请报告此文本和"
    "模型。",
    "paths.knows": "第 {layer} 层之后，“{token}”可能知道 {trunks} 个主干词元中的 {trunk} 个、{"
    "all_branches} 条分支中的 {branches} 条。",
    "paths.knows_all": "从第 {layer} 层起，“{token}”可能知道树中的一切。",
    "paths.column_first": "最早层",
    "paths.column_last": "变化",
    "paths.never_short": "无法到达",
    "paths.chart": "去掉各三元组后“{token}”的变化",
    "paths.chart_x": "经过层数",
    "paths.chart_y": "状态的变化，%",
    "paths.no_model": "没有模型就无法测量；这里按 {layers} 层显示信息可能到达之处。请在实验室"
    "选择模型再测量。",
    "paths.legend": "蓝色：状态的变化（百分比）。空白：尚无信息可到达。橙色：三元组自身的词元"
    "，去掉后不存在。",
    "paths.column_triple": "三元组",
}
