"""What mkdocs does besides its configuration: examples are coloured as sessions, and the built site is checked.

The site must work from a folder without a network, so no page may fetch anything from elsewhere; and every public name
must have its place in the API.
"""

import importlib
import pkgutil
import re
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.exceptions import PluginError

import onebit

FETCHED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^"'\s>]*""")
FETCHED_BY_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//[^"')\s]*""")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Colour examples as the sessions they are; then copying one leaves out prompts and output."""
    return re.sub(r"^```python\n(?=>>> )", "```pycon\n", markdown, flags=re.MULTILINE)


def on_page_content(html: str, **_: Any) -> str:
    """Break lines where a reader would: not in numbers and short names, in tables at the joints of long ones."""

    def with_breaks(code: re.Match[str]) -> str:
        return re.sub(r"(::|[./_(])(?=\w)", r"\1<wbr>", code[0])

    def cell(found: re.Match[str]) -> str:
        return re.sub(r"<code>[^<]{24,}(?=</code>)", with_breaks, found[0])

    def whole_numbers(part: re.Match[str]) -> str:
        if part[0].startswith("<"):  # code, a drawing or a tag
            return part[0]
        return re.sub(r"(?<=\d) (?=\d{3}(?!\d)|%|±|[mµ]?s\b|MB\b)|(?<=±) ", "\N{NO-BREAK SPACE}", part[0])

    html = re.sub(r"<t[dh]\b.*?</t[dh]>", cell, html, flags=re.DOTALL)
    html = re.sub(r"<code>(?=[^<]{1,24}</code>)", '<code class="whole">', html)
    return re.sub(r"<(pre|code|svg)\b.*?</\1>|<[^>]*>|[^<]+", whole_numbers, html, flags=re.DOTALL)


def on_post_build(config: Any) -> None:
    """Fail if the site is not whole."""
    site = Path(config.site_dir)
    faults = [*bare_examples(site), *bare_lists(site), *fetched_from_elsewhere(site)]
    faults += missing_names(documented_names(site / "objects.inv"))
    if faults:
        raise PluginError("the site is not whole:\n" + "\n".join(faults))


def bare_examples(site: Path) -> list[str]:
    """Return the pages with an example that no heading ``Examples`` makes one: ``>>>`` is a quotation in Markdown."""
    quoted = re.compile(r"<blockquote>\s*<blockquote>.*?</blockquote>", flags=re.DOTALL)
    pages = {path: path.read_text("utf-8") for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)} quotes an example: {found}"
        for path in pages
        for found in quoted.findall(pages[path])
    ]


def bare_lists(site: Path) -> list[str]:
    """Return the pages with a list that no empty line makes one: it runs on in its paragraph."""
    paragraph = re.compile(r"<p>(?:(?!</p>).)*?\n(- [^\n]{,40})", flags=re.DOTALL)
    pages = {path: path.read_text("utf-8") for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)} has a list in a paragraph: {found}"
        for path in pages
        for found in paragraph.findall(pages[path])
    ]


def fetched_from_elsewhere(site: Path) -> list[str]:
    """Return what pages and styles would fetch from other servers."""
    found = []
    for pattern, ending in ((FETCHED, "*.html"), (FETCHED_BY_STYLE, "*.css")):
        for path in sorted(site.rglob(ending)):
            found += [f"{path.relative_to(site)} fetches {tag}" for tag in pattern.findall(path.read_text("utf-8"))]
    return found


def documented_names(inventory: Path) -> set[str]:
    """Return the names in the API's inventory: four lines of text, then compressed lines that begin with a name."""
    compressed = inventory.read_bytes().split(b"\n", 4)[4]
    return {line.split(" ")[0] for line in zlib.decompress(compressed).decode("utf-8").splitlines()}


def missing_names(documented: set[str]) -> list[str]:
    """Return the public names that the API shows neither where they are exported nor where they are written."""
    missing = []
    for module in public_modules():
        for name in module.__all__:
            thing, exported = getattr(module, name), f"{module.__name__}.{name}"
            written = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
            own_name = thing.__name__ if isinstance(thing, ModuleType) else written
            if not {exported, own_name} & documented:
                missing.append(f"{exported} is public, but on no page of docs/api")
    return missing


def public_modules() -> list[ModuleType]:
    """Return the package and all below it that say what they export."""
    names = [onebit.__name__, *(found.name for found in pkgutil.walk_packages(onebit.__path__, "onebit."))]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    return [module for module in modules if hasattr(module, "__all__")]
