"""Pairs whose answer turns on which sentence a word stands in, read with and without segments.

    python -m benchmarks.segments
    kbert experiment results/suites/segments.yaml
    python -m benchmarks.segments --read

The first command writes the data of ``results/suites/segments.yaml``. The last trains K-BERT as
that suite does, and reads the pairs of test with one part of it taken away after the other:
segments, positions, the visible matrix. The figures go to ``results/segments.json``.

Two sentences differ in one word: 小明想起了麻雀。 and 小明想起了鸟。 The second follows from the
first (1), and not the first from the second (0). Every pair stands there in both orders, so that
all its words are the same for both labels. The graph says what each thing is, (麻雀, 是, 鸟). The
words of dev and test stand in no sentence of train: what tells the label there is in which of the
two sentences the graph knows a name.
"""

import argparse
import random
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.common import machine, print_table
from kbert_core import KnowledgeGraph, Pipeline, Triple, load_graph
from kbert_core.kbert.visible import ABLATIONS, FULL
from kbert_core.knowledge.io.write import write_triples
from kbert_lab.data.labelled import Example, read_examples
from kbert_lab.data.splits import write_split
from kbert_lab.suites.results import write_json
from kbert_lab.suites.suite import read_suite, train_options
from kbert_lab.training.evaluate import evaluate
from kbert_lab.training.finetune import fit

RESULTS = Path(__file__).resolve().parents[1] / "results"
RESULT, SUITE = RESULTS / "segments.json", RESULTS / "suites" / "segments.yaml"
DATA, SHIPPED = Path("runs/segments"), "models/matching-zh"
THINGS = {  # what they are, and their names; by split
    "train": {
        "水果": "苹果 香蕉 葡萄 桃子 西瓜 荔枝 草莓 柚子",
        "家具": "桌子 椅子 沙发 书柜 茶几 衣柜 板凳 屏风",
        "乐器": "钢琴 笛子 二胡 古筝 吉他 圆号 竖琴 口琴",
        "衣服": "衬衫 裙子 毛衣 大衣 夹克 背心 旗袍 西装",
        "餐具": "筷子 勺子 盘子 叉子 碟子 饭碗 茶杯 汤匙",
        "昆虫": "蝴蝶 蜜蜂 蚂蚁 蜻蜓 甲虫 蚊子 苍蝇 瓢虫",
        "工具": "锤子 锯子 刷子 扳手 斧头 铲子 剪刀 钉子",
        "点心": "饼干 蛋糕 月饼 汤包 蛋挞 绿豆糕 年糕 汤圆",
        "玩具": "积木 风筝 陀螺 布娃娃 弹珠 拼图 跳绳 皮球",
        "电器": "冰箱 电视 空调 洗衣机 电扇 微波炉 吸尘器 台灯",
    },
    "dev": {
        "文具": "铅笔 橡皮 尺子 圆规 毛笔 订书机",
        "药材": "人参 枸杞 当归 黄芪 甘草 陈皮",
    },
    "test": {
        "鸟": "麻雀 燕子 大雁 鸽子 乌鸦 老鹰",
        "蔬菜": "萝卜 黄瓜 土豆 茄子 南瓜 芹菜",
        "花": "玫瑰 牡丹 荷花 百合 郁金香 茉莉",
        "饮料": "豆浆 可乐 酸梅汤 橙汁 奶茶 汽水",
        "首饰": "项链 戒指 耳环 手链 胸针 发夹",
    },
}
PEOPLE = ["妈妈", "爷爷", "老师", "邻居", "小明", "姐姐", "客人", "孩子"]
SAYING = (
    *("{who}昨天看见了{what}。", "{who}想起了{what}。", "{who}说这里有{what}。"),
    *("{who}拍了一张{what}的照片。", "{who}找不到{what}。", "{who}在信里提到了{what}。"),
    *("{who}从没画过{what}。", "{who}问哪里有{what}。"),
)
PAIRS = {"train": 500, "dev": 60, "test": 150}  # each in both orders
FOLLOWS, NOT = "1", "0"
WAYS = ("full", "no-segments", "hard-positions", "everything-visible", "both")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=DATA, metavar="DIR")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn; default: 0")
    parser.add_argument("--read", action="store_true", help="score models on these data instead")
    args = parser.parse_args()
    if args.read:
        rows = read(args.output)
        found = {"rows": rows, "metric": "accuracy on test, %", "pairs": 2 * PAIRS["test"]}
        found |= {SHIPPED: changed_answers(args.output), "machine": machine()}
        write_json(RESULT, found)
        print_table([["read", "accuracy"], *([row["read"], f"{row['mean']}"] for row in rows)])
        return
    drawn = random.Random(args.seed)
    write_split(args.output, {split: list(pairs(split, drawn)) for split in THINGS})
    write_triples(things(), args.output / "things.spo")
    for split, count in PAIRS.items():
        print(f"{split}: {count} pairs, each in both orders")


def things() -> KnowledgeGraph:
    """What every thing is."""
    kinds = {kind: names.split() for of in THINGS.values() for kind, names in of.items()}
    return KnowledgeGraph(Triple(name, "是", kind) for kind, own in kinds.items() for name in own)


def pairs(split: str, drawn: random.Random) -> list[Example]:
    """The pairs of a split, drawn without repeating one, in both orders."""
    every = [
        (who, saying, name, kind)
        for kind, names in THINGS[split].items()
        for name in names.split()
        for who in PEOPLE
        for saying in SAYING
    ]
    made: list[Example] = []
    for who, saying, *words in drawn.sample(every, PAIRS[split]):
        one, other = (saying.format(who=who, what=what) for what in words)
        made += [Example((one, other), FOLLOWS), Example((other, one), NOT)]
    drawn.shuffle(made)
    return made


def read(data: Path) -> list[dict[str, Any]]:
    """Train the suite's K-BERT, and score each seed's model on test with parts taken away."""
    suite = read_suite(SUITE)
    run = next(run for run in suite.runs if run.knowledge == "graph" and run.ablation == FULL)
    test, graph = read_examples(data / "test.tsv", "pair"), load_graph(data / "things.spo")
    files = {"data": str(data), "kg": (str(data / "things.spo"),)}
    scores: dict[str, list[float]] = {way: [] for way in WAYS}
    for seed in run.seeds:
        files |= {"output": str(data / f"seed{seed}"), "encoder": suite.resolved(run.encoder)}
        model = fit(train_options(suite, run, seed=seed, **files)).pipeline
        for way, own in scores.items():
            found = evaluate(model, test, graph, ablation=ABLATIONS[way])
            own.append(round(100 * found["accuracy"], 1))
    return [{"read": way, "mean": round(mean(own), 1), "seeds": own} for way, own in scores.items()]


def changed_answers(data: Path) -> int:
    """Count the pairs of test that the shipped model answers differently without segments."""
    model = Pipeline.from_pretrained(SHIPPED, device="cpu")
    graph = load_graph(data / "things.spo")
    texts = [example.sentences for example in read_examples(data / "test.tsv", "pair")]
    ways = (model.predict(texts, graph=graph, ablation=way) for way in WAYS[:2])
    return sum(one.label != other.label for one, other in zip(*ways, strict=True))


if __name__ == "__main__":
    main()
