"""The conditions of Definition 1 as points: what has to have a positive product with the separating vectors."""

import numpy as np

from onebit.inputs import Floats, Integers
from onebit.theory import double_double


class AgainstRest:
    """Strong separability of one class: its examples, and the others' negated. A code is an example."""

    def __init__(self, points: Floats, signs: Floats) -> None:
        self._signed = points * signs[:, None]
        self._codes = np.arange(len(points))
        self.dimension = points.shape[1]

    def shortest(self) -> int:
        """Return an example of least length."""
        return int(np.argmin(np.einsum("ij,ij->i", self._signed, self._signed)))

    def price(self, direction: Floats) -> tuple[Floats, Integers]:
        """Return every example's signed product with the direction."""
        return self._signed @ direction, self._codes

    def price_pairs(self, direction: Floats) -> tuple[Floats, Integers]:
        """Return the same for a direction of pairs."""
        products = np.empty((len(self._signed), 2))
        double_double.products_with(self._signed, direction, products)
        return products[:, 0], self._codes

    def rows(self, codes: Integers) -> Floats:
        """Return signed examples."""
        rows: Floats = self._signed[codes]
        return rows


def rivalry_codes(examples: Integers, rivals: Integers, n_classes: int) -> Integers:
    """Return one number for an example and a rival of its class."""
    return examples * n_classes + rivals


def rivalries(codes: Integers, n_classes: int) -> tuple[Integers, Integers]:
    """Return the examples and the rivals of codes."""
    return codes // n_classes, codes % n_classes


class AgainstRivals:
    """Weak separability: x in the block of its own class and −x in a rival's. A code is an example and a rival."""

    def __init__(self, points: Floats, labels: Integers, n_classes: int) -> None:
        self._points, self._labels, self._n_classes = points, labels, n_classes
        self._all = np.arange(len(points))
        self.dimension = points.shape[1] * n_classes

    def shortest(self) -> int:
        """Return an example of least length, and any rival."""
        example = int(np.argmin(np.einsum("ij,ij->i", self._points, self._points)))
        # With any rival the vector has length √2·‖x‖.
        return example * self._n_classes + (int(self._labels[example]) + 1) % self._n_classes

    def price(self, direction: Floats) -> tuple[Floats, Integers]:
        """Return how far every example's own class is ahead of its strongest rival."""
        scores = self._points @ direction.reshape(self._n_classes, -1).T
        own = scores[self._all, self._labels]
        # The own class is no rival.
        scores[self._all, self._labels] = -np.inf
        rivals = scores.argmax(axis=1)
        return own - scores[self._all, rivals], rivalry_codes(self._all, rivals, self._n_classes)

    def price_pairs(self, direction: Floats) -> tuple[Floats, Integers]:
        """Return the same for a direction of pairs."""
        leads, rivals = np.empty(len(self._points)), np.empty(len(self._points), dtype=np.int64)
        by_class = direction.reshape(self._n_classes, -1, 2)
        double_double.leads_with(self._points, self._labels, by_class, leads, rivals)
        return leads, rivalry_codes(self._all, rivals, self._n_classes)

    def rows(self, codes: Integers) -> Floats:
        """Return the vectors with x and −x in their blocks."""
        examples, rivals = rivalries(codes, self._n_classes)
        blocks = np.zeros((len(codes), self._n_classes, self._points.shape[1]))
        each = np.arange(len(codes))
        blocks[each, self._labels[examples]] = self._points[examples]
        blocks[each, rivals] = -self._points[examples]
        return blocks.reshape(len(codes), -1)
