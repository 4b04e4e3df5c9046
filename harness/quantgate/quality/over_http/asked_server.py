"""One server as the quality tiers ask it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quantgate.capabilities.server_calls import ServerCalls
from quantgate.capabilities.token_texts import TokenTexts


@dataclass(frozen=True, slots=True)
class AskedServer:
    """alternatives: tokens listed a position, as the run compares them; most_alternatives: as the server can.

    common: fields of every body: the model, and what the user adds.
    """

    calls: ServerCalls
    common: Mapping[str, Any]
    texts: TokenTexts
    alternatives: int
    most_alternatives: int
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    """For the server's own chat template."""

    async def complete(self, prompt_ids: Sequence[int], **fields: Any) -> Any:
        body = {**self.common, "prompt": list(prompt_ids), **fields}
        return await self.calls.post_json("/v1/completions", body)
