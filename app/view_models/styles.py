"""The style sheet of everything drawn as HTML. Roles are Okabe–Ito's."""

TRUNK = "#0072B2"
BRANCH = "#E69F00"
LINK = "#009E73"
CHANGED = "#CC79A7"
ENTITY_TINTS = ("#009E73", "#56B4E9", "#D55E00", "#F0E442", "#8A7FBF", "#7F8C8D")
SHADES = "\n".join(
    f".kb-tok.kb-moved-{shade} {{ background: color-mix(in srgb, {CHANGED} {9 * shade}%, "
    "transparent); }"
    for shade in range(11)
)

CSS = f"""
<style>
[data-testid="stMainBlockContainer"] {{ padding-top: 3.75rem; padding-bottom: 3rem; }}
@media (min-width: 1051px) {{
  [data-testid="stMainBlockContainer"] {{ padding-left: 2.5rem; padding-right: 2.5rem; }}
}}
.kb-tree, .kb-gone, .kb-legend, .kb-ner, .kb-table, .kb-fill {{
  --trunk: color-mix(in srgb, {TRUNK} 82%, currentColor);
  --branch: color-mix(in srgb, {BRANCH} 85%, currentColor);
  --changed: color-mix(in srgb, {CHANGED} 88%, currentColor);
  --rule: color-mix(in srgb, currentColor 20%, transparent);
  --faint: color-mix(in srgb, currentColor 62%, transparent);
  font-family: "Source Sans", "Noto Sans", "Noto Sans CJK SC", "PingFang SC",
    "Microsoft YaHei", sans-serif;
}}
.kb-legend {{ display: flex; flex-wrap: wrap; gap: .15rem 1.1rem; font-size: .8rem;
  color: var(--faint); margin: 0 0 .4rem; align-items: center; }}
.kb-key {{ display: inline-flex; align-items: center; gap: .4rem; white-space: nowrap; }}
.kb-key > i {{ width: .95rem; height: .8rem; border-radius: 3px; display: inline-block;
  box-sizing: border-box; }}
.kb-k-trunk {{ background: color-mix(in srgb, {TRUNK} 13%, transparent);
  border-bottom: 3px solid {TRUNK}; }}
.kb-k-mention {{ background: color-mix(in srgb, {TRUNK} 34%, transparent);
  border-bottom: 3px solid {TRUNK}; }}
.kb-k-branch {{ background: color-mix(in srgb, {BRANCH} 26%, transparent);
  border-left: 3px solid {BRANCH}; }}
.kb-k-added {{ border: 2px solid {CHANGED}; }}
.kb-k-removed {{ border: 2px dashed {CHANGED}; }}
.kb-k-cut {{ background: linear-gradient(to bottom, transparent 44%, currentColor 44%,
  currentColor 56%, transparent 56%); }}

.kb-m-0 {{ background: light-dark(#8DBCD8, #347096); }} .kb-m-1 {{ background: {BRANCH}; }}
.kb-m-2 {{ background: {LINK}; }} .kb-m-3 {{ background: #98A2AA; }}
.kb-m-4 {{ background: #D55E00; }} .kb-m-5 {{ background: {TRUNK}; }}
.kb-m-6 {{ background: color-mix(in srgb, currentColor 22%, transparent); }}
.kb-m-7, .kb-m-9 {{ background: light-dark(#FADECB, #4A2C1E); }}
.kb-m-8, .kb-m-10 {{ background: light-dark(#F3E96B, #7A7318); }}
.kb-m-253 {{ background: color-mix(in srgb, {CHANGED} 20%, transparent); }}
.kb-m-254 {{ background: color-mix(in srgb, {CHANGED} 58%, transparent); }}
.kb-m-255 {{ background: repeating-linear-gradient(135deg, transparent 0 3px,
  var(--rule) 3px 4px); border: 1px solid var(--rule); }}

.kb-tree {{ display: flex; flex-wrap: wrap; align-items: flex-start; row-gap: .9rem;
  line-height: 1.25; max-height: 58rem; overflow-y: auto; padding: 2px 2px .4rem; }}
.kb-trunk-row {{ display: flex; gap: .5rem; width: 100%; align-items: flex-start; }}
.kb-letter {{ flex: none; width: 1.35rem; line-height: 1.35rem; margin-top: .75rem;
  text-align: center; font-size: .8rem; border: 1px solid var(--rule); border-radius: 4px; }}
.kb-one-trunk {{ display: flex; flex-wrap: wrap; align-items: flex-start; row-gap: .9rem;
  min-width: 0; }}
.kb-node {{ display: flex; flex-direction: column; }}
.kb-toks {{ display: flex; align-items: stretch; min-height: 2.95rem; box-sizing: border-box;
  border-bottom: 3px solid var(--trunk); padding: 0 2px 3px; gap: 3px; }}
.kb-tok {{ display: inline-flex; flex-direction: column; align-items: center;
  min-width: 1.75rem; box-sizing: border-box; border-radius: 4px; padding: 2px 5px 1px; }}
.kb-text {{ font-size: 1.02rem; line-height: 1.4rem; white-space: pre; }}
.kb-trunk {{ background: color-mix(in srgb, {TRUNK} 9%, transparent); }}
.kb-mention > .kb-toks .kb-tok {{ background: color-mix(in srgb, {TRUNK} 26%, transparent); }}
.kb-mention > .kb-toks .kb-text {{ font-weight: 600; }}
.kb-special {{ outline: 1px dashed var(--rule); outline-offset: -1px; }}
.kb-special .kb-text {{ font-size: .8rem; color: var(--faint); }}
.kb-pos {{ display: inline-flex; gap: 3px; align-items: baseline; font-size: .72rem;
  font-variant-numeric: tabular-nums; }}
.kb-legend .kb-pos {{ font-size: .8rem; }}
.kb-legend .kb-pos b {{ color: inherit; }}
.kb-pos s {{ width: 1px; height: .6rem; background: var(--rule); align-self: center; }}
.kb-pos b {{ font-weight: 400; color: var(--faint); }}
.kb-pos u {{ text-decoration: none; font-weight: 600; font-size: .66rem;
  border: 1px solid var(--rule); border-radius: 3px; padding: 0 2px; margin-left: 1px; }}
.kb-soft-used b.kb-soft, .kb-hard-used b.kb-hard {{
  font-weight: 700; color: color-mix(in srgb, #D55E00 76%, light-dark(#000, #FFF)); }}
.kb-seg1 u {{ background: color-mix(in srgb, {LINK} 30%, transparent); }}
.kb-seg0 u {{ background: color-mix(in srgb, #56B4E9 30%, transparent); }}
.kb-branches {{ display: flex; flex-direction: column; align-items: flex-start; gap: 5px;
  padding: 6px 10px 0 0; }}
.kb-free > .kb-branches {{ width: 0; white-space: nowrap; }}
.kb-branch {{ position: relative; display: flex; align-items: center; gap: 3px;
  margin-left: 15px; padding: 1px; border-radius: 5px; }}
.kb-gone {{ position: absolute; display: flex; gap: 3px; padding: 1px; line-height: 1.25;
  pointer-events: none; }}
.kb-branch::before {{ content: ""; position: absolute; left: -10px; top: -9px; width: 9px;
  height: calc(50% + 9px); border-left: 2px solid var(--branch);
  border-bottom: 2px solid var(--branch); border-bottom-left-radius: 6px; }}
.kb-branch + .kb-branch::before {{ top: calc(-50% - 6px); height: calc(100% + 6px); }}
.kb-branch-tok {{ background: color-mix(in srgb, {BRANCH} 22%, transparent); }}
.kb-added {{ outline: 2px solid var(--changed); outline-offset: 1px; margin-top: 2px; }}
.kb-removed {{ outline: 2px dashed var(--changed); outline-offset: 1px; margin-top: 2px; }}
.kb-removed .kb-tok {{ background: none; opacity: .7; }}
.kb-removed .kb-text, .kb-cut .kb-text {{ text-decoration: line-through; }}
.kb-cut .kb-tok {{ background: none; border: 1px dashed var(--rule); }}
.kb-switch {{ cursor: pointer; font-size: .72rem; line-height: 1; padding: .35rem; margin-left: 1px;
  border-radius: 999px; color: var(--faint); opacity: .55; }}
.kb-branch:hover .kb-switch, .kb-switch:focus-visible {{ opacity: 1; }}
.kb-switch:hover {{ background: color-mix(in srgb, currentColor 14%, transparent); }}
.kb-switch:focus-visible {{ outline: 2px solid {TRUNK}; }}
.kb-field {{ display: inline-flex; gap: 3px; position: relative; }}
.kb-glossed .kb-toks {{ align-items: flex-start; min-height: 3.7rem; }}
.kb-glossed .kb-field:has(.kb-gloss) {{ padding-bottom: .75rem; }}
.kb-gloss {{ position: absolute; bottom: -.1rem; left: 2px; max-width: 100%; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; font-style: normal; font-size: .68rem;
  line-height: .85rem; color: var(--faint); }}
.kb-field:not(:has(~ .kb-field)) > .kb-gloss {{ max-width: calc(100% + 4.5rem); }}
.kb-mention:has(+ .kb-mention) .kb-toks .kb-gloss {{ max-width: 100%; }}
.kb-switch[data-edit] {{ opacity: 0; }}
@media (hover: none) {{ .kb-switch[data-edit] {{ opacity: .55; }} }}
.kb-tail {{ position: absolute; z-index: 20; display: flex; flex-direction: column;
  min-width: 9rem; max-width: 24rem; font-size: .92rem; background: light-dark(#FFF, #1B2229);
  border: 1.5px solid {BRANCH}; border-radius: 6px; box-shadow: 0 4px 14px rgb(0 0 0 / 22%); }}
.kb-tail input {{ font: inherit; font-size: 1.02rem; color: inherit; background: none; border: 0;
  outline: none; padding: .42rem .6rem; width: 100%; box-sizing: border-box; }}
.kb-tail ul {{ list-style: none; margin: 0; padding: 0 0 .25rem;
  border: 0 solid color-mix(in srgb, currentColor 20%, transparent); border-top-width: 1px; }}
.kb-tail.kb-up {{ flex-direction: column-reverse; }}
.kb-up ul {{ border-width: 0 0 1px; padding: .25rem 0 0; }}
.kb-tail li {{ display: flex; justify-content: space-between; align-items: baseline; gap: 1.2rem;
  margin: 0; padding: .1rem .6rem; cursor: pointer; white-space: nowrap; line-height: 1.45; }}
.kb-tail li > span {{ overflow: hidden; text-overflow: ellipsis; }}
.kb-tail li:hover, .kb-tail li[aria-selected=true] {{
  background: color-mix(in srgb, {BRANCH} 24%, transparent); }}
.kb-tail li i {{ font-style: normal; font-size: .82rem; opacity: .66; margin-left: .5rem; }}
.kb-tail small {{ font-size: .82rem; opacity: .66; }}
.kb-tail small.kb-turns {{ opacity: 1; font-weight: 600;
  color: color-mix(in srgb, {CHANGED} 62%, currentColor); }}
div:has(> .st-key-lab_tails) {{ position: absolute; }}
.kb-flag {{ color: var(--changed); font-weight: 700; padding: 0 2px 0 4px; }}
.kb-note {{ font-size: .75rem; color: var(--faint); padding-left: 4px; }}

.kb-tok[data-token] {{ cursor: pointer; }}
.kb-tok[data-token]:hover {{ box-shadow: inset 0 0 0 1.5px var(--faint); }}
.kb-tok:focus-visible {{ outline: 2px solid {TRUNK}; outline-offset: 1px; }}
.kb-tree-root {{ position: relative; }}
.kb-arcs {{ position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible;
  pointer-events: none; }}
.kb-arcs path {{ fill: none; stroke: {TRUNK}; stroke-linecap: round; opacity: .6; }}
.kb-tok {{ transition: opacity .12s; }}
.kb-tok.kb-dim {{ opacity: .3; }}
.kb-tok.kb-hover {{ box-shadow: inset 0 0 0 1.5px currentColor; }}
.kb-hover-branch {{ background: color-mix(in srgb, {BRANCH} 30%, transparent); }}
.kb-tree .kb-chosen {{ box-shadow: inset 0 0 0 2.5px currentColor; }}
.kb-tree .kb-target {{ outline: 2.5px dashed currentColor; outline-offset: -2.5px; }}
.kb-tree .kb-tok.kb-unseen, .kb-mention > .kb-toks .kb-tok.kb-unseen {{ background: none; }}
.kb-tree .kb-unseen .kb-text {{ color: var(--faint); font-weight: 400; }}
.kb-picked {{ background: color-mix(in srgb, {BRANCH} 34%, transparent);
  box-shadow: 0 0 0 2px var(--branch); }}

{SHADES}
[class*="st-key-lab_columns_"] .kb-tree {{ max-height: 26rem; }}
.kb-string {{ font-size: .95rem; line-height: 1.6; overflow-wrap: anywhere; max-height: 14rem;
  overflow: auto; margin: .2rem 0; }}
.kb-column {{ white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }}
[class*="st-key-lab_columns_"] .kb-ner:has(.kb-side) {{ gap: .1rem .3rem;
  grid-template-columns: 2.9rem minmax(0, 1fr); }}
[class*="st-key-lab_columns_"] .kb-char {{ min-width: 1.05rem; }}
.kb-column b {{ font-size: 1.1rem; }}
.kb-column span {{ font-size: .8rem; opacity: .65; margin-left: .5rem; }}
.kb-strip .kb-tok {{ min-width: 1.4rem; padding: 2px 3px; }}
.kb-ner:not(:has(.kb-side)) {{ grid-template-columns: minmax(0, 1fr); }}
.kb-ner {{ display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .35rem .9rem;
  align-items: start; padding: 3px 3px .1rem; }}
.kb-side {{ font-size: .82rem; color: var(--faint); padding-top: .38rem; text-align: right;
  max-width: 8.5rem; }}
.kb-side b {{ display: block; color: inherit; font-weight: 600; font-size: .9rem; }}
.kb-line {{ display: flex; flex-wrap: wrap; align-items: flex-start; row-gap: .55rem;
  min-height: 4.5rem; max-height: 17rem; overflow-y: auto; padding: 4px; box-sizing: border-box; }}
.kb-scroll {{ max-height: 26rem; overflow: auto; }}
.kb-scroll.kb-linked {{ max-height: 48rem; }}
.kb-wide-table td {{ min-width: 3.4rem; }} .kb-wide-table td:first-child {{ min-width: 9rem; }}
.kb-table td.kb-wide {{ width: 45%; }}
.kb-char {{ display: inline-flex; flex-direction: column; align-items: center;
  min-width: 1.28rem; padding-top: 3px; }}
.kb-char.kb-latin {{ min-width: 0; }}
.kb-char.kb-followed > .kb-text {{ box-shadow: 0 3px 0 0 var(--branch); }}
.kb-char.kb-chosen > .kb-text {{ box-shadow: 0 0 0 2px currentColor; border-radius: 2px; }}
.kb-gap {{ width: .32rem; flex: none; }}
.kb-char .kb-text {{ font-size: 1.05rem; line-height: 1.4rem; }}
.kb-bio {{ font-size: .66rem; line-height: .9rem; color: var(--faint); }}
.kb-span {{ --tint: {ENTITY_TINTS[5]}; display: inline-flex; flex-direction: column;
  margin: 0 3px; border-radius: 6px; padding: 0 3px 2px;
  background: color-mix(in srgb, var(--tint) 17%, transparent);
  border-bottom: 3px solid var(--tint); }}
.kb-span {{ max-width: 100%; box-sizing: border-box; }}
.kb-span > span:first-child {{ display: flex; flex-wrap: wrap; justify-content: center; }}
.kb-tag {{ font-size: .74rem; line-height: 1.05rem; text-align: center; white-space: nowrap;
  padding: 0 2px; }}
.kb-tag b {{ font-weight: 600; }}
.kb-ring {{ outline: 2.5px solid var(--changed); outline-offset: 1px; }}
.kb-lost {{ outline: 2.5px dashed var(--changed); outline-offset: 1px; }}
.kb-table {{ border-collapse: collapse; font-size: .88rem; margin: .3rem 0 .2rem; width: 100%; }}
.kb-table th {{ text-align: left; font-weight: 500; color: var(--faint); font-size: .8rem;
  border-bottom: 1px solid var(--rule); padding: .2rem .6rem .2rem .15rem; }}
.kb-table td {{ border-bottom: 1px solid color-mix(in srgb, currentColor 9%, transparent);
  padding: .26rem .6rem .26rem .15rem; vertical-align: middle; overflow-wrap: anywhere; }}
.kb-beside td[rowspan] {{ vertical-align: top; }}
.kb-table td.kb-num, .kb-table th.kb-num {{ text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }}
@media (max-width: 600px) {{
  .kb-table td:first-child {{ min-width: 4.9rem; }}
  .kb-table.kb-narrow td, .kb-table.kb-narrow th {{ padding-right: .7rem; }}
  .kb-table td.kb-wide {{ width: 25%; }}
}}
.kb-headline {{ font-size: 1.22rem; line-height: 1.5; font-weight: 600; }}
.st-key-learn_page {{ max-width: 68rem; margin: 0 auto; }}
.st-key-learn_lesson p {{ max-width: 56rem; }}
.kb-tree + .kb-ner {{ margin-top: 1.1rem; }}
.kb-no-positions .kb-pos {{ display: none; }}
.kb-no-positions .kb-toks {{ min-height: 1.9rem; }}
.kb-no-positions .kb-glossed .kb-toks {{ min-height: 2.6rem; }}
.kb-words {{ display: flex; flex-wrap: wrap; gap: .35rem; margin: .1rem 0 .7rem; }}
.kb-word {{ background: color-mix(in srgb, {TRUNK} 12%, transparent); border-radius: 4px;
  padding: .1rem .5rem; font-size: 1.02rem; }}
.kb-word.kb-of-branch {{ background: color-mix(in srgb, {BRANCH} 26%, transparent); }}
.kb-table.kb-narrow {{ width: auto; }}
.kb-table.kb-narrow td, .kb-table.kb-narrow th {{ padding-right: 1.4rem; }}
.kb-faint td {{ color: var(--faint); }}
.kb-badge {{ display: inline-block; border: 2px solid var(--changed); border-radius: 999px;
  padding: 0 .5rem; font-size: .76rem; line-height: 1.15rem; white-space: nowrap; }}
.kb-twins td, .kb-twins th {{ width: 27%; }}
.kb-twins.kb-four td, .kb-twins.kb-four th {{ width: 21%; min-width: 5.5rem; }}
.kb-twins td:first-child, .kb-twins th:first-child {{ width: auto; min-width: 4rem; }}
.kb-twins th {{ vertical-align: top; color: inherit; }}
.kb-twins .kb-under {{ font-weight: 400; font-size: .74rem; color: var(--faint);
  overflow-wrap: anywhere; }}
.kb-delta {{ color: var(--faint); font-size: .8rem; font-variant-numeric: tabular-nums;
  white-space: nowrap; }}
.kb-bar {{ display: inline-block; height: .62rem; border-radius: 2px; background: {TRUNK};
  vertical-align: middle; min-width: 1px; }}
.kb-bar.kb-was {{ background: color-mix(in srgb, currentColor 34%, transparent); height: .4rem; }}
.kb-bars {{ display: flex; flex-direction: column; gap: 2px; min-width: 7rem; }}

.kb-flip {{ display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; align-items: center;
  justify-content: space-between; font-size: .92rem; --changed: {CHANGED};
  --faint: color-mix(in srgb, currentColor 62%, transparent); }}
.kb-flip > div {{ overflow-wrap: anywhere; }}
[class*="st-key-explain_line_"] {{ padding-bottom: .45rem;
  border-bottom: 1px solid color-mix(in srgb, currentColor 12%, transparent); }}
[class*="st-key-lab_head"] {{ min-height: 2.6rem; }}
.st-key-lab_prediction_box:not(:has(h3)) {{ min-height: 15rem; }}
.st-key-lab_tree_box {{ min-height: 19rem; }}
.st-key-lab_tree_box:has(.kb-glossed) {{ min-height: 22rem; }}
[class*="st-key-lab_head"] [data-testid="stHeading"] h3 {{ padding: .2rem 0; }}
@media (max-width: 1050px) {{
  .st-key-lab_top > div > [data-testid="stHorizontalBlock"],
  .st-key-lab_top > [data-testid="stHorizontalBlock"],
  .st-key-lab_panels > div > [data-testid="stHorizontalBlock"],
  .st-key-lab_panels > [data-testid="stHorizontalBlock"] {{ flex-direction: column; }}
  .st-key-lab_top > [data-testid="stHorizontalBlock"] > [data-testid="stColumn"],
  .st-key-lab_top > div > [data-testid="stHorizontalBlock"] > [data-testid="stColumn"],
  .st-key-lab_panels [data-testid="stHorizontalBlock"] > [data-testid="stColumn"] {{
    width: 100%; min-width: 100%; flex: 1 1 100%; }}
}}
</style>
"""
