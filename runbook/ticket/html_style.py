"""The style sheet of the HTML ticket: light and dark by the reader's setting, light on paper. No fonts are fetched.

Invariant: every ink on its background has a contrast of at least 4.5:1 (a test computes it).
"""

from __future__ import annotations

LIGHT = {
    "back": "#fafbfc",
    "panel": "#eef1f5",
    "line": "#cfd6df",
    "text": "#1b2028",
    "dim": "#545e6c",
    "accent": "#1556b8",
    "good": "#1e6b2b",
    "bad": "#b3202b",
    "warn": "#865400",
    "c3": "#7a3aa8",
    "c4": "#545e6c",
    "c5": "#1b2028",
}
DARK = {
    "back": "#12161d",
    "panel": "#1d232e",
    "line": "#333b49",
    "text": "#dde3ec",
    "dim": "#98a2b2",
    "accent": "#7fb4ff",
    "good": "#8fd08a",
    "bad": "#ff8085",
    "warn": "#e8b765",
    "c3": "#cfa0f0",
    "c4": "#98a2b2",
    "c5": "#dde3ec",
}


def _colours(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())


STYLE = f"""
:root{{color-scheme:light dark;{_colours(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_colours(DARK)}}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--back);color:var(--text);font:15px/1.5 system-ui,"Noto Sans CJK SC",sans-serif}}
main{{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 4rem}}
h1{{font-size:1.5rem;line-height:1.25;margin:0 0 .5rem}}
h2{{font-size:1.1rem;margin:2.2rem 0 .6rem;padding-bottom:.2rem;border-bottom:1px solid var(--line)}}
h3{{font-size:1rem;margin:1.2rem 0 .4rem}}
p{{margin:.5rem 0}}
code,pre,.cells td{{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.88em}}
code,pre,td,li,p,h1,figcaption{{unicode-bidi:isolate;overflow-wrap:break-word}}
td .sign,td:last-child code{{white-space:nowrap}}
pre{{background:var(--panel);border-left:3px solid var(--line);margin:.5rem 0;padding:.5rem .75rem;
white-space:pre-wrap;overflow-wrap:anywhere}}
pre.quote{{border-color:var(--accent)}}
table{{border-collapse:collapse;margin:.6rem 0;max-width:100%}}
th,td{{text-align:left;vertical-align:top;padding:.25rem .7rem .25rem 0;border-bottom:1px solid var(--line)}}
th{{color:var(--dim);font-weight:600;font-size:.85em}}
blockquote{{margin:.6rem 0;padding-left:.8rem;border-left:3px solid var(--line)}}
summary{{cursor:pointer;color:var(--accent)}}
a{{color:var(--accent)}}
.quiet,.about{{color:var(--dim)}}
.good{{color:var(--good)}}.bad{{color:var(--bad)}}.warn{{color:var(--warn)}}.accent{{color:var(--accent)}}
.dim{{color:var(--dim)}}
s{{color:var(--dim)}}
figure{{margin:1rem 0}}
figcaption{{font-weight:600}}
.add{{color:var(--good)}}.del{{color:var(--bad)}}.hunk{{color:var(--dim)}}
svg.plot{{display:block;width:100%;max-width:46rem;height:auto}}
svg.sample{{width:34px;height:12px;vertical-align:middle}}
svg text{{fill:var(--dim);font:12px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}}
svg .rule{{stroke:var(--line);stroke-width:1}}
svg .axis{{stroke:var(--dim);stroke-width:1}}
svg .limit{{stroke:var(--bad);stroke-width:1.2;stroke-dasharray:6 4}}
svg .mark{{stroke:var(--text);stroke-width:1;stroke-dasharray:2 3}}
svg .curve{{fill:none;stroke-width:1.8;stroke-linejoin:round}}
svg text.bad{{fill:var(--bad)}}svg text.strong{{fill:var(--text);font-weight:bold}}
.c0{{--own:var(--accent)}}.c1{{--own:var(--warn);stroke-dasharray:8 3}}.c2{{--own:var(--good);stroke-dasharray:3 3}}
.c3{{--own:var(--c3);stroke-dasharray:10 3 2 3}}.c4{{--own:var(--c4);stroke-dasharray:1.5 3}}
.c5{{--own:var(--c5);stroke-dasharray:14 4}}
svg .curve{{stroke:var(--own)}}svg .dot{{fill:var(--own)}}svg text.letter{{fill:var(--own);font-weight:bold}}
span.letter{{color:var(--own);font-weight:bold}}
.legend{{list-style:none;margin:.3rem 0;padding:0;font-size:.9em}}
.cells{{border-collapse:separate;border-spacing:2px}}
.cells th{{border:0;padding:0 .4rem 0 0;font-weight:400}}
.cells thead th{{writing-mode:vertical-rl;padding:.2rem 0}}
.cells td{{border:0;padding:0 .3rem;text-align:center;background:var(--panel)}}
.wide{{overflow-x:auto}}
@media print{{
:root{{color-scheme:light;{_colours(LIGHT)}}}
body{{font-size:10.5pt;background:none}}main{{max-width:none;padding:0}}
h2,h3,figcaption,summary{{break-after:avoid}}figure,tr,pre,blockquote{{break-inside:avoid}}
details::details-content{{content-visibility:visible;display:block;height:auto}}
.wide{{overflow:visible}}
}}
"""
