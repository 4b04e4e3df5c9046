"""`quantgate bench`: prefill and decode throughput of each arm, measured alone, side by side in one process."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from quantgate.bench.bench_bounds import RateBound, decode_bound, prefill_bound
from quantgate.bench.measure import decode_output_tokens, decode_tok_s, prefill_tok_s
from quantgate.bounds.decoder_work import decoder_work
from quantgate.bounds.device_limits import device_limits
from quantgate.environment import capture_environment
from quantgate.progress import ProgressReporter
from quantgate.quantizing.preparing import preparation, prepare_builds
from quantgate_engine import LLM, EngineConfig
from quantgate_engine.device_name import DeviceName
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.kv.settings import KVDtypeName
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.config import DecoderConfig, read_decoder_config
from quantgate_engine.quant.layer_schemes import find_schemes
from quantgate_kernels.roofline import DeviceLimits

BENCH_SCHEMA = "quantgate.bench/1"
_BLOCK_SIZE = 16


@dataclass(frozen=True, slots=True)
class BenchSettings:
    model: str
    schemes: tuple[str, ...]
    prompt_lengths: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    context_tokens: int
    repeats: int
    seed: int
    threads: int | None
    max_step_tokens: int
    device: DeviceName = "auto"
    kv_dtype: KVDtypeName = "auto"
    deterministic: bool = False

    @property
    def step_tokens(self) -> int:
        return max(self.max_step_tokens, max(self.batch_sizes) + 1)

    @property
    def longest_prefill(self) -> int:
        """Tokens of the longest prompt and of the one token that ends its measurement."""
        return max(self.prompt_lengths) + 1

    @property
    def longest_decode(self) -> int:
        """Tokens of one request, prompt and answer, at the largest batch."""
        return self.context_tokens + decode_output_tokens(max(self.batch_sizes), self.context_tokens, self.step_tokens)

    def engine_config(self) -> EngineConfig:
        """A pool that holds the whole largest batch at once: a request that waits would not decode with the others."""
        longest = max(self.longest_prefill, max(self.batch_sizes) * _in_blocks(self.longest_decode))
        return EngineConfig(
            max_active_requests=max(self.batch_sizes),
            max_step_tokens=self.step_tokens,
            block_size=_BLOCK_SIZE,
            num_kv_blocks=_in_blocks(longest) // _BLOCK_SIZE,
            max_context_tokens=max(self.longest_prefill, self.longest_decode),
            threads=self.threads,
            device=self.device,
            kv_dtype=self.kv_dtype,
            deterministic=self.deterministic,
        )

    def require_context(self, limit: int) -> None:
        """Raises ConfigurationError where a measurement needs a longer context than the model has."""
        if self.longest_prefill > limit:
            raise ConfigurationError(
                f"--prompt-lengths has {max(self.prompt_lengths)}, and the context of {self.model} holds {limit} "
                f"tokens, one of them for the answer; expected at most {limit - 1}."
            )
        if self.longest_decode > limit:
            raise ConfigurationError(
                f"--context {self.context_tokens} at a batch of {max(self.batch_sizes)} needs {self.longest_decode} "
                f"tokens a request, and the context of {self.model} holds {limit}; lower --context or --batch-sizes."
            )


def _in_blocks(tokens: int) -> int:
    """Tokens rounded up to whole KV blocks."""
    return -(-tokens // _BLOCK_SIZE) * _BLOCK_SIZE


def bench_arms(settings: BenchSettings, progress: ProgressReporter) -> dict[str, Any]:
    """Loads every arm, then measures each figure on all arms before the next figure. Returns the JSON document.

    Raises ModelError or ConfigurationError before anything is loaded where a setting does not fit.
    """
    for scheme in settings.schemes:
        find_schemes(scheme)
    shape = read_decoder_config(resolve_model(settings.model).path)
    settings.require_context(shape.max_position_embeddings)
    prepare_builds([(settings.model, scheme) for scheme in settings.schemes], progress)
    # Before there are arms: nothing may compute beside it.
    limits = device_limits(settings.device, settings.threads)
    arms = _load(settings, progress)
    results: dict[str, dict[str, Any]] = {scheme: _described(llm) for scheme, llm in arms.items()}
    figures = len(settings.prompt_lengths) + len(settings.batch_sizes)
    with progress.phase("measure", figures * len(arms)) as advance:
        done = 0
        for tokens in settings.prompt_lengths:
            for scheme, llm in arms.items():
                rate = prefill_tok_s(llm, tokens, settings.repeats, settings.seed)
                results[scheme]["prefill_tok_s"][str(tokens)] = rate
                advance(done := done + 1, f"{scheme} prefill {tokens}")
        for batch in settings.batch_sizes:
            for scheme, llm in arms.items():
                rate = decode_tok_s(llm, batch, settings.context_tokens, settings.repeats, settings.seed)
                results[scheme]["decode_tok_s"][str(batch)] = rate
                advance(done := done + 1, f"{scheme} decode {batch}")
    for scheme, llm in arms.items():
        results[scheme]["kernel_paths"] = dict(llm.info.kernel_paths)
        results[scheme] |= _against_bounds(results[scheme], _bounds(llm, shape, settings, limits))
    return {
        "schema": BENCH_SCHEMA,
        "model": settings.model,
        "decode_context_tokens": settings.context_tokens,
        "repeats": settings.repeats,
        "deterministic": settings.deterministic,
        "device_limits": limits and asdict(limits),
        "environment": capture_environment(next(iter(arms.values())).info.device).model_dump(),
        "arms": results,
    }


def _load(settings: BenchSettings, progress: ProgressReporter) -> dict[str, LLM]:
    arms = {}
    with progress.phase("load", len(settings.schemes)) as advance:
        for loaded, scheme in enumerate(settings.schemes, start=1):
            arms[scheme] = LLM(settings.model, scheme, settings.engine_config(), preparation=preparation())
            advance(loaded, scheme)
    return arms


def _described(llm: LLM) -> dict[str, Any]:
    info = llm.info
    return {
        "scheme": info.scheme,
        "device": info.device,
        "compute_dtype": info.compute_dtype,
        "head_dtype": info.head_dtype,
        "kv_dtype": info.kv_dtype,
        "kv_bytes_per_token": info.kv_bytes_per_token,
        "kernel_set": info.kernel_set,
        "recorded_steps": info.recorded_steps,
        "load_seconds": info.load_seconds,
        "weight_bytes": info.weight_bytes,
        "linear_weight_bytes": info.linear_weight_bytes,
        "prefill_tok_s": {},
        "decode_tok_s": {},
    }


def _bounds(
    llm: LLM, shape: DecoderConfig, settings: BenchSettings, limits: DeviceLimits | None
) -> dict[str, dict[str, RateBound | None]]:
    """By figure and size; None where the device has no measured limits."""
    work = decoder_work(shape, llm.info)
    return {
        "prefill_tok_s": {
            str(tokens): None if limits is None else prefill_bound(work, limits, tokens, settings.step_tokens)
            for tokens in settings.prompt_lengths
        },
        "decode_tok_s": {
            str(batch): None if limits is None else decode_bound(work, limits, batch, settings.context_tokens)
            for batch in settings.batch_sizes
        },
    }


def _against_bounds(arm: dict[str, Any], bounds: dict[str, dict[str, RateBound | None]]) -> dict[str, Any]:
    """Beside each figure of `arm` its bound, the share of it that was reached, and where it comes from; or null."""
    told: dict[str, Any] = {"bounds": {}, "bound_shares": {}, "bound_details": {}}
    for figure, sizes in bounds.items():
        told["bounds"][figure] = {size: bound and bound.tok_s for size, bound in sizes.items()}
        told["bound_shares"][figure] = {
            size: bound and arm[figure][size] / bound.tok_s for size, bound in sizes.items()
        }
        told["bound_details"][figure] = {size: bound and bound.to_json() for size, bound in sizes.items()}
    return told
