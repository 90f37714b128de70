"""The API documentation as a static HTML page without external resources."""

from html import escape
from typing import Any

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title></head><body>
<h1>{title} {version}</h1>
<p>{description}</p>
<p>The same for programs: <a href="openapi.json">openapi.json</a>.</p>
<dl>
{verbs}
</dl></body></html>
"""


def api_page(api: dict[str, Any]) -> str:
    """Render an OpenAPI document as HTML."""
    verbs = [
        f"<dt><code>{escape(method.upper())} {escape(path)}</code></dt>\n<dd>{escape(verb.get('description', ''))}</dd>"
        for path, methods in api["paths"].items()
        for method, verb in methods.items()
    ]
    about = {name: escape(str(api["info"].get(name, ""))) for name in ("title", "version", "description")}
    return _PAGE.format(verbs="\n".join(verbs), **about)
