"""The pieces of a report: one HTML file with tables and figures, and nothing loaded from elsewhere."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from string import Template

from onebit.reporting.names import in_page
from onebit.reporting.style import FigureFile


def page(title: str, body: str) -> str:
    """Return a whole page; the body is HTML, the title plain text."""
    return _PAGE.substitute(title=in_page(title), body=body)


def facts(listed: Mapping[str, str]) -> str:
    """Return names and values, plain text both, as a list."""
    return "\n".join(f"<dt>{in_page(name)}</dt><dd>{in_page(value)}</dd>" for name, value in listed.items())


def table(columns: Sequence[str], rows: Iterable[Sequence[tuple[str, str]]]) -> str:
    """Return a table; every cell is a CSS class and HTML."""
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = "\n".join(_table_row(columns, row) for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _table_row(columns: Sequence[str], row: Sequence[tuple[str, str]]) -> str:
    pairs = zip(columns, row, strict=True)
    return (
        "<tr>" + "".join(f'<td class="{css}" data-name="{name}">{text}</td>' for name, (css, text) in pairs) + "</tr>"
    )


def cells(texts: Sequence[str], classes: Sequence[str]) -> list[tuple[str, str]]:
    """Return the cells of a row from plain texts and their CSS classes; a dash stands for nothing.

    >>> cells(["a < b", ""], ["name", "number"])
    [('name', 'a &lt; b'), ('number', '–')]
    """
    return [(css, in_page(text) or "–") for css, text in zip(classes, texts, strict=True)]


def figure(drawn: FigureFile) -> str:
    """Return a figure with its title and caption; the picture is inside."""
    # Inside the page, not beside it: a report that is mailed stays whole.
    image = base64.b64encode(drawn.svg.read_bytes()).decode("ascii")
    return (
        f'<figure id="{in_page(drawn.name)}">\n<h3>{in_page(drawn.title)}</h3>\n'
        f'<div class="card"><img alt="{in_page(drawn.title)}" src="data:image/svg+xml;base64,{image}"></div>\n'
        f"<figcaption>{in_page(drawn.caption)}</figcaption>\n</figure>"
    )


# Two columns of colours, for light and for dark screens; on a phone every row of a table becomes a card.
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
h3 { margin: 1.6rem 0 .5rem; font-size: 1.05rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; }
dt { color: var(--soft); }
dd { margin: 0; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; line-height: 1.4; }
th, td { text-align: left; vertical-align: top; padding: .45rem .55rem; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
tbody tr:nth-child(even) { background: var(--band); }
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
pre { background: var(--band); padding: .8rem 1rem; border-radius: 8px; overflow-x: auto; }
@media (max-width: 48rem) {
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td { display: grid; grid-template-columns: 8.5rem 1fr; gap: .6rem; border: 0; padding: .12rem .5rem; }
  td::before { content: attr(data-name); color: var(--soft); }
  td.name { display: block; font-weight: 600; }
  td.name::before { content: none; }
  .number { white-space: normal; }
  .name, .remark { min-width: 0; }
}
</style>
</head>
<body>
<h1>$title</h1>
$body</body>
</html>
""")
