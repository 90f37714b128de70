"""What a Prometheus server may scrape."""

import time
from collections.abc import Iterator
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from onebit.decider.log_errors import LogError
from onebit.decider.tickets import Status
from onebit.service.desks import Desk, Desks

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_PATIENCE_SECONDS = 1.0  # for all deciders together
_COUNTS = {
    "guesses": "Guesses handed out.",
    "right": "Guesses that were right.",
    "wrong": "Guesses that were wrong.",
    "silent": "Tickets closed without an answer.",
    "events": "Events in the log.",
}


class Metrics:
    """Counters of requests, and what every decider says of itself.

    Parameters
    ----------
    desks : Desks
        The deciders.
    """

    def __init__(self, desks: Desks) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "onebit_requests", "Requests, by verb and status.", ["verb", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "onebit_request_seconds", "How long requests took.", ["verb"], buckets=_SECONDS, registry=self._registry
        )
        self._registry.register(_OfDeciders(desks))
        # Looking a counter up by its labels takes longer than counting.
        self._requests_of, self._seconds_of = cache(self._requests.labels), cache(self._seconds.labels)

    def count(self, verb: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests_of(verb, status).inc()
        self._seconds_of(verb).observe(seconds)

    def text(self) -> bytes:
        """Return all of them as Prometheus reads them."""
        return generate_latest(self._registry)


class _OfDeciders(Collector):
    def __init__(self, desks: Desks) -> None:
        self._desks = desks
        self._last: dict[Desk, Status] = {}
        """What each said last, for when it is busy."""

    def describe(self) -> list[Metric]:
        return []  # else they would be collected once at the start

    def collect(self) -> Iterator[Metric]:
        labels = ["namespace", "decider"]
        counts = {name: CounterMetricFamily(f"onebit_{name}", says, labels=labels) for name, says in _COUNTS.items()}
        waiting = GaugeMetricFamily("onebit_open_tickets", "Tickets that wait for an answer.", labels=labels)
        usable = GaugeMetricFamily("onebit_decider_up", "1 if the decider can be asked.", labels=labels)
        busy = GaugeMetricFamily("onebit_decider_busy", "1 if it says nothing now; its numbers are old.", labels=labels)
        end, known = time.monotonic() + _PATIENCE_SECONDS, {}
        for namespace, name, desk in self._desks:
            usable.add_metric([namespace, name], float(desk.is_ours))
            if desk.decider is not None and desk.is_ours:
                try:
                    found = desk.decider.status_within(max(end - time.monotonic(), 0.0))
                except LogError:  # it has just become another process's
                    continue
                busy.add_metric([namespace, name], float(found is None))
                status = found or self._last.get(desk)
                if status is not None:
                    known[desk] = status
                    waiting.add_metric([namespace, name], status.open)
                    for each, family in counts.items():
                        family.add_metric([namespace, name], getattr(status, each))
        self._last = known  # only now: another may scrape meanwhile
        yield from (*counts.values(), waiting, usable, busy)
