"""A readable summary of a data set: rows, label, classes with counts, columns by kind, what was dropped."""

from collections.abc import Mapping

import numpy as np

from onebit.streams.data_set import DataSet

_MOST = 12  # classes that are listed
_LONGEST = 40  # letters of a class's name


def describe(data: DataSet) -> dict[str, str]:
    """Return a summary of a data set and of how its file was read, by name.

    Examples
    --------
    >>> from onebit.streams import bundled
    >>> describe(bundled("iris"))
    {'rows': '150', 'classes': '3: setosa 50, versicolor 50, virginica 50', 'columns': '4 of numbers'}
    """
    counts = np.bincount(data.y, minlength=data.n_classes).tolist()
    names = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in data.label_names]
    listed = [f"{name} {count}" for name, count in zip(names, counts, strict=True)]
    more = f", … and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    about = dict(data.about)
    kind = "numbers, sparse" if data.is_sparse else "numbers"
    facts = {
        "read as": about.get("read as", ""),
        "rows": f"{data.X.shape[0]}",
        "label": about.get("label", ""),
        "classes": f"{data.n_classes}: {', '.join(listed[:_MOST])}{more}",
        "columns": about.get("columns", f"{data.X.shape[1]} of {kind}"),
        "dropped": about.get("dropped", ""),
        "missing": about.get("missing", ""),
        "changed": "; ".join(text for name, text in data.about if name == "changed"),
    }
    return {name: text for name, text in facts.items() if text}


def in_lines(about: Mapping[str, str]) -> str:
    r"""Return the summary of `describe` as lines, for a report.

    >>> in_lines({"rows": "150", "label": "'species'\n(as asked for)"})
    "rows: 150\nlabel: 'species' (as asked for)"
    """
    return "\n".join(f"{name}: {' '.join(text.split())}" for name, text in about.items())
