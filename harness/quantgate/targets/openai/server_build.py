"""What quantgate's own server adds to its entry in /v1/models, under the key `quantgate`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class ServerBuild(BaseModel):
    """The loaded model as the server measured it (see `targets.base.ArmDescription`); None: not told.

    slo_classes: those that its engine schedules by, the most urgent first.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    scheme: str | None = None
    weights_sha256: str | None = None
    tokenizer_sha256: str | None = None
    kv_dtype: str | None = None
    kv_bytes_per_token: int | None = None
    compute_dtype: str | None = None
    head_dtype: str | None = None
    weight_bytes: int | None = None
    linear_weight_bytes: int | None = None
    load_seconds: float | None = None
    kernel_set: str | None = None
    kernel_paths: dict[str, str] = {}
    recorded_steps: int | None = None
    max_context_tokens: int | None = None
    slo_classes: tuple[str, ...] = ()


def build_in(entry: dict[str, Any]) -> ServerBuild | None:
    """None for another server, or one of another version that tells it in another way."""
    try:
        return ServerBuild.model_validate(entry["quantgate"])
    except (KeyError, ValidationError):
        return None
