"""A report as one HTML file that loads nothing from elsewhere: a list of blocks, from top to bottom."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple, TypeAlias

from onebit.files import replace_file
from onebit.reporting.text import Cell, Table, in_page

_NOTHING = "–"  # in a cell that has no text


class _Heading(NamedTuple):
    """A heading."""

    text: str


class _Code(NamedTuple):
    """A command, or several lines of code."""

    text: str


class Drawing(NamedTuple):
    """A figure that is to be drawn."""

    name: str  # of its files, such as "figure_4a"
    title: str
    caption: str
    draw: Callable[[], Any]  # called when its turn comes: a figure of matplotlib takes megabytes


_Block: TypeAlias = str | _Heading | _Code | Drawing | Table | Mapping[str, str]
"""A part of a page: a paragraph of plain text, or one of the others; a mapping is a list of names and values."""


def write_page(path: Path, title: str, blocks: Sequence[_Block], figures: Path | None = None) -> None:
    """Write a page; titles and texts are plain. Figures are saved in a folder too, by default ``figures`` beside it."""
    template = files("onebit.reporting").joinpath("page.html").read_text(encoding="utf-8")
    body = "\n".join(_html(block, figures or path.parent / "figures") for block in blocks) + "\n"
    replace_file(path, Template(template).substitute(title=in_page(title), body=body).encode())


def section(title: str, *blocks: _Block) -> list[_Block]:
    """Return blocks under a heading; nothing, if there are none."""
    return [_Heading(title), *blocks] if blocks else []


def what_was_run(details: Mapping[str, str]) -> list[_Block]:
    """Return the facts of a run; its command is left to `how_again`."""
    facts = {name: text for name, text in details.items() if name != "Command"}
    return [_Heading("What was run"), {**facts, "Version": f"onebit {version('onebit')}"}]


def how_again(details: Mapping[str, str]) -> list[_Block]:
    """Return the command that gives the same again, which is called "Command" among the facts."""
    return [_Heading("How to get it again"), _Code(details["Command"])]


def _prose(text: str) -> str:
    """Return plain text as HTML in which no number is broken where its thousands are set apart."""
    return re.sub(r"(?<=\d) (?=\d{3}(?!\d))", "\N{NO-BREAK SPACE}", in_page(text))


def _html(block: _Block, figures: Path) -> str:
    match block:
        case _Heading(text):
            return f"<h2>{in_page(text)}</h2>"
        case _Code(text):
            return f"<pre><code>{in_page(text)}</code></pre>"
        case Table():
            return _table_html(block)
        case Drawing(name, title, caption, draw):
            from onebit.reporting.figures import save  # needs matplotlib

            # Inside the page, not beside it: a report that is mailed stays whole.
            image = base64.b64encode(save(draw(), figures, name)[1].read_bytes()).decode("ascii")
            return (
                f'<figure id="{in_page(name)}">\n<h3>{in_page(title)}</h3>\n'
                f'<div class="card"><img alt="{in_page(title)}" src="data:image/svg+xml;base64,{image}"></div>\n'
                f"<figcaption>{_prose(caption)}</figcaption>\n</figure>"
            )
        case str():
            return f"<p>{'<br>'.join(map(_prose, block.split(chr(10))))}</p>"
    values = {name: "<br>".join(map(_prose, value.split("\n"))) for name, value in block.items()}
    listed = "\n".join(f"<dt>{in_page(name)}</dt><dd>{value}</dd>" for name, value in values.items())
    return f"<dl>\n{listed}\n</dl>"


def _table_html(table: Table) -> str:
    """Return a table in a box that scrolls, with its title above and its notes below."""

    def cell_html(style: str, cell: Cell) -> str:
        text = _prose(cell.text) if style == "remark" else in_page(cell.text) or _NOTHING
        if style == "name":
            # Names of classes are long, and on a phone they had better break where a word begins.
            text = re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", text)
        small = f" <small>{in_page(cell.small)}</small>" if cell.small else ""
        return f'<td class="{f"{style} {cell.kind}".strip()}">{text}{small}</td>'

    columns = table.filled()
    title = f"<h3>{in_page(table.title)}</h3>\n" if table.title else ""
    head = "".join(f'<th scope="col">{in_page(heading)}</th>' for heading, _, _ in columns)
    rows = zip(*([cell_html(style, cell) for cell in cells] for _, style, cells in columns), strict=True)
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    notes = f"\n<p>{'.<br>'.join(map(_prose, table.notes))}.</p>" if table.notes else ""
    # Can be reached by keyboard, since it may have to be scrolled.
    inside = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f'{title}<div class="scroll" tabindex="0">\n{inside}\n</div>{notes}'
