"""What is replayed: the same request ids, prompt tokens, schedule and output lengths for every arm."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from quantgate.traces.record import Message
from quantgate.traces.transform_record import TransformRecord


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One request, ready to send. `output_tokens` is forced when `ignore_eos` is true, else it is the upper limit.

    `scheduled_ns` counts from the plan's start; `block_index` names the counterbalanced block it belongs to (all turns
    of a session lie in one block). `messages` or `prompt_text` is what the trace told, for targets that take text;
    `prompt_token_ids` is empty where no tokenizer is known, and `prompt_token_count` then what the trace counted.
    """

    request_id: str
    scheduled_ns: int
    prompt_token_ids: tuple[int, ...]
    output_tokens: int
    ignore_eos: bool = True
    slo_class: str = "interactive"
    session_id: str | None = None
    turn: int = 1
    think_time_ns: int = 0
    tags: tuple[str, ...] = ()
    checker: dict[str, Any] | None = field(default=None, hash=False)
    disconnect_after_tokens: int | None = None
    disconnect_after_ns: int | None = None
    read_tokens_per_s: float | None = None
    block_index: int = 0
    messages: tuple[Message, ...] | None = None
    prompt_text: str | None = None
    prompt_token_count: int | None = None

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt, as far as they are known (0: nobody counted them)."""
        return len(self.prompt_token_ids) or self.prompt_token_count or 0


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """Requests in order of schedule, where they came from, and what was done to them."""

    requests: tuple[PlannedRequest, ...]
    source: str
    source_sha256: str
    transforms: tuple[TransformRecord, ...] = ()
    seed: int = 0

    @property
    def prompt_tokens(self) -> int:
        return sum(request.prompt_tokens for request in self.requests)

    @property
    def output_tokens(self) -> int:
        return sum(request.output_tokens for request in self.requests)

    @property
    def span_ns(self) -> int:
        return self.requests[-1].scheduled_ns - self.requests[0].scheduled_ns if self.requests else 0

    @property
    def num_blocks(self) -> int:
        return 1 + max((request.block_index for request in self.requests), default=-1)

    def block(self, index: int) -> tuple[PlannedRequest, ...]:
        return tuple(request for request in self.requests if request.block_index == index)

    def sha256(self) -> str:
        """Hash of everything that the arms are given: ids, tokens, schedule, lengths, classes, sessions, blocks."""
        digest = hashlib.sha256()
        for r in self.requests:
            row = [
                r.request_id, r.scheduled_ns, r.prompt_token_ids, r.output_tokens, r.ignore_eos, r.slo_class,
                r.session_id, r.turn, r.think_time_ns, r.tags, r.checker, r.disconnect_after_tokens, r.block_index,
            ]  # fmt: skip
            if not r.prompt_token_ids:
                row.append([[(m.role, m.content) for m in r.messages or ()], r.prompt_text, r.prompt_token_count])
            if r.disconnect_after_ns is not None or r.read_tokens_per_s is not None:
                # Only where there is such a client, so that plans without one keep the hashes that they had.
                row.append({"disconnect_after_ns": r.disconnect_after_ns, "read_tokens_per_s": r.read_tokens_per_s})
            digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
        return digest.hexdigest()
