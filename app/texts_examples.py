"""What the examples are called, in every language."""

from app.examples import EXAMPLES

ENGLISH = {f"example.{example.key}": example.name for example in EXAMPLES}

CHINESE = {
    "example.gastroscopy": "胃镜：三元组说是检查",
    "example.epilepsy": "癫痫：三元组说是疾病",
    "example.clinical": "患者……：较长的临床句子",
    "example.aspirin": "阿司匹林与糖尿病（英文）：化学物质与疾病",
    "example.hotel": "冷淡：一条酒店评论",
    "example.hospital": "医院、医生：是同一个问题吗？",
    "example.answer": "糖尿病：这句话是答案吗？",
    "example.mask": "阑尾炎……[MASK]：填一个字",
    "example.bank": "bank（英文）：是哪个义项？",
    "example.figure2": "论文图 2，以词为词元",
    "example.figure2_minilm": "论文图 2，由英文编码器读取",
    "example.aspirin_minilm": "英文：阿司匹林与糖尿病",
}
