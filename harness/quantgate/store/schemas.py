"""The Parquet tables of a run: column, type, unit and clock origin, in one place.

Every time column is int64 nanoseconds from the start of the run. `driver` columns are stamped by the replay driver,
`engine` columns by the target's engine; both clocks share one origin for in-process targets, and engine columns are
null for targets that do not report them.
"""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 3


def _column(name: str, kind: pa.DataType, unit: str, clock: str = "", nullable: bool = True) -> pa.Field[pa.DataType]:
    metadata = {"unit": unit} | ({"clock": clock} if clock else {})
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def _schema(columns: list[pa.Field[pa.DataType]]) -> pa.Schema:
    return pa.schema(columns, metadata={"quantgate_schema_version": str(SCHEMA_VERSION)})


REQUESTS = _schema(
    [
        _column("arm_id", pa.string(), "name", nullable=False),
        _column("pass_index", pa.int32(), "count", nullable=False),
        _column("block_index", pa.int32(), "count", nullable=False),
        _column("request_id", pa.string(), "name", nullable=False),
        _column("slo_class", pa.string(), "name", nullable=False),
        _column("session_id", pa.string(), "name"),
        _column("turn", pa.int32(), "count", nullable=False),
        _column("tags", pa.list_(pa.string()), "name", nullable=False),
        _column("prompt_tokens", pa.int32(), "tokens", nullable=False),
        _column("requested_output_tokens", pa.int32(), "tokens", nullable=False),
        _column("output_tokens", pa.int32(), "tokens", nullable=False),
        _column("status", pa.string(), "finished|aborted|rejected|failed", nullable=False),
        _column("finish_reason", pa.string(), "stop|length"),
        _column("abort_cause", pa.string(), "name"),
        _column("error", pa.string(), "text"),
        _column("scheduled_ns", pa.int64(), "ns", "driver", nullable=False),
        _column("sent_ns", pa.int64(), "ns", "driver", nullable=False),
        _column("first_token_ns", pa.int64(), "ns", "driver"),
        _column("last_token_ns", pa.int64(), "ns", "driver"),
        _column("ended_ns", pa.int64(), "ns", "driver", nullable=False),
        _column("token_times_ns", pa.list_(pa.int64()), "ns", "driver", nullable=False),
        _column("counted_by", pa.string(), "engine|ids|logprobs|usage|retokenized|spread|chunks", nullable=False),
        _column("chunks", pa.int32(), "count", nullable=False),
        _column("first_answer_ns", pa.int64(), "ns", "driver"),
        _column("attempts", pa.int32(), "count", nullable=False),
        _column("http_status", pa.int32(), "HTTP status"),
        _column("error_kind", pa.string(), "name"),
        _column("client_overhead_ns", pa.int64(), "ns", "driver"),
        _column("arrived_ns", pa.int64(), "ns", "engine"),
        _column("admitted_ns", pa.int64(), "ns", "engine"),
        _column("engine_first_token_ns", pa.int64(), "ns", "engine"),
        _column("engine_finished_ns", pa.int64(), "ns", "engine"),
        _column("preemptions", pa.int32(), "count", nullable=False),
        _column("recomputed_tokens", pa.int32(), "tokens", nullable=False),
        _column("cached_prompt_tokens", pa.int32(), "tokens", nullable=False),
        _column("kv_peak_blocks", pa.int32(), "blocks", nullable=False),
        _column("kv_block_seconds", pa.float64(), "block seconds", nullable=False),
        _column("output_token_ids", pa.list_(pa.int32()), "token ids", nullable=False),
        _column("prompt_text", pa.string(), "text"),
        _column("output_text", pa.string(), "text"),
        _column("reasoning_text", pa.string(), "text"),
        _column("degraded", pa.string(), "what was cut"),
        _column("cached_told", pa.bool_(), "truth"),
        _column("read_tokens_per_s", pa.float64(), "tokens per second"),
    ]
)
"""One row per request. degraded: what admission cut from it so that it could run, in words of quantgate that quote
nobody; null where it ran as planned. cached_told: whether the target said how many prompt tokens it found in its cache;
else they stand as 0. read_tokens_per_s: how fast its client read by plan; null where it took everything at once."""

