"""Rows of a log that are no traffic to replay: counted by kind, never passed over in silence."""

from __future__ import annotations

from typing import Literal

LeftOutKind = Literal[
    "not_selected",
    "failed",
    "without_prompt",
    "several_prompts",
    "prompt_of_token_ids",
    "without_output_length",
    "empty_answer",
]
"""not_selected: the column map's `only` says so. failed: status of 400 or more, or an error. several_prompts: a request
with a list of prompts. prompt_of_token_ids: nobody could redact it, and another tokenizer reads other text in it.
without_output_length: neither usage, nor an answer, nor a limit. empty_answer: the answer had no token."""


class RowLeftOutError(Exception):
    """This row is left out; `reason` completes "line 3: ..." for files that are read strictly."""

    def __init__(self, kind: LeftOutKind, reason: str) -> None:
        super().__init__(reason)
        self.kind: LeftOutKind = kind
        self.reason = reason
