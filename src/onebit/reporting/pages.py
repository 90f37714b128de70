"""A report as one HTML file that loads nothing from elsewhere."""

import base64
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple, TypeAlias

from onebit.files import replace_file
from onebit.reporting.text import Cell, Table, in_page

_NOTHING = "–"  # in a cell that has no text


class Drawing(NamedTuple):
    """A figure that is to be drawn."""

    name: str  # of its files, such as "figure_4a"
    title: str
    caption: str
    draw: Callable[[], Any]  # called when its turn comes: a figure of matplotlib takes megabytes


_Block: TypeAlias = str | Drawing | Table | Mapping[str, str]
"""A paragraph of plain text, a figure, a table, or names and values."""
Sections: TypeAlias = Mapping[str, Sequence[_Block]]
"""What is below each heading of a page."""


def write_page(
    folder: Path,
    title: str,
    sections: Sections,
    facts: Mapping[str, str],
    figures: str = "figures",
) -> None:
    """Write report.html: sections by heading, then what was run, by these facts, and the command that was typed.

    Sections without blocks are left out, and "" is no heading. Figures are saved in a folder of the folder too.
    """
    run = {**facts, "Version": f"onebit {version('onebit')}"}
    lines = []
    for heading, blocks in {**sections, "What was run": [run]}.items():
        lines += [f"<h2>{in_page(heading)}</h2>"] if heading and blocks else []
        lines += [_html(block, folder / figures) for block in blocks]
    command = shlex.join(["onebit", *sys.argv[1:]])
    lines += ["<h2>How to get it again</h2>", f"<pre><code>{in_page(command)}</code></pre>", ""]
    template = files("onebit.reporting").joinpath("page.html").read_text(encoding="utf-8")
    page = Template(template).substitute(title=in_page(title), body="\n".join(lines))
    replace_file(folder / "report.html", page.encode())


def _prose(text: str) -> str:
    """Return plain text as HTML in which no number is broken where its thousands are set apart."""
    return re.sub(r"(?<=\d) (?=\d{3}(?!\d))", "\N{NO-BREAK SPACE}", in_page(text))


def _html(block: _Block, figures: Path) -> str:
    match block:
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
