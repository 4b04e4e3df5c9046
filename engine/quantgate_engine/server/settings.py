"""The server's settings, validated once."""

from __future__ import annotations

from dataclasses import dataclass, field

from quantgate_engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of one server.

    served_name: the model's name in requests and answers.
    api_keys: keys that are let in; none lets everybody in.
    requests_per_minute: of each key; None does not limit.
    max_body_bytes: of one request. body_patience_s: how long it may take to come.
    max_queue: requests that may wait beside those that the engine runs.
    request_timeout_s: from a request's arrival at the engine to its end.
    drain_s: how long running requests may go on once the server is told to stop.
    max_unread_chunks: tokens that a stream keeps for a client that reads slowly.
    default_max_tokens: of a chat answer whose request states no limit.
    seed: of the draws of requests that state none; number k of them draws by the k-th seed made of it.
    """

    served_name: str
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    requests_per_minute: int | None = None
    max_body_bytes: int = 8 * 1024 * 1024
    body_patience_s: float = 60.0
    max_queue: int = 256
    request_timeout_s: float = 600.0
    drain_s: float = 30.0
    max_unread_chunks: int = 1024
    default_max_tokens: int = 1024
    seed: int = 0

    def __post_init__(self) -> None:
        checks = {
            "requests_per_minute": (self.requests_per_minute is None or self.requests_per_minute >= 1, "at least 1"),
            "max_body_bytes": (self.max_body_bytes >= 1, "at least 1"),
            "body_patience_s": (self.body_patience_s > 0, "above 0"),
            "max_queue": (self.max_queue >= 0, "0 or more"),
            "request_timeout_s": (self.request_timeout_s > 0, "above 0"),
            "drain_s": (self.drain_s >= 0, "0 or more"),
            "max_unread_chunks": (self.max_unread_chunks >= 1, "at least 1"),
            "default_max_tokens": (self.default_max_tokens >= 1, "at least 1"),
        }
        for name, (valid, expected) in checks.items():
            if not valid:
                raise ConfigurationError(f"ServerSettings.{name} is {getattr(self, name)!r}; expected {expected}.")
