"""The style sheet of everything drawn as HTML. Roles are Okabe–Ito's."""

TRUNK = "#0072B2"
BRANCH = "#E69F00"
LINK = "#009E73"
CHANGED = "#CC79A7"
ENTITY_TINTS = ("#009E73", "#56B4E9", "#D55E00", "#F0E442", "#8A7FBF", "#7F8C8D")

CSS = f"""
<style>
[data-testid="stMainBlockContainer"] {{ padding-top: 4.2rem; padding-bottom: 3rem; }}
.kb-tree, .kb-legend, .kb-ner, .kb-table, .kb-fill {{
  --trunk: color-mix(in srgb, {TRUNK} 82%, currentColor);
  --branch: color-mix(in srgb, {BRANCH} 85%, currentColor);
  --changed: color-mix(in srgb, {CHANGED} 88%, currentColor);
  --rule: color-mix(in srgb, currentColor 20%, transparent);
  --faint: color-mix(in srgb, currentColor 62%, transparent);
  font-family: "Source Sans", "Noto Sans", "Noto Sans CJK SC", "PingFang SC",
    "Microsoft YaHei", sans-serif;
}}
.kb-legend {{ display: flex; flex-wrap: wrap; gap: .15rem 1.1rem; font-size: .8rem;
  color: var(--faint); margin: 0 0 .55rem; align-items: center; }}
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
.kb-m-253 {{ background: color-mix(in srgb, {CHANGED} 30%, transparent); }}
.kb-m-254 {{ background: {CHANGED}; }}
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
.kb-mention > .kb-toks > .kb-tok {{ background: color-mix(in srgb, {TRUNK} 26%, transparent); }}
.kb-mention > .kb-toks .kb-text {{ font-weight: 600; }}
.kb-special {{ outline: 1px dashed var(--rule); outline-offset: -1px; }}
.kb-special .kb-text {{ font-size: .8rem; color: var(--faint); }}
.kb-pos {{ display: inline-flex; gap: 3px; align-items: baseline; font-size: .72rem;
  font-variant-numeric: tabular-nums; }}
.kb-legend .kb-pos {{ font-size: .8rem; }}
.kb-pos s {{ width: 1px; height: .6rem; background: var(--rule); align-self: center; }}
.kb-pos b {{ font-weight: 400; color: var(--faint); }}
.kb-pos u {{ text-decoration: none; font-weight: 600; font-size: .66rem;
  border: 1px solid var(--rule); border-radius: 3px; padding: 0 2px; margin-left: 1px; }}
.kb-soft-used b.kb-soft, .kb-hard-used b.kb-hard {{
  font-weight: 700; color: color-mix(in srgb, #D55E00 88%, currentColor); }}
.kb-seg1 u {{ background: color-mix(in srgb, {LINK} 30%, transparent); }}
.kb-seg0 u {{ background: color-mix(in srgb, #56B4E9 30%, transparent); }}
.kb-branches {{ display: flex; flex-direction: column; align-items: flex-start; gap: 5px;
  padding: 6px 10px 0 0; }}
.kb-branch {{ position: relative; display: flex; align-items: center; gap: 3px;
  margin-left: 15px; padding: 1px; border-radius: 5px; }}
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
.kb-flag {{ color: var(--changed); font-weight: 700; padding: 0 2px 0 4px; }}
.kb-note {{ font-size: .75rem; color: var(--faint); padding-left: 4px; }}

.kb-ner {{ display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .6rem .9rem;
  align-items: start; padding: 3px 3px .3rem; }}
.kb-side {{ font-size: .82rem; color: var(--faint); padding-top: .38rem; text-align: right;
  max-width: 8.5rem; }}
.kb-side b {{ display: block; color: inherit; font-weight: 600; font-size: .9rem; }}
.kb-line {{ display: flex; flex-wrap: wrap; align-items: flex-start; row-gap: .55rem;
  max-height: 17rem; overflow-y: auto; padding: 4px; }}
.kb-scroll {{ max-height: 26rem; overflow-y: auto; }}
.kb-table td.kb-wide {{ width: 45%; }}
.kb-char {{ display: inline-flex; flex-direction: column; align-items: center;
  min-width: 1.28rem; padding-top: 3px; }}
.kb-char.kb-latin {{ min-width: 0; }}
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
.kb-table td.kb-num, .kb-table th.kb-num {{ text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }}
.kb-audit td.kb-under {{ padding-left: 1.1rem; color: var(--faint); }}
.kb-audit th.kb-num {{ white-space: normal; }}
.kb-audit td {{ overflow-wrap: break-word; }}
.kb-headline {{ font-size: 1.22rem; line-height: 1.5; font-weight: 600; }}
.kb-badge {{ display: inline-block; border: 2px solid var(--changed); border-radius: 999px;
  padding: 0 .5rem; font-size: .76rem; line-height: 1.15rem; white-space: nowrap; }}
.kb-twins td, .kb-twins th {{ width: 27%; }}
.kb-twins td:first-child, .kb-twins th:first-child {{ width: auto; }}
.kb-twins th {{ vertical-align: top; color: inherit; }}
.kb-twins .kb-under {{ font-weight: 400; font-size: .74rem; color: var(--faint);
  overflow-wrap: anywhere; }}
.kb-delta {{ color: var(--faint); font-size: .8rem; font-variant-numeric: tabular-nums;
  white-space: nowrap; }}
.kb-bar {{ display: inline-block; height: .62rem; border-radius: 2px; background: {TRUNK};
  vertical-align: middle; min-width: 1px; }}
.kb-bar.kb-was {{ background: color-mix(in srgb, currentColor 34%, transparent); height: .4rem; }}
.kb-bars {{ display: flex; flex-direction: column; gap: 2px; min-width: 7rem; }}
[class*="st-key-lab_head"] {{ min-height: 2.6rem; }}
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
