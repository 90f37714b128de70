"""Prometheus metrics."""

import time
from collections.abc import Iterator
from functools import cache, partial

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from onebit.decider.tickets import LogError
from onebit.service.gate import Problem
from onebit.service.workers import WorkerPool

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_PATIENCE_SECONDS = 1.0  # for all deciders in total
_COUNTS = {
    "guesses": "Guesses handed out.",
    "right": "Guesses that were right.",
    "wrong": "Guesses that were wrong.",
    "asked": "Guesses that a person was asked about.",
    "suggestions_right": "Of these, those whose suggestion was right.",
    "silent": "Tickets closed without an answer.",
    "events": "Events in the log.",
}


class Metrics(Collector):
    """Counters of `requests`, their `seconds`, and the status of every decider; `text` is all of that."""

    def __init__(self, workers: WorkerPool) -> None:
        registry = CollectorRegistry()
        requests = Counter("onebit_requests", "Requests, by verb and status.", ["verb", "status"], registry=registry)
        seconds = Histogram(
            "onebit_request_seconds", "How long requests took.", ["verb"], buckets=_SECONDS, registry=registry
        )
        registry.register(self)
        # Cached: the lookup by labels takes longer than counting.
        self.requests, self.seconds = cache(requests.labels), cache(seconds.labels)
        self._workers, self.text = workers, partial(generate_latest, registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the status of every decider; busy ones are waited for a second in total."""
        labels = ["namespace", "decider"]
        counts = {name: CounterMetricFamily(f"onebit_{name}", text, labels=labels) for name, text in _COUNTS.items()}
        waiting = GaugeMetricFamily("onebit_open_tickets", "Tickets that wait for an answer.", labels=labels)
        usable = GaugeMetricFamily("onebit_decider_up", "1 if the decider can be asked.", labels=labels)
        busy = GaugeMetricFamily("onebit_decider_busy", "1 if it says nothing now; its numbers are old.", labels=labels)
        end = time.monotonic() + _PATIENCE_SECONDS
        for *names, worker in self._workers:
            usable.add_metric(names, float(worker.is_ours))
            try:
                status, is_busy = worker.status_within(max(end - time.monotonic(), 0.0))
            except (Problem, LogError):  # not open, or another process has just taken it over
                continue
            busy.add_metric(names, float(is_busy))
            if status is not None:
                waiting.add_metric(names, status.open)
                for name, family in counts.items():
                    family.add_metric(names, getattr(status, name))
        yield from (*counts.values(), waiting, usable, busy)
