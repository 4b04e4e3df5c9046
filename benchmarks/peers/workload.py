"""The token ids that every engine is given. Standard library only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("workload.json")

SMALL_PROMPT_TOKENS = 64
SMALL_OUTPUT_TOKENS = 8
SMALL_REQUESTS = 6
SMALL_ACTIVE = 4

ROOM_TOKENS = 1024
"""Context that engines which want to know it beforehand are loaded with: room for the longest request."""


@dataclass(frozen=True, slots=True)
class Workload:
    """`single_prompt` is answered alone, `batch_prompts` all at once with at most `active` in progress."""

    single_prompt: list[int]
    single_tokens: int
    batch_prompts: list[list[int]]
    batch_tokens: int
    active: int

    def __post_init__(self) -> None:
        prompts = [
            len(self.single_prompt) + self.single_tokens,
            *(len(p) + self.batch_tokens for p in self.batch_prompts),
        ]
        if max(prompts) > ROOM_TOKENS:
            raise ValueError(
                f"the longest request has {max(prompts)} tokens; engines are loaded with room for {ROOM_TOKENS}"
            )

    def in_small(self) -> Workload:
        """A few tokens of it, to try the machinery."""
        return Workload(
            single_prompt=self.single_prompt[:SMALL_PROMPT_TOKENS],
            single_tokens=SMALL_OUTPUT_TOKENS,
            batch_prompts=[prompt[: 40 + index] for index, prompt in enumerate(self.batch_prompts[:SMALL_REQUESTS])],
            batch_tokens=SMALL_OUTPUT_TOKENS,
            active=SMALL_ACTIVE,
        )

    @property
    def batch_output_tokens(self) -> int:
        return len(self.batch_prompts) * self.batch_tokens


def read_workload(file: Path = FILE) -> Workload:
    """Raises KeyError or ValueError where the file is no workload."""
    content = json.loads(file.read_text(encoding="utf-8"))
    single, batch = content["single"], content["batch"]
    return Workload(
        single_prompt=single["prompt"],
        single_tokens=single["max_new_tokens"],
        batch_prompts=batch["prompts"],
        batch_tokens=batch["max_new_tokens"],
        active=batch["max_concurrency"],
    )
