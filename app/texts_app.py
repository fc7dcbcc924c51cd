"""Texts of every page, in every language."""

ENGLISH = {
    "app.title": "K-BERT Lab",
    "app.language": "Language",
    "app.knowledge": "Knowledge",
    "app.more": "More",
    "text.list": ", ",
    "text.clauses": "; ",
    "text.and": " and ",
    "text.gap": " ",
    "text.end": ".",
    "text.named": "{name}: {value}",
}

CHINESE = {
    "app.title": "K-BERT Lab",
    "app.language": "语言",
    "app.knowledge": "知识",
    "app.more": "更多",
    "text.list": "、",
    "text.clauses": "；",
    "text.and": "和",
    "text.gap": "",
    "text.end": "。",
    "text.named": "{name}：{value}",
}
