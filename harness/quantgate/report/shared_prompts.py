"""How much of the prompts could come from a prefix cache, and how much did, in words for report and terminal."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.report.figures import Table
from quantgate.report.numbers import NOTHING, count, percent
from quantgate.store.manifest import FidelityCertificate, PrefixSharing


def sharing_table(certificates: Sequence[FidelityCertificate]) -> Table | None:
    """None where no arm's prompts promise anything and no arm found anything."""
    told = [(c.arm_id, c.prefix_sharing) for c in certificates if c.prefix_sharing is not None]
    if not any(sharing.promised_tokens or sharing.cached_tokens for _, sharing in told):
        return None
    return Table(
        ["arm", "prompts share", "from the cache", "requests", "KV blocks of the cache"],
        [
            [arm_id, _promised(sharing), _found(sharing), count(sharing.requests), _size(sharing)]
            for arm_id, sharing in told
        ],
    )


def sharing_lines(certificates: Sequence[FidelityCertificate]) -> list[str]:
    """A line for each arm that told what it found."""
    return [
        f"Prefix sharing of {c.arm_id}: prompts share {_promised(sharing)} of their tokens, {_found(sharing)} came "
        "from the cache."
        for c in certificates
        if (sharing := c.prefix_sharing) is not None
        and sharing.enabled is not False
        and sharing.cached_tokens is not None
        and (sharing.promised_tokens or sharing.cached_tokens)
    ]


def _promised(sharing: PrefixSharing) -> str:
    return _share(sharing.promised_tokens, sharing)


def _found(sharing: PrefixSharing) -> str:
    if sharing.cached_tokens is None:
        return "not told"
    return "off" if sharing.enabled is False else _share(sharing.cached_tokens, sharing)


def _share(tokens: int, sharing: PrefixSharing) -> str:
    return percent(tokens / sharing.prompt_tokens) if sharing.prompt_tokens else NOTHING


def _size(sharing: PrefixSharing) -> str:
    blocks = "number not told" if sharing.cache_blocks is None else count(sharing.cache_blocks)
    return f"{blocks}, {sharing.block_tokens} tokens each"
