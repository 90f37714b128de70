"""A report as one HTML file that loads nothing from elsewhere: a list of blocks, from top to bottom."""

import base64
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple, TypeAlias

from onebit.files import replace_file
from onebit.reporting.text import Cell, Table, in_page

_NOTHING = "–"  # in a cell that has no text


class Heading(NamedTuple):
    """A heading."""

    text: str
    level: int = 2


class Code(NamedTuple):
    """A command, or several lines of code."""

    text: str


class Link(NamedTuple):
    """A line that leads elsewhere."""

    text: str
    target: str


class FigureFile(NamedTuple):
    """A figure that has been drawn and saved."""

    name: str  # of its files, such as "figure_4a"
    title: str
    caption: str
    png: Path
    svg: Path


Block: TypeAlias = str | Heading | Code | Link | FigureFile | Table | Mapping[str, str]
"""A part of a page: a paragraph of plain text, or one of the others; a mapping is a list of names and values."""


def write_page(path: Path, title: str, blocks: Sequence[Block]) -> None:
    """Write a page; titles and texts are plain."""
    template = files("onebit.reporting").joinpath("page.html").read_text(encoding="utf-8")
    body = "\n".join(map(_html, blocks)) + "\n"
    replace_file(path, Template(template).substitute(title=in_page(title), body=body).encode())


def section(title: str, *blocks: Block) -> list[Block]:
    """Return blocks under a heading; nothing, if there are none."""
    return [Heading(title), *blocks] if blocks else []


def what_was_run(details: Mapping[str, str]) -> list[Block]:
    """Return the facts of a run, and the command that gives the same again, which is called "Command" in there."""
    facts = {**details, "Version": f"onebit {version('onebit')}"}
    command = facts.pop("Command")
    return [Heading("What was run"), facts, Heading("How to get it again"), Code(command)]


def prose(text: str) -> str:
    """Return plain text as HTML in which no number is broken where its thousands are set apart."""
    return re.sub(r"(?<=\d) (?=\d{3}(?!\d))", "\N{NO-BREAK SPACE}", in_page(text))


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{in_page(block.text)}</h{block.level}>"
    if isinstance(block, Code):
        return f"<pre><code>{in_page(block.text)}</code></pre>"
    if isinstance(block, Link):
        return f'<p><a href="{in_page(block.target)}">{in_page(block.text)}</a></p>'
    if isinstance(block, FigureFile):
        return _figure_html(block)
    if isinstance(block, Table):
        return table_html(block)
    if isinstance(block, Mapping):
        values = {name: "<br>".join(map(prose, value.split("\n"))) for name, value in block.items()}
        listed = "\n".join(f"<dt>{in_page(name)}</dt><dd>{value}</dd>" for name, value in values.items())
        return f"<dl>\n{listed}\n</dl>"
    return f"<p>{'<br>'.join(map(prose, block.split(chr(10))))}</p>"


def _figure_html(drawn: FigureFile) -> str:
    # Inside the page, not beside it: a report that is mailed stays whole.
    image = base64.b64encode(drawn.svg.read_bytes()).decode("ascii")
    return (
        f'<figure id="{in_page(drawn.name)}">\n<h3>{in_page(drawn.title)}</h3>\n'
        f'<div class="card"><img alt="{in_page(drawn.title)}" src="data:image/svg+xml;base64,{image}"></div>\n'
        f"<figcaption>{prose(drawn.caption)}</figcaption>\n</figure>"
    )


def table_html(table: Table) -> str:
    """Return a table in a box that scrolls, with its title above and its notes below."""
    columns = table.filled()
    title = f"<h3>{in_page(table.title)}</h3>\n" if table.title else ""
    head = "".join(f'<th scope="col">{in_page(heading)}</th>' for heading, _, _ in columns)
    rows = zip(*([_cell_html(style, cell) for cell in cells] for _, style, cells in columns), strict=True)
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    notes = f"\n<p>{'.<br>'.join(map(prose, table.notes))}.</p>" if table.notes else ""
    # Can be reached by keyboard, since it may have to be scrolled.
    inside = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f'{title}<div class="scroll" tabindex="0">\n{inside}\n</div>{notes}'


def _cell_html(style: str, cell: Cell) -> str:
    text = prose(cell.text) if style == "remark" else in_page(cell.text) or _NOTHING
    if style == "name":
        # Names of classes are long, and on a phone they had better break where a word begins.
        text = re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", text)
    if cell.link:
        text = f'<a href="{in_page(cell.link)}">{text}</a>'
    small = f" <small>{in_page(cell.small)}</small>" if cell.small else ""
    return f'<td class="{f"{style} {cell.kind}".strip()}">{text}{small}</td>'
