"""A name from outside, as it is shown: of a file, a folder, a label, a learner.

It may hold line breaks, codes that a terminal obeys, marks that turn the direction of writing, bytes that are no text,
brackets that Rich takes for markup, dollars that matplotlib takes for formulas, or begin with a sign that makes it a
formula to a spreadsheet. All code that shows names uses these functions; the name itself is not changed.
"""

import re
import shlex
import unicodedata
from collections.abc import Iterable
from html import escape

from rich.text import Text

_SCREEN = 60  # letters in a cell of a table: longer ones are broken into lines
_FIGURE = 40  # as wide as a panel is
_FORMULA = frozenset("=+-@")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?(inf|nan)", re.IGNORECASE)


def printable(text: str, keep: str = "") -> str:
    r"""Return a text in which whatever cannot be seen is written as its escape.

    Parameters
    ----------
    text : str
        Anything; a byte that is no text, as in a file's name, becomes ``\x`` and its two digits.
    keep : str
        Characters that stay as they are, such as line breaks.

    Examples
    --------
    >>> print(printable("cl\x1b[2Jear\nl\u202etr"))
    cl\x1b[2Jear\nl\u202etr
    """
    # Most names are fine as they are.
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    code = ord(letter)
    # Where Python puts the bytes of a file's name that are no UTF-8.
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode("ascii")


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many letters: its beginning and its end, which tell files apart.

    >>> shortened("measurements of the year 2019.csv", 16)
    'measurem…019.csv'
    """
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def on_screen(text: str, style: str = "", most: int | None = None) -> Text:
    """Return a name for Rich to print: never markup, whole unless there is a limit."""
    seen = printable(text)
    return Text(seen if most is None else shortened(seen, most), style)


def in_cell(text: str) -> Text:
    """Return a name for a cell of a table on the screen."""
    return on_screen(text, most=_SCREEN)


def in_figure(text: str, most: int = _FIGURE) -> str:
    r"""Return a name for matplotlib to draw: short, and never a formula.

    >>> print(in_figure("cost_$5_to_$10"))
    cost_\$5_to_\$10
    """
    return shortened(printable(text), most).replace("$", r"\$")


def in_page(text: str) -> str:
    """Return a name, or any plain text, as HTML.

    >>> in_page("<b> & co")
    '&lt;b&gt; &amp; co'
    """
    return escape(printable(text))


def in_csv(cell: object) -> object:
    """Return a cell of a CSV table: a text that a spreadsheet would compute gets an apostrophe in front.

    >>> [in_csv(cell) for cell in ("=1+1", "-61.18", -3, "@cmd", "plain")]
    ["'=1+1", '-61.18', -3, "'@cmd", 'plain']
    """
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    # Normalised, since some spreadsheets take the wide forms of these signs too.
    is_formula = unicodedata.normalize("NFKC", text[:1]) in _FORMULA and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def in_shell(words: Iterable[str]) -> str:
    r"""Return a command as one types it.

    >>> print(in_shell(["onebit", "margin", "my data.csv", "bell\x07.csv"]))
    onebit margin 'my data.csv' $'bell\x07.csv'
    """
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    # Byte by byte: it is right for letters of any width, and for bytes that are no text.
    pieces = []
    for letter in word:
        if not letter.isprintable():
            pieces += [f"\\x{byte:02x}" for byte in letter.encode("utf-8", "surrogateescape")]
        else:
            pieces.append(f"\\{letter}" if letter in "\\'" else letter)
    return f"$'{''.join(pieces)}'"
