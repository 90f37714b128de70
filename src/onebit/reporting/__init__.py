"""How results are shown: the style of figures, tables, pages, progress."""
