"""An arm behind an endpoint, as far as its server tells."""

from __future__ import annotations

from quantgate.capabilities.capabilities import Capabilities
from quantgate.targets.base import ArmDescription, ArmRole
from quantgate.targets.openai.server_build import ServerBuild
from quantgate.targets.openai.server_facts import ServerFacts

_UNKNOWN = "unknown"


def describe(
    facts: ServerFacts,
    *,
    arm_id: str,
    role: ArmRole,
    url: str,
    scheme: str | None,
    capabilities: Capabilities | None,
    notes: tuple[str, ...],
) -> ArmDescription:
    """`scheme`: as the suite says, where the server does not tell it itself.

    The URL is a note and no part of `target`: arms on two servers are served by the same kind of target.
    """
    build = facts.build or ServerBuild()
    return ArmDescription(
        arm_id=arm_id,
        role=role,
        target="OpenAI-compatible server",
        model=facts.model,
        scheme=build.scheme or scheme or _UNKNOWN,
        kv_dtype=build.kv_dtype or _UNKNOWN,
        compute_dtype=build.compute_dtype or _UNKNOWN,
        head_dtype=build.head_dtype or _UNKNOWN,
        kv_bytes_per_token=build.kv_bytes_per_token,
        weight_bytes=build.weight_bytes,
        linear_weight_bytes=build.linear_weight_bytes,
        load_seconds=build.load_seconds,
        kernel_set=build.kernel_set or _UNKNOWN,
        kernel_paths=dict(build.kernel_paths),
        recorded_steps=build.recorded_steps,
        notes=(f"served at {url}", *notes),
        server=facts.server,
        tokenizer_fingerprint=None if capabilities is None else capabilities.tokenizer_fingerprint,
        capabilities={} if capabilities is None else capabilities.model_dump(mode="json"),
    )
