"""How many connections there may be: in all, and from one address.

Whoever opens many and sends slowly would otherwise take all open files of the process, and with them the deciders' own.
Half of the files that the process may open are for connections, the others for logs and the database.
"""

import ipaddress
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable

from onebit.inputs import check_integer

MOST_CONNECTIONS = 1_000
"""Unless the operator says otherwise, or the process may not open twice as many files."""
_SHARE_OF_ONE = 4  # one address has at most this part of all places
_SHARE_KEPT = 4  # this part of all places is for addresses that are known
_KNOWN_SECONDS = 600.0
_MOST_KNOWN = 10_000
_SAY_AGAIN_SECONDS = 10.0
_LOG = logging.getLogger("onebit.serve")


class Connections:
    """Places for connections.

    A connection takes a place when it is made, and keeps it until it ends. The last quarter of all places is kept for
    addresses that are known: a request from there, with a valid token where one is needed, was answered within the last
    ten minutes.

    Parameters
    ----------
    most : int
        Places in all.
    most_of_address : int
        Places of one address. The addresses of an IPv6 network of 64 bits, which one machine may have, count as one.
    clock : callable
        Seconds, which never run backwards.

    Examples
    --------
    >>> places = Connections(4, 2)
    >>> [places.take(address) is None for address in ("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3")]
    [True, True, False, True, False]
    """

    def __init__(self, most: int, most_of_address: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._most_of_address, self._clock = most, most_of_address, clock
        self._n_kept = most // _SHARE_KEPT
        self._taken: Counter[str] = Counter()
        self._n_taken = 0
        self._known: OrderedDict[str, float] = OrderedDict()
        self._n_refused, self._said = 0, -_SAY_AGAIN_SECONDS
        self.most_refused = max(16, most // 4)
        """How many that were refused are kept open at once, until their clients have read so."""

    def take(self, address: str) -> str | None:
        """Take a place; return None, or why there is none."""
        if self._taken[address] >= self._most_of_address:
            return self._refused(f"there are {self._most_of_address} connections from this address; try again")
        if self._n_taken >= self._most - (0 if self._is_known(address) else self._n_kept):
            return self._refused(f"there are {self._n_taken} connections; try again")
        self._taken[address] += 1
        self._n_taken += 1
        return None

    def give_back(self, address: str) -> None:
        """Give a place back."""
        self._n_taken -= 1
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]

    def know(self, address: str) -> None:
        """Note that a request from an address was answered."""
        self._known[address] = self._clock()
        self._known.move_to_end(address)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def _is_known(self, address: str) -> bool:
        return self._known.get(address, -_KNOWN_SECONDS) + _KNOWN_SECONDS > self._clock()

    def _refused(self, says: str) -> str:
        self._n_refused += 1
        if self._clock() - self._said >= _SAY_AGAIN_SECONDS:  # not once for each
            _LOG.warning("%d connections were refused: %s", self._n_refused, says)
            self._n_refused, self._said = 0, self._clock()
        return says


def places_for(most: int | None, most_of_address: int | None, n_files: int) -> Connections:
    """Return places for connections, or raise ValueError if there cannot be so many.

    Parameters
    ----------
    most, most_of_address : int, optional
        What the operator said.
    n_files : int
        How many files this process may open.
    """
    if most is None:
        most = max(1, min(MOST_CONNECTIONS, n_files // 2))
    elif check_integer("--max-connections", most, low=1) > n_files // 2:
        raise ValueError(
            f"--max-connections {most} needs {2 * most} open files, half of them for logs, and this process may open "
            f"{n_files}; raise that (ulimit -n, or LimitNOFILE of systemd), or say at most {n_files // 2}"
        )
    if most_of_address is None:
        most_of_address = max(1, most // _SHARE_OF_ONE)
    return Connections(most, check_integer("--max-connections-per-address", most_of_address, low=1, high=most))


def counted_as(host: str) -> str:
    """Return what an address is counted as.

    >>> counted_as("192.0.2.7"), counted_as("::ffff:192.0.2.7"), counted_as("2001:db8:1:2:3:4:5:6"), counted_as("::1")
    ('192.0.2.7', '192.0.2.7', '2001:db8:1:2::', '::1')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:  # of a socket of another kind
        return host
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False).network_address)
