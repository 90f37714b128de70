"""Limits on connections: in total, and from one address.

Without them, many slow connections could use up the process's file descriptors, which the deciders need too. Half of
the descriptors are for connections, the others for logs and the database.
"""

import ipaddress
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable

from onebit.inputs import check_integer

MOST_CONNECTIONS = 1_000
"""Default limit, unless the process can open fewer than twice as many files."""
_SHARE_OF_ONE = 4  # one address may have this fraction of all connections
_SHARE_KEPT = 4  # this fraction is reserved for known addresses
_KNOWN_SECONDS = 600.0
_MOST_KNOWN = 10_000
_SAY_AGAIN_SECONDS = 10.0
_LOG = logging.getLogger("onebit.serve")


class Connections:
    """Counts connections and enforces the limits.

    The last quarter of all connections is reserved for known addresses: those with a successful request in the last ten
    minutes, with a valid token where one is required.

    Parameters
    ----------
    most : int
        Maximum number of connections.
    most_of_address : int
        Maximum number from one address. An IPv6 /64 network counts as one address.
    clock : callable
        Monotonic time in seconds.

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
        self._n_refused, self._last_warning = 0, -_SAY_AGAIN_SECONDS
        self.most_refused = max(16, most // 4)
        """Maximum number of refused connections kept open until their clients have read the response."""

    def take(self, address: str) -> str | None:
        """Count a new connection; return None, or the reason for a refusal."""
        if self._taken[address] >= self._most_of_address:
            return self._refused(f"there are {self._most_of_address} connections from this address; try again")
        if self._n_taken >= self._most - (0 if self._is_known(address) else self._n_kept):
            return self._refused(f"there are {self._n_taken} connections; try again")
        self._taken[address] += 1
        self._n_taken += 1
        return None

    def give_back(self, address: str) -> None:
        """Count the end of a connection."""
        self._n_taken -= 1
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]

    def know(self, address: str) -> None:
        """Record a successful request from an address."""
        self._known[address] = self._clock()
        self._known.move_to_end(address)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def _is_known(self, address: str) -> bool:
        return self._known.get(address, -_KNOWN_SECONDS) + _KNOWN_SECONDS > self._clock()

    def _refused(self, message: str) -> str:
        self._n_refused += 1
        if self._clock() - self._last_warning >= _SAY_AGAIN_SECONDS:  # at intervals, not for each
            _LOG.warning("%d connections were refused: %s", self._n_refused, message)
            self._n_refused, self._last_warning = 0, self._clock()
        return message


def places_for(most: int | None, most_of_address: int | None, n_files: int) -> Connections:
    """Return the limits on connections, or raise ValueError if they are too high.

    Parameters
    ----------
    most, most_of_address : int, optional
        Limits chosen by the operator.
    n_files : int
        Limit on open files of this process.
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
    """Return the address or network under which an address is counted.

    >>> counted_as("192.0.2.7"), counted_as("::ffff:192.0.2.7"), counted_as("2001:db8:1:2:3:4:5:6"), counted_as("::1")
    ('192.0.2.7', '192.0.2.7', '2001:db8:1:2::', '::1')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:  # not an IP socket
        return host
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False).network_address)
