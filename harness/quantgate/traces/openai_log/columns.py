"""Where a request log keeps what a replay needs: the column map (`quantgate.columns/1`) and its usual places.

A path is written with dots (`request.body.messages`; see `lookup.look_up`); a list of paths is tried in order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from quantgate.traces.openai_log.conditions import ClassColumn, Condition
from quantgate.validation import load_yaml_model

COLUMNS_SCHEMA: Literal["quantgate.columns/1"] = "quantgate.columns/1"

Paths = str | tuple[str, ...]
TimeUnit = Literal["auto", "iso", "s", "ms", "us", "ns"]
DurationUnit = Literal["s", "ms", "us", "ns"]

_REQUEST = ("request", "request_body", "requestBody", "body", "request.body", "")
_RESPONSE = ("response", "response_body", "responseBody", "response.body", "")


def as_paths(paths: Paths) -> tuple[str, ...]:
    return (paths,) if isinstance(paths, str) else paths


def _inside(containers: tuple[str, ...], *names: str) -> tuple[str, ...]:
    """Each name in each container, the containers' order first; the empty container is the row itself."""
    return tuple(f"{container}.{name}" if container else name for container in containers for name in names)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class TimeColumn(_Strict):
    """When the request was made."""

    path: Paths = Field(
        _inside(
            ("", "request"),
            *("timestamp", "@timestamp", "time", "ts", "start_time", "startTime", "created_at", "request_time"),
            "created",
        ),
        description="where the time stands; of several paths the first that a row has",
    )
    unit: TimeUnit = Field(
        "auto",
        description="iso for dates; s, ms, us, ns for numbers since 1970 or the log's start; auto tells dates and "
        "numbers since 1970 by the first row",
    )
    marks: Literal["start", "end"] = Field(
        "start", description="end: the time is that of the answer's end, and the latency is taken off"
    )


class DurationColumn(_Strict):
    """How long the answer took."""

    path: Paths
    unit: DurationUnit = "ms"


class ColumnMap(_Strict):
    """Our fields and where a row of the log has them. What is not said stays at its usual places; [] looks nowhere."""

    schema_: Literal["quantgate.columns/1"] = Field(COLUMNS_SCHEMA, alias="schema")
    only: tuple[Condition, ...] = Field((), description="rows that are traffic: all of these conditions hold")
    time: TimeColumn = TimeColumn()
    end_time: Paths = ("end_time", "endTime", "completed_at", "response.timestamp")
    latency: DurationColumn | tuple[DurationColumn, ...] = (
        DurationColumn(path=("latency_ms", "duration_ms", "response.latency_ms", "metrics.latency_ms"), unit="ms"),
        DurationColumn(path=("latency_s", "duration_s"), unit="s"),
    )
    id: Paths = ("id", "request_id", "requestId", "request.id", "custom_id", "response.id")
    messages: Paths = _inside(_REQUEST, "messages")
    prompt: Paths = _inside(_REQUEST, "prompt")
    tools: Paths = _inside(_REQUEST, "tools", "functions")
    max_tokens: Paths = _inside(_REQUEST, "max_completion_tokens", "max_tokens")
    choices: Paths = Field(
        _inside(_REQUEST[:-1], "n"), description="answers that were asked for; one is replayed, of their mean length"
    )
    prompt_tokens: Paths = _inside(_RESPONSE, "usage.prompt_tokens", "usage.input_tokens", "prompt_tokens")
    output_tokens: Paths = _inside(
        _RESPONSE, "usage.completion_tokens", "usage.output_tokens", "completion_tokens", "output_tokens"
    )
    answer: Paths = (
        *_inside(_RESPONSE, "choices.0.message", "choices.0.text"),
        *("output", "completion", "response_text", "response", "answer"),
    )
    status: Paths = (
        *("status_code", "http_status", "response.status_code", "response.status", "status"),
        "response_status",
    )
    error: Paths = ("error", "response.error", "response_body.error")
    session: Paths = (
        *("session_id", "sessionId", "session", "conversation_id", "conversationId", "conversation", "chat_id"),
        *_inside(_REQUEST[:-1], "session_id", "conversation_id", "metadata.session_id", "metadata.conversation_id"),
        *("metadata.session_id", "metadata.conversation_id", "headers.x-session-id", "request.headers.x-session-id"),
    )
    user: Paths = _inside(_REQUEST, "user")
    slo_class: ClassColumn = Field(ClassColumn(), alias="class")
    tags: Paths = ("tags", "task", "metadata.tags", "metadata.task", "request.metadata.task")


def load_column_map(path: Path) -> ColumnMap:
    """Reads a column map file. Raises ConfigurationError with file, line and field."""
    return load_yaml_model(path, ColumnMap)