STEPS = _schema(
    [
        _column("arm_id", pa.string(), "name", nullable=False),
        _column("pass_index", pa.int32(), "count", nullable=False),
        _column("block_index", pa.int32(), "count", nullable=False),
        _column("step_index", pa.int64(), "count", nullable=False),
        _column("started_ns", pa.int64(), "ns", "engine", nullable=False),
        _column("duration_ns", pa.int64(), "ns", "engine", nullable=False),
        _column("batch_size_prefill", pa.int32(), "requests", nullable=False),
        _column("batch_size_decode", pa.int32(), "requests", nullable=False),
        _column("prefill_tokens", pa.int32(), "tokens", nullable=False),
        _column("decode_tokens", pa.int32(), "tokens", nullable=False),
        _column("context_tokens", pa.int64(), "tokens", nullable=False),
        _column("active_requests", pa.int32(), "requests", nullable=False),
        _column("waiting_requests", pa.int32(), "requests", nullable=False),
        _column("kv_cache_used_tokens", pa.int64(), "tokens", nullable=False),
        _column("kv_allocated_blocks", pa.int32(), "blocks", nullable=False),
        _column("kv_cache_block_utilization", pa.float64(), "ratio", nullable=False),
        _column("recomputed_tokens", pa.int32(), "tokens", nullable=False),
        _column("cached_prompt_tokens", pa.int32(), "tokens", nullable=False),
        _column("preemption_count", pa.int32(), "count", nullable=False),
        _column("request_abort_count", pa.int32(), "count", nullable=False),
        _column("rejected_count", pa.int32(), "count", nullable=False),
        _column("oom_count", pa.int32(), "count", nullable=False),
        _column("pool", pa.string(), "name"),
    ]
)

QUALITY = _schema(
    [
        _column("arm_id", pa.string(), "name", nullable=False),
        _column("tier", pa.string(), "distribution|task|behaviour", nullable=False),
        _column("task", pa.string(), "name", nullable=False),
        _column("item_id", pa.string(), "name", nullable=False),
        _column("cluster_id", pa.string(), "name", nullable=False),
        _column("metric", pa.string(), "name", nullable=False),
        _column("value", pa.float64(), "see metric", nullable=False),
        _column("floor", pa.float64(), "chance level of the metric on this item"),
        _column("output_text", pa.string(), "text"),
        _column("expected_text", pa.string(), "text"),
        _column("detail", pa.string(), "JSON"),
    ]
)

SERVER_METRICS = _schema(
    [
        _column("arm_id", pa.string(), "name", nullable=False),
        _column("phase", pa.string(), "before|during|after", nullable=False),
        _column("time_ns", pa.int64(), "ns", "driver", nullable=False),
        _column("metric", pa.string(), "our name", nullable=False),
        _column("server_name", pa.string(), "the server's name", nullable=False),
        _column("labels", pa.string(), "JSON", nullable=False),
        _column("value", pa.float64(), "see metric", nullable=False),
    ]
)

JUDGEMENTS = _schema(
    [
        _column("arm_id", pa.string(), "name", nullable=False),
        _column("request_id", pa.string(), "name", nullable=False),
        _column("pass_index", pa.int32(), "count", nullable=False),
        _column("cluster_id", pa.string(), "name", nullable=False),
        _column("order", pa.string(), "baseline_first|baseline_second", nullable=False),
        _column("choice", pa.string(), "1|2|tie|unparsable|failed|open", nullable=False),
        _column("judge", pa.string(), "name", nullable=False),
        _column("source", pa.string(), "judge|human|identical", nullable=False),
        _column("error_kind", pa.string(), "name"),
        _column("reason", pa.string(), "text"),
        _column("prompt_tokens", pa.int32(), "tokens", nullable=False),
        _column("completion_tokens", pa.int32(), "tokens", nullable=False),
    ]
)
"""One row per call of a judge, per answer of a reviewer, and per pair of answers that needed neither.

choice: which of the two answers shown is better; `unparsable`: the judge answered something else; `failed`: the call
brought no answer (see `error_kind`); `open`: a reviewer was asked and has not answered. Tokens are those charged to the
budget; error_kind is `overbilled` where the server stated more of them than the call was allowed to use.
"""

TABLES: dict[str, pa.Schema] = {
    "requests": REQUESTS,
    "steps": STEPS,
    "quality": QUALITY,
    "server_metrics": SERVER_METRICS,
    "judgements": JUDGEMENTS,
}

ADDED_COLUMNS = {"requests": ("degraded", "cached_told", "read_tokens_per_s")}
"""Last columns of a table that files of the same schema version may lack, because they were written before: null."""

OPTIONAL_TABLES = frozenset({"server_metrics", "judgements"})
"""Tables that a complete run may lack: in-process arms have no server to ask, and answers are judged when asked for."""
