"""What an audit's verdict says, in every language; the English is the core's."""

from kbert_core.experiments.verdict import english

ENGLISH = {f"verdict.{key}": text for key, text in english().items()}

CHINESE = {
    "verdict.gap": "",
    "verdict.list": "、",
    "verdict.end": "。",
    "verdict.headline.nothing": "图谱在{held_out}中什么也没认出：用它的 K-BERT 读这些文本会与普通 "
    "BERT 一样。",
    "verdict.headline.leaks_room": "这一划分几乎显示不出知识的作用：既有泄漏，"
    "训练集又几乎见过每个名称。",
    "verdict.headline.leaks": "这一划分上的分数会偏高：各划分之间有泄漏。",
    "verdict.headline.room": "这一划分几乎没有给知识留下余地：训练集几乎见过每个名称。",
    "verdict.headline.made_from_data": "用此图谱得到的提高只能说明模型会读图谱，"
    "而不能说明独立的知识有用：图谱看起来像是由这些标注制成的。",
    "verdict.headline.coverage": "图谱对这些文本知道得太少，不能期望太多。",
    "verdict.headline.good": "清点的结果没有发现不利于实验之处：请比较用此图谱训练的模型、"
    "不用图谱的模型和用打乱的图谱的模型。",
    "verdict.headline.good_ner": "清点的结果没有发现不利于实验之处：请比较用此图谱训练的模型、"
    "不用图谱的模型和用打乱的图谱的模型，并与单纯的词典对照。",
    "verdict.missing.one": "这里没有{first}。以下针对{held_out}。",
    "verdict.missing.two": "这里没有{first}和{second}。以下针对{held_out}。",
    "verdict.size.one": "{held_out}只有 1 行：比例只能粗略参考。",
    "verdict.size": "{held_out}只有 {rows} 行：比例只能粗略参考。",
    "verdict.coverage.texts": "{held_out}中 {share.percent} 的文本提到图谱的头实体，每段文本 "
    "{per:.1f} 个名称。所说的内容是否与标签有关，这里无法清点。",
    "verdict.coverage": "{held_out}的 {known.total:,} 处提及中，图谱按名称认识 {known.percent}",
    "verdict.coverage.labels": "，最多的是 {most}（{high.percent}），最少的是 "
    "{least}（{low.percent}）",
    "verdict.coverage.reached": "；其中 {reached.percent} 能完整匹配，其余落在更长的匹配之内",
    "verdict.room": "{held_out}的 {share.total:,} 处提及中，{share.percent} "
    "的名称在训练集里没出现过",
    "verdict.room.known": "，图谱认识其中的 {known.percent}：对模型是新的、而图谱认识的，"
    "最多占全部提及的 {new.percent}",
    "verdict.room.little": "要看知识的作用，请按实体不相交的方式划分（`kbert split`）。",
    "verdict.room.silent": "训练集没说的，图谱也没说。",
    "verdict.leaks.none": "各划分没有相同的文本。",
    "verdict.leaks.hardly": "各划分几乎没有相同的文本：{of}的 {texts.total:,} 行中最多 "
    "{texts.percent} 也在{into}里。",
    "verdict.leaks.share": "{of}的 {texts.percent} 也在{into}里",
    "verdict.leaks": "各划分有相同的文本：{shares}。请同时报告去重后的划分（`kbert split --by "
    "deduplicated`）。",
    "verdict.made.names": "{split}的 {known.percent}",
    "verdict.made.evidence": "（对只出现在一个划分中的名称，它认识{names}）",
    "verdict.made.group": "{name} {gold.percent}",
    "verdict.made": "某些类别的头实体几乎全都逐字等于这份数据的标注提及：{groups}；"
    "{held_out}中图谱认识的 {mentions.total:,} 处提及里，{mentions.percent} 属于这样的类别。"
    "图谱可能由标注制成{evidence}：请同时使用他人制作的图谱。",
    "verdict.made.not": "没有迹象表明图谱由这份数据制成：{heads.total:,} 个头实体中 "
    "{heads.percent} 是标注提及{evidence}。",
    "verdict.dictionary.nothing": "单纯用图谱作词典什么也标不出来。",
    "verdict.dictionary": "单纯用图谱作词典，在{held_out}上的 F1 即达 {f1:.1f}（精确率 "
    "{precision:.1f}，召回率 {recall:.1f}；未见名称上 {unseen:.1f}）。读图谱的模型必须胜过它，"
    "也要胜过再叠加词典的 BERT。",
    "verdict.majority": "总是猜训练集中最常见的标签，在{held_out}的 {share.total:,} 行中有 "
    "{share.percent} 是对的。",
    "verdict.noise": "{held_out}的 {share.total:,} 处匹配中，{share.percent} 是标注提及。",
    "verdict.noise.others": "其余的对此任务是知识噪声。",
    "verdict.ambiguity": "{held_out}的 {matched.total:,} 处匹配中，{matched.percent} "
    "的头实体其尾实体互不一致",
    "verdict.ambiguity.relation": "；{several.total:,} 个头实体中，{several.percent} "
    "在“{relation}”下有多个尾实体",
    "verdict.homonyms": "{held_out}的 {matched.total:,} 处匹配中，{matched.percent} "
    "的名称可指多个头实体，涉及有匹配的行的 {rows.percent}：{names}",
    "verdict.homonyms.name": "“{name}”（{heads}）",
    "verdict.homonyms.head": "{head}",
    "verdict.homonyms.more": "…",
    "verdict.homonyms.all": "它们的三元组按图谱顺序共用一处提及的名额；"
    "`--strategy context --one-sense` 只留最合适的那一个。",
    "verdict.conflicts.one": "有一段文本的标注不一致，涉及 {rows.total:,} 行中的 {rows.percent}："
    "没有模型能全部答对。",
    "verdict.conflicts": "有 {count:,} 段文本的标注不一致，涉及 {rows.total:,} 行中的 "
    "{rows.percent}：没有模型能全部答对。",
    "verdict.length": "{held_out}的输入平均 {tokens:.1f} 个词元，注入再增加 {mean:.1f} "
    "个（{added.percent}）",
    "verdict.length.over": "；{long.percent} 的输入超过 {limit} 个词元，{no_room.percent} "
    "的分支词元放不下",
    "verdict.length.cuts_none": "；长度上限 {limit} 不截断任何输入",
    "verdict.length.cuts_one": "；长度上限 {limit} 截断 1 个输入",
    "verdict.length.cuts": "；长度上限 {limit} 截断 {count} 个输入",
}
