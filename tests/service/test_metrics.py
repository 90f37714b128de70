"""What Prometheus is given, and how soon."""

import pytest

from served import DESK, Served


def test_metrics_do_not_wait_for_a_decider_that_is_busy(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onebit.service.metrics._PATIENCE_SECONDS", 0.01)
    served.ask("POST", f"{DESK}/guess", {"record": {"x": 1.0}})

    def scraped() -> dict[str, str]:
        lines = served.ask("GET", "/metrics").body.decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if "routing" in line)

    free = scraped()
    busy = [name for name in free if name.startswith("onebit_decider_busy")]
    assert [free[name] for name in busy] == ["0.0"]
    with served.service.workers.get("shop", "routing").open_decider()._lock:
        assert scraped() == free | {busy[0]: "1.0"}
