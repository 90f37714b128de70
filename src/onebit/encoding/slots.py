"""Assignment of a row's slots to columns and categories: in order of appearance, and permanent."""

from typing import Any

from onebit.encoding.columns import DATE_PARTS, SHARED, Column, check_name
from onebit.encoding.fields import LONGEST_NAME, shown
from onebit.inputs import check_integer

WIDEST = 1 << 20
_KEPT_FOR_COLUMNS = 8  # the last eighth of the slots is reserved for columns, not categories


class FeatureSlots:
    """The columns met so far, and their slots.

    Parameters
    ----------
    own : int
        Number of slots that are assigned individually.
    to_share : int
        Number of slots after them that are shared by hashing.
    max_categories : int
        Maximum number of categories of one column with slots of their own.
    """

    def __init__(self, own: int, to_share: int, max_categories: int) -> None:
        self.own, self.to_share = own, to_share
        self.n_given = 0
        self.columns: list[Column] = []
        self.by_name: dict[str, Column] = {}
        self._max_categories = max_categories

    def copy(self) -> "FeatureSlots":
        """Return an independent copy."""
        copy = FeatureSlots(self.own, self.to_share, self._max_categories)
        copy.n_given = self.n_given
        copy.columns = [column.copy() for column in self.columns]
        copy.by_name = {column.name: column for column in copy.columns}
        return copy

    def grow(self, entry: Any) -> None:
        """Assign a slot to a new column, category or kind of value.

        Parameters
        ----------
        entry : list
            ``["column", name]``, ``["word", column, word]``, or one of number, date, missing, text, lists with the
            index of its column.

        Raises
        ------
        ValueError
            If it has a slot already, or cannot have one.
        """
        if type(entry) is not list or len(entry) != (3 if entry[:1] == ["word"] else 2):
            raise ValueError(f"{entry!r:.80} is no addition")
        what, where = entry[:2]
        if what == "column":
            self._grow_column(where)
            return
        column = self.columns[check_integer("a column's position", where, low=0, high=len(self.columns) - 1)]
        if what == "word" and self.has_place_for_word(column, entry[2]) and entry[2] not in column.words:
            column.words[entry[2]] = self._give(1)
        elif what == "number" and column.number is None:
            column.number = self._give(1)
        elif what == "date" and column.date is None:
            column.date = self._give(len(DATE_PARTS))
        elif what == "missing" and column.absent is None:
            column.absent = self._give(1)
        elif what == "text" and not column.has_text:
            column.has_text = True
        elif what == "lists" and not column.has_lists:
            column.has_lists = True
        else:
            raise ValueError(f"{entry!r:.80} cannot be added to column {shown(column.name)}")

    def _grow_column(self, name: Any) -> None:
        check_name(name)
        if name in self.by_name or not self.has_place_for_column():
            raise ValueError(f"column {shown(name)} cannot join: it has, or all places are given away")
        column = Column(len(self.columns), name)
        self.columns.append(column)
        self.by_name[name] = column

    def _give(self, n_places: int) -> int:
        """Assign `n_places` slots; return the first, or SHARED if there are not enough."""
        if self.own - self.n_given < n_places:
            return SHARED
        self.n_given += n_places
        return self.n_given - n_places

    def has_place_for_column(self) -> bool:
        """Return whether a column can be added."""
        return self.n_given < self.own and len(self.columns) < self.own

    def has_place_for_word(self, column: Column, word: Any) -> bool:
        """Return whether a category can have a slot of its own."""
        return (
            column.index >= 0
            and len(column.words) < self._max_categories
            and self.own - self.n_given > self.own // _KEPT_FOR_COLUMNS
            and type(word) is str
            and len(word) <= LONGEST_NAME
        )

    def measured(self) -> list[int]:
        """Return the slots of numbers, column by column."""
        return [place for column in self.columns for place in column.measured()]

    def names(self) -> list[str]:
        """Return a unique name for each slot."""
        known = {self.own + i: f"(shared {i})" for i in range(self.to_share)}
        for column in self.columns:
            known |= column.places()
        found: dict[str, None] = {}
        for place in range(self.own + self.to_share):
            name = known.get(place, f"(free {place})")
            while name in found:  # a column "a=b" beside the category "b" of a column "a"
                name += f" (place {place})"
            found[name] = None
        return list(found)

    def state(self) -> list[Any]:
        """Return all columns as plain JSON values."""
        return [column.state() for column in self.columns]

    def set_state(self, state: Any) -> None:
        """Set the columns, or raise ValueError unless the first slots are assigned, each once."""
        if type(state) is not list or len(state) > self.own:
            raise ValueError(f"the state must have a list of at most {self.own} columns; got {state!r:.80}")
        self.columns = [Column.from_state(index, each) for index, each in enumerate(state)]
        self.by_name = {column.name: column for column in self.columns}
        if len(self.by_name) < len(self.columns):
            raise ValueError("the state has two columns of one name")
        given = self.measured()
        for column in self.columns:
            if len(column.words) > self._max_categories:
                raise ValueError(
                    f"column {shown(column.name)} has more words than max_categories={self._max_categories}"
                )
            given += [*column.words.values(), SHARED if column.absent is None else column.absent]
        given = sorted(place for place in given if place != SHARED)
        if given != list(range(len(given))) or len(given) > self.own:
            raise ValueError(f"the state must give the first of {self.own} places away, each once; got {given!r:.80}")
        self.n_given = len(given)


def check_size(size: Any) -> tuple[int, int]:
    """Return the numbers of individual and of shared slots, or raise ValueError."""
    if type(size) is not list or len(size) != 2:
        raise ValueError(f"the size must be two numbers of places; got {size!r:.80}")
    own, to_share = (check_integer("a number of places", n, low=1, high=WIDEST) for n in size)
    return own, to_share
