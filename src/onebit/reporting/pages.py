"""The pieces of a report: one HTML file with tables and figures, and nothing loaded from elsewhere."""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from string import Template

from onebit.reporting.names import in_page
from onebit.reporting.style import FigureFile
from onebit.reporting.tables import filled

NOTHING = "–"
"""What a cell without anything holds."""


def page(title: str, body: str) -> str:
    """Return a whole page; the body is HTML, the title plain text."""
    return _PAGE.substitute(title=in_page(title), body=body)


def prose(text: str) -> str:
    r"""Return plain text as HTML in which no number is broken where its thousands are set apart.

    >>> prose("a < 5 000 000") == "a &lt; 5\N{NO-BREAK SPACE}000\N{NO-BREAK SPACE}000"
    True
    """
    return re.sub(r"(?<=\d) (?=\d{3}(?!\d))", "\N{NO-BREAK SPACE}", in_page(text))


def facts(listed: Mapping[str, str]) -> str:
    r"""Return names and values, plain text both, as a list; a value may have several lines.

    >>> facts({"Read": "rows: 3\nlabel: <y>"})
    '<dt>Read</dt><dd>rows: 3<br>label: &lt;y&gt;</dd>'
    """
    shown = {name: "<br>".join(map(prose, value.split("\n"))) for name, value in listed.items()}
    return "\n".join(f"<dt>{in_page(name)}</dt><dd>{value}</dd>" for name, value in shown.items())


def table(columns: Sequence[str], rows: Iterable[Sequence[tuple[str, str]]]) -> str:
    """Return a table in a box that scrolls, without columns of dashes; every cell is a CSS class and HTML."""
    rows = list(rows)
    shown = filled(columns, ([text for _, text in row] for row in rows), nothing=NOTHING)
    head = "".join(f'<th scope="col">{columns[at]}</th>' for at in shown)
    body = "\n".join(_table_row([row[at] for at in shown]) for row in rows)
    # Can be reached by keyboard, since it may have to be scrolled.
    return (
        f'<div class="scroll" tabindex="0">\n<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n'
        "</table>\n</div>"
    )


def _table_row(row: Iterable[tuple[str, str]]) -> str:
    return "<tr>" + "".join(f'<td class="{css}">{text}</td>' for css, text in row) + "</tr>"


def cells(texts: Sequence[str], classes: Sequence[str]) -> list[tuple[str, str]]:
    """Return the cells of a row from plain texts and their CSS classes; a dash stands for nothing.

    >>> cells(["a < b", ""], ["name", "number"])
    [('name', 'a &lt; b'), ('number', '–')]
    """
    return [(css, in_page(text) or NOTHING) for css, text in zip(classes, texts, strict=True)]


def figure(drawn: FigureFile) -> str:
    """Return a figure with its title and caption; the picture is inside."""
    # Inside the page, not beside it: a report that is mailed stays whole.
    image = base64.b64encode(drawn.svg.read_bytes()).decode("ascii")
    return (
        f'<figure id="{in_page(drawn.name)}">\n<h3>{in_page(drawn.title)}</h3>\n'
        f'<div class="card"><img alt="{in_page(drawn.title)}" src="data:image/svg+xml;base64,{image}"></div>\n'
        f"<figcaption>{prose(drawn.caption)}</figcaption>\n</figure>"
    )


# Two columns of colours, for light and for dark screens. Only tables are wider than a phone, in boxes that scroll.
_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #1d2125; --soft: #5b646d; --page: #fff; --line: #d9dee3; --band: #f4f6f8;
  --good: #00704f; --known: #00598c; --open: #a94400; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --soft: #a3acb5; --page: #15181b; --line: #363c42; --band: #1e2226;
    --good: #4fd0a8; --known: #73bdf0; --open: #ff9d5c; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .6rem; }
h2 { margin: 2.6rem 0 .6rem; padding-top: .8rem; border-top: 1px solid var(--line); }
h3 { margin: 1.6rem 0 .5rem; font-size: 1.05rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; line-height: 1.4; }
th, td { text-align: left; vertical-align: top; padding: .45rem .55rem; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
tbody tr:nth-child(even) { background: var(--band); }
.name { position: sticky; left: 0; background: var(--page); }
tr:nth-child(even) .name { background: var(--band); }
.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.name code { display: block; color: var(--soft); font-size: .78rem; }
.name { min-width: 12rem; }
.remark { min-width: 17rem; }
.agrees { color: var(--good); } .explained { color: var(--known); } .unexplained { color: var(--open); }
figure { margin: 0 0 2.4rem; max-width: 58rem; }
p, figcaption { max-width: 46rem; }
.card { background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: .6rem; text-align: center; }
.card img { max-width: 100%; height: auto; }
figcaption { margin-top: .5rem; }
pre { background: var(--band); padding: .8rem 1rem; border-radius: 8px; overflow-x: auto; white-space: pre-wrap; }
@media (max-width: 68rem) {
  th, td { padding: .4rem .3rem; }
  .name { min-width: 9rem; }
  .remark { min-width: 12rem; }
}
@media (max-width: 48rem) {
  body { padding-left: .8rem; padding-right: .8rem; }
  h1 { font-size: 1.4rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
  .card { padding: .3rem; }
  .name { min-width: 8rem; max-width: 8rem; overflow-wrap: anywhere; }
  .remark { min-width: 30rem; }
}
</style>
</head>
<body>
<h1>$title</h1>
$body</body>
</html>
""")
