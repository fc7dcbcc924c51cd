"""What an audit's verdict says, in every language: Jinja templates; the English is the core's."""

from kbert_core.experiments.verdict import english

ENGLISH = {f"verdict.{key}": text for key, text in english().items()}

CHINESE = {
    "verdict.headline": "{% if not matches %}图谱在{{ called(held_out) }}中什么也没认出："
    "用它的 K-BERT 读这些文本会与普通 BERT 一样。"
    "{% elif not warned %}清点的结果没有发现不利于实验之处：请比较用此图谱训练的模型、"
    "不用图谱的模型和用打乱的图谱的模型{{ '，并与单纯的词典对照' if ner }}。{% endif %}"
    "{% if 'leaks' in warned and 'room' in warned %}这一划分几乎显示不出知识的作用：既有泄漏，"
    "训练集又几乎见过每个名称。"
    "{% elif 'leaks' in warned %}这一划分上的分数会偏高：各划分之间有泄漏。"
    "{% elif 'room' in warned %}这一划分几乎没有给知识留下余地：训练集几乎见过每个名称。{% endif %}"
    "{% if 'made_from_data' in warned %}用此图谱得到的提高只能说明模型会读图谱，"
    "而不能说明独立的知识有用：图谱看起来像是由这些标注制成的。{% endif %}"
    "{% if 'coverage' in warned %}图谱对这些文本知道得太少，不能期望太多。{% endif %}",
    "verdict.missing": "这里没有{{ called(first) }}{% if second %}和{{ called(second) }}"
    "{% endif %}。以下针对{{ called(held_out) }}。",
    "verdict.size": "{{ called(held_out) }}只有 {{ rows }} 行：比例只能粗略参考。",
    "verdict.coverage": "{% if texts %}{{ called(held_out) }}中 {{ texts.percent }} "
    "的文本提到图谱的头实体，每段文本 {{ '%.1f' % per }} 个名称。"
    "所说的内容是否与标签有关，这里无法清点。"
    "{% else %}{{ called(held_out) }}的 {{ n(known.total) }} 处提及中，图谱按名称认识 "
    "{{ known.percent }}{% if most %}，最多的是 {{ most }}（{{ high.percent }}），最少的是 "
    "{{ least }}（{{ low.percent }}）{% endif %}"
    "{% if reached %}；其中 {{ reached.percent }} 能完整匹配，其余落在更长的匹配之内{% endif %}。"
    "{% endif %}",
    "verdict.room": "{{ called(held_out) }}的 {{ n(share.total) }} 处提及中，{{ share.percent }} "
    "的名称在训练集里没出现过{% if share.count %}，图谱认识其中的 {{ known.percent }}："
    "对模型是新的、而图谱认识的，最多占全部提及的 {{ new.percent }}{% endif %}。"
    "{% if level == 'warning' %}要看知识的作用，请按实体不相交的方式划分（`kbert split`）。"
    "{% elif level == 'note' %}训练集没说的，图谱也没说。{% endif %}",
    "verdict.leaks": "{% if not worst.texts.count %}各划分没有相同的文本。"
    "{% elif not leaks %}各划分几乎没有相同的文本：{{ called(worst.of) }}的 "
    "{{ n(worst.texts.total) }} 行中最多 {{ worst.texts.percent }} 也在{{ called(worst.into) }}里。"
    "{% else %}各划分有相同的文本："
    "{% for leak in leaks %}{{ called(leak.of) }}的 {{ leak.texts.percent }} "
    "也在{{ called(leak.into) }}里{{ '、' if not loop.last }}{% endfor %}"
    "。请同时报告去重后的划分（`kbert split --by deduplicated`）。{% endif %}",
    "verdict.made_from_data": "{% set evidence %}{% if names | length > 1 %}"
    "（对只出现在一个划分中的名称，它认识{% for split, known in names.items() %}"
    "{{ called(split) }}的 {{ known.percent }}{{ '、' if not loop.last }}{% endfor %}）"
    "{% endif %}{% endset %}"
    "{% if level == 'warning' %}某些类别的头实体几乎全都逐字等于这份数据的标注提及："
    "{% for group in groups %}{{ group.name }} {{ group.gold.percent }}"
    "{{ '、' if not loop.last }}{% endfor %}；{{ called(held_out) }}中图谱认识的 "
    "{{ n(mentions.total) }} 处提及里，{{ mentions.percent }} 属于这样的类别。"
    "图谱可能由标注制成{{ evidence }}：请同时使用他人制作的图谱。"
    "{% else %}没有迹象表明图谱由这份数据制成：{{ n(heads.total) }} 个头实体中 "
    "{{ heads.percent }} 是标注提及{{ evidence }}。{% endif %}",
    "verdict.dictionary": "{% if not predicted %}单纯用图谱作词典什么也标不出来。"
    "{% else %}单纯用图谱作词典，在{{ called(held_out) }}上的 F1 即达 {{ f1 }}（精确率 "
    "{{ precision }}，召回率 {{ recall }}；未见名称上 {{ unseen }}）。读图谱的模型必须胜过它，"
    "也要胜过再叠加词典的 BERT。{% endif %}",
    "verdict.majority": "总是猜训练集中最常见的标签，在{{ called(held_out) }}的 "
    "{{ n(share.total) }} 行中有 {{ share.percent }} 是对的。",
    "verdict.noise": "{{ called(held_out) }}的 {{ n(share.total) }} 处匹配中，{{ share.percent }} "
    "是标注提及。{% if level == 'note' %}其余的对此任务是知识噪声。{% endif %}",
    "verdict.ambiguity": "{{ called(held_out) }}的 {{ n(matched.total) }} 处匹配中，"
    "{{ matched.percent }} 的头实体其尾实体互不一致"
    "{% if relation %}；{{ n(several.total) }} 个头实体中，{{ several.percent }} "
    "在“{{ relation }}”下有多个尾实体{% endif %}。",
    "verdict.homonyms": "{{ called(held_out) }}的 {{ n(matched.total) }} 处匹配中，"
    "{{ matched.percent }} 的名称可指多个头实体，涉及有匹配的行的 {{ rows.percent }}："
    "{% for name, heads in names %}“{{ name }}”（{{ heads | join('、') }}）"
    "{{ '、' if not loop.last }}{% endfor %}。"
    "{% if level == 'note' and not one_sense %}它们的三元组按图谱顺序共用一处提及的名额；"
    "`--strategy context --one-sense` 只留最合适的那一个。{% endif %}",
    "verdict.conflicts": "有{{ '一' if count == 1 else ' ' + n(count) + ' ' }}段文本的标注不一致，"
    "涉及 {{ n(rows.total) }} 行中的 {{ rows.percent }}：没有模型能全部答对。",
    "verdict.length": "{{ called(held_out) }}的输入平均 {{ tokens }} 个词元，注入再增加 "
    "{{ mean }} 个（{{ added.percent }}）；{% if over %}{{ long.percent }} 的输入超过 {{ limit }} "
    "个词元，{{ no_room.percent }} 的分支词元放不下。"
    "{% else %}长度上限 {{ limit }} {% if not long.count %}不截断任何输入{% else %}截断 "
    "{{ long.count }} 个输入{% endif %}。{% endif %}",
}
