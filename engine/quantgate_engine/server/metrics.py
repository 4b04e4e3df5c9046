"""The service metrics, for Prometheus to scrape. Names and meanings are those of the step log and the reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from quantgate_engine.async_llm import AsyncLLM
from quantgate_engine.outputs import StreamEnd
from quantgate_engine.request import AbortCause
from quantgate_engine.server.api_error import ApiError

_MILLISECONDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000)
_REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
REJECTIONS = frozenset({"queue_full", "shutting_down", "rate_limit_exceeded", "context_length_exceeded", "cannot_run"})
"""Error codes that mean that a well-formed request was not let in by the server."""
NO_ROOM = "no_room"
"""Why the engine itself rejects a request: above a cap, or it waited too long."""


class ServiceMetrics:
    """One server's metrics, in a registry of their own. Latencies are on the engine's clock, in milliseconds.

    Of requests that ended early, only the counts are kept: their latencies would say nothing about the service.
    """

    def __init__(self, engine: AsyncLLM) -> None:
        self._engine = engine
        self._registry = registry = CollectorRegistry()
        self._queue_time = _latency("queue_time_ms", "From arrival to the first step.", registry)
        self._prefill_latency = _latency("prefill_latency_ms", "From the first step to the first token.", registry)
        self._decode_latency = _latency("decode_latency_ms", "From the first token to the last.", registry)
        self._ttft = _latency("ttft_ms", "From arrival to the first token.", registry)
        self._tpot = _latency("tpot_ms", "Decode latency / (output tokens - 1), per request.", registry)
        self._batch_prefill = _batch("batch_size_prefill", "Prefilling requests of a step that has any.", registry)
        self._batch_decode = _batch("batch_size_decode", "Decoding requests of a step that has any.", registry)
        self._ooms = Counter("oom_count", "Steps that ran out of memory.", registry=registry)
        self._preemptions = Counter("preemption_count", "Requests put back to wait.", registry=registry)
        self._recomputed = Counter("recomputed_tokens", "Tokens computed again after that.", registry=registry)
        self._cached = Counter("cached_prompt_tokens", "Prompt tokens taken from the cache.", registry=registry)
        self._prefill_tokens = Counter(
            "prefill_tokens", "Tokens computed in prefill, recomputed ones too.", registry=registry
        )
        self._prompt_tokens = Counter("prompt_tokens", "Prompt tokens of finished requests.", registry=registry)
        self._output_tokens = Counter("output_tokens", "Output tokens of finished requests.", registry=registry)
        self._finished = Counter("finished_count", "Requests that came to their end.", ["reason"], registry=registry)
        self._rejected = Counter("rejected_count", "Requests that were not let in.", ["reason"], registry=registry)
        for reason in sorted({*REJECTIONS, NO_ROOM}):
            self._rejected.labels(reason)
        _gauge("active_requests", "Requests that hold KV blocks.", registry, lambda: engine.load.active_requests)
        _gauge("waiting_requests", "Requests that wait for room.", registry, lambda: engine.load.waiting_requests)
        _gauge("kv_cache_used_tokens", "Token slots in use.", registry, lambda: engine.load.used_tokens)
        _gauge(
            "kv_cache_block_utilization",
            "Token slots in use / slots in allocated blocks.",
            registry,
            lambda: engine.load.slot_utilization,
        )
        _gauge(
            "kv_cache_pool_usage",
            "Allocated blocks / blocks of the pool.",
            registry,
            lambda: engine.load.allocated_blocks / engine.num_kv_blocks,
        )
        registry.register(_Aborts(engine))
        registry.register(_Pools(engine))

    def exposition(self) -> bytes:
        """The text format of Prometheus."""
        self._drain_steps()
        return generate_latest(self._registry)

    def count_end(self, end: StreamEnd, prompt_tokens: int, output_tokens: int) -> None:
        """A request whose stream came to its end."""
        self._drain_steps()
        times = end.engine
        if end.status == "rejected":
            self._rejected.labels(NO_ROOM).inc()
        if end.status != "finished" or times is None:
            return
        self._finished.labels(end.finish_reason).inc()
        self._prompt_tokens.inc(prompt_tokens)
        self._output_tokens.inc(output_tokens)
        if times.admitted_ns is None or times.first_token_ns is None or times.finished_ns is None:
            return
        decode_ms = (times.finished_ns - times.first_token_ns) / 1e6
        self._queue_time.observe((times.admitted_ns - times.arrived_ns) / 1e6)
        self._prefill_latency.observe((times.first_token_ns - times.admitted_ns) / 1e6)
        self._ttft.observe((times.first_token_ns - times.arrived_ns) / 1e6)
        self._decode_latency.observe(decode_ms)
        if output_tokens >= 2:
            self._tpot.observe(decode_ms / (output_tokens - 1))

    def count_refusal(self, error: ApiError) -> None:
        """An error answer; those that are no refusal do not count."""
        if error.code in REJECTIONS:
            self._rejected.labels(error.code).inc()

    def _drain_steps(self) -> None:
        for step in self._engine.take_steps():
            if step.batch_size_prefill:
                self._batch_prefill.observe(step.batch_size_prefill)
            if step.batch_size_decode:
                self._batch_decode.observe(step.batch_size_decode)
            self._prefill_tokens.inc(step.prefill_tokens)
            self._ooms.inc(step.oom_count)
            self._preemptions.inc(step.preemption_count)
            self._recomputed.inc(step.recomputed_tokens)
            self._cached.inc(step.cached_prompt_tokens)


class _Aborts(Collector):
    """The engine's own count: a client that has left sees no end that could be counted."""

    def __init__(self, engine: AsyncLLM) -> None:
        self._engine = engine

    def collect(self) -> Iterable[CounterMetricFamily]:
        aborts = CounterMetricFamily("request_abort_count", "Requests given up.", labels=["cause"])
        for cause in AbortCause:
            aborts.add_metric([cause.value], self._engine.aborts_by_cause.get(cause, 0))
        return [aborts]


class _Pools(Collector):
    """How each of several engines stands; nothing where one engine serves all."""

    def __init__(self, engine: AsyncLLM) -> None:
        self._engine = engine

    def collect(self) -> Iterable[GaugeMetricFamily]:
        states = self._engine.pool_states
        if not states:
            return
        active = GaugeMetricFamily("pool_active_requests", "Requests that hold KV blocks.", labels=["pool"])
        waiting = GaugeMetricFamily("pool_waiting_requests", "Requests that wait for room.", labels=["pool"])
        used = GaugeMetricFamily("pool_kv_cache_used_tokens", "Token slots in use.", labels=["pool"])
        usage = GaugeMetricFamily("pool_kv_cache_pool_usage", "Allocated blocks / blocks of the pool.", labels=["pool"])
        for name, pool in states.items():
            active.add_metric([name], pool.load.active_requests)
            waiting.add_metric([name], pool.load.waiting_requests)
            used.add_metric([name], pool.load.used_tokens)
            usage.add_metric([name], pool.load.allocated_blocks / pool.num_kv_blocks)
        yield from (active, waiting, used, usage)


def _latency(name: str, meaning: str, registry: CollectorRegistry) -> Histogram:
    return Histogram(name, meaning, buckets=_MILLISECONDS, registry=registry)


def _batch(name: str, meaning: str, registry: CollectorRegistry) -> Histogram:
    return Histogram(name, meaning, buckets=_REQUESTS, registry=registry)


def _gauge(name: str, meaning: str, registry: CollectorRegistry, value: Callable[[], float]) -> None:
    Gauge(name, meaning, registry=registry).set_function(value)
