"""The benchmark of delivery, in small."""

from __future__ import annotations

from benchmarks import delivery


def test_the_benchmark_counts_every_request_and_token() -> None:
    """Over real sockets, with a limit that no machine breaks: nothing asserted depends on how fast this one is."""
    document = delivery.measure("constant", rate=50.0, seconds=1.0, seed=1, lag_limit_ms=60_000.0)
    assert (document["requests_delivered"], document["errors"]) == (50, 0)
    assert document["every_request_and_token_counted"] is True
    assert document["valid"] is True
    several = delivery.measure("constant", rate=50.0, seconds=0.5, seed=1, lag_limit_ms=60_000.0, load_processes=2)
    assert (several["requests_delivered"], several["every_request_and_token_counted"]) == (25, True)
    assert delivery.measure("constant", rate=50.0, seconds=0.2, seed=1, lag_limit_ms=0.0)["valid"] is False
