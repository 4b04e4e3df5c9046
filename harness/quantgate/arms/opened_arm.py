"""An arm that is ready to be replayed and asked: its target, its view for the quality tiers, what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from quantgate.arms.config import BundledArmConfig, OpenAIArmConfig
from quantgate.arms.tokenizer import RunTokenizer
from quantgate.quality.quality_model import QualityModel
from quantgate.replay.arms import ReplayArm
from quantgate.replay.prefix_sharing import UNKNOWN_CACHE, PrefixCache
from quantgate.store.manifest import ModelManifest


@dataclass(frozen=True, slots=True)
class OpenedArm:
    """tokenizer: None where nobody knows it; max_context_tokens: longest prompt plus output, None where not told.

    honours_ignore_eos: whether output lengths can be forced on it; None where its probe could not tell. turn: a
    context around each of its turns, which find it empty; None for servers, which are reset by a call of their own.
    prefix_cache: what is known of it.
    """

    config: BundledArmConfig | OpenAIArmConfig
    replay: ReplayArm
    quality_model: QualityModel
    tokenizer: RunTokenizer | None
    max_context_tokens: int | None
    model: ModelManifest
    honours_ignore_eos: bool | None = True
    turn: Callable[[], AbstractAsyncContextManager[None]] | None = None
    prefix_cache: PrefixCache = UNKNOWN_CACHE
