"""Computes steps with torch: one model, one scheme, one paged KV cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from quantgate_engine.clock import Clock, MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.base import BlockCopy, NoToken, SampledToken, ScheduledSequence, TokenScore
from quantgate_engine.executor.batch_input import rows_of
from quantgate_engine.executor.device.accelerator import Accelerator
from quantgate_engine.executor.device.choice import chosen_device, shown_device
from quantgate_engine.executor.device.cuda_accelerator import CudaAccelerator
from quantgate_engine.executor.fork_lock import ForkLock
from quantgate_engine.executor.kv_cache import HOST, block_count, context_limit, require_cache_fits
from quantgate_engine.executor.kv_format import KV_FORMATS, KVFormat
from quantgate_engine.executor.machine_limits import require_threads
from quantgate_engine.executor.memory_errors import as_memory_errors, raise_memory_error, refusing_what_does_not_fit
from quantgate_engine.executor.step_parts import parts_on_device, parts_on_host
from quantgate_engine.executor.teacher_forcing import TeacherForcing
from quantgate_engine.model.config import read_decoder_config
from quantgate_engine.model.decoder import Decoder
from quantgate_engine.model.linear_layers import linear_layers
from quantgate_engine.model.loader import WeightLoader
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.model.stored_layers import StoredLayers
from quantgate_engine.model_info import ModelInfo
from quantgate_engine.quant.layer_schemes import find_schemes
from quantgate_engine.quant.perturbation import WeightPerturbation
from quantgate_engine.quant.scheme_text import SchemeChoice
from quantgate_engine.quant.schemes import BASELINE
from quantgate_engine.quant.stored_scheme import STORED
from quantgate_engine.sampling.finite_rows import NOT_FINITE, rows_beyond_norm
from quantgate_engine.sampling.sampler import SamplingRow, sample
from quantgate_engine.sampling_params import LogitsNeed
from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.registry import make_kernel_set
from quantgate_kernels.step_program import NO_BEST_TOKEN
from quantgate_kernels.types import KVLayer, dtype_name, stored_bytes
from quantgate_kernels.unavailable import KernelSetUnavailableError


class _Draw(NamedTuple):
    """Tokens of a step that are chosen alike: whose, and from which of the output rows (None: from all)."""

    need: LogitsNeed
    indices: list[int]
    sequences: list[ScheduledSequence]
    rows: Tensor | None


class TorchExecutor:
    """Implements `Executor`. Calls are serialised by a lock: a step and `logits` may come from different threads."""

    def __init__(
        self,
        decoder: Decoder,
        info: ModelInfo,
        config: EngineConfig,
        kv_format: KVFormat,
        accelerator: Accelerator | None = None,
    ) -> None:
        """accelerator: what works beside the host; None where the host computes itself.

        Raises ConfigurationError where steps and caches do not fit into memory.
        """
        model = decoder.config
        self.block_size = config.block_size
        self.max_context_tokens = context_limit(config, model.max_position_embeddings)
        self.vocab_size = model.vocab_size
        self.eos_token_ids = model.eos_token_ids
        self._decoder = decoder
        self._kv_format = kv_format
        self._accelerator = accelerator
        self._device = decoder.weights.device
        self.cache_identity: tuple[str, ...] = (info.weights_sha256, info.scheme, info.kv_dtype, info.kernel_set)
        if accelerator is None:
            parts = parts_on_host(decoder, config, kv_format, self.max_context_tokens)
        else:
            parts = parts_on_device(decoder, config, kv_format, self.max_context_tokens, accelerator)
        self._steps, self._draws_there, recorded_steps, self.num_blocks, self._cache, self._copy_blocks = parts
        self.info = replace(info, recorded_steps=recorded_steps)
        self._lock = ForkLock()
        self._teacher_forcing = TeacherForcing(
            decoder,
            self._allocate,
            block_size=self.block_size,
            num_blocks=self.num_blocks,
            max_context_tokens=self.max_context_tokens,
            max_step_tokens=config.max_step_tokens,
        )

    @classmethod
    def load(
        cls,
        folder: ModelFolder,
        scheme: SchemeChoice | None,
        config: EngineConfig,
        kernels: KernelSet | None = None,
        perturbation: WeightPerturbation | None = None,
        accelerator: Accelerator | None = None,
        clock: Clock | None = None,
    ) -> TorchExecutor:
        """scheme: None is `stored` for a checkpoint that is quantized, else `fp16`.

        accelerator: what to compute with; None takes that of the config's device.

        Raises ModelError for a folder that cannot be served.

        Raises ConfigurationError for an unknown or unfit scheme, a device or a kernel set that is not there, and for
        more threads or memory than the machine has.
        """
        clock = clock or MonotonicClock()
        started_ns = clock.now_ns()
        if config.threads is not None:
            require_threads(config.threads)
            torch.set_num_threads(config.threads)
        stored = StoredLayers.of(folder.path)
        chosen = find_schemes(scheme or (BASELINE if stored is None else STORED.name))
        target = accelerator.device if accelerator else chosen_device(config.device)
        kernels = kernels or _kernel_set(config, target)
        precision = chosen.precision(target, kernels)
        model = read_decoder_config(folder.path)
        kv_format = KV_FORMATS[config.kv_dtype](precision.compute)
        context = context_limit(config, model.max_position_embeddings)
        if config.num_kv_blocks is not None or target.type == HOST.type:
            require_cache_fits(config, model, kv_format, block_count(config, context), target)
        layers = linear_layers(chosen, precision, target, stored, perturbation)
        loader = WeightLoader(model, layers, precision, kernels, target)
        with refusing_what_does_not_fit(f"{folder.name} as {chosen.name}", "take a scheme of smaller weights"):
            weights = loader.load(folder.path)
        decoder = Decoder(model, weights, kernels, precision.compute, context)
        info = ModelInfo(
            name=folder.name,
            scheme=chosen.name,
            device=shown_device(target),
            weight_bytes=weights.stored_bytes(),
            linear_weight_bytes=sum(stored_bytes(projection.weight) for projection in weights.projections()),
            load_seconds=(clock.now_ns() - started_ns) / 1e9,
            compute_dtype=layers.arithmetic(),
            head_dtype=dtype_name(precision.storage),
            kv_dtype=kv_format.name,
            kv_bytes_per_token=kv_format.bytes_per_token(model),
            kernel_set=kernels.name,
            kernel_paths=kernels.paths,
            provenance={**folder.provenance, **layers.provenance()},
            weights_sha256=folder.weights_sha256,
            tokenizer_sha256=folder.tokenizer_sha256,
        )
        if accelerator is None and target.type == "cuda":
            accelerator = CudaAccelerator(target)
        return cls(decoder, info, config, kv_format, accelerator)

    def beside(self, config: EngineConfig) -> TorchExecutor:
        """Another executor over the same weights, with a KV cache of its own.

        Raises ConfigurationError where that cache does not fit into the memory that the others leave.
        """
        return TorchExecutor(self._decoder, self.info, config, self._kv_format, self._accelerator)

    def copy_blocks(self, copies: tuple[BlockCopy, ...]) -> None:
        with self._lock, torch.inference_mode(), as_memory_errors():
            self._copy_blocks(copies)

    def execute(self, sequences: tuple[ScheduledSequence, ...]) -> list[SampledToken | NoToken | None]:
        if not sequences:
            return []
        with self._lock:
            try:
                return self._execute(sequences)
            except RuntimeError as failure:
                # Not by `as_memory_errors`: to enter it takes 12 microseconds when the last step has swept the caches.
                raise_memory_error(failure)
                raise

    def _execute(self, sequences: tuple[ScheduledSequence, ...]) -> list[SampledToken | NoToken | None]:
        rows = rows_of(sequences, self.block_size)
        sampled = [index for index, sequence in enumerate(sequences) if sequence.sample]
        last_rows = [rows.query_starts[index + 1] - 1 for index in sampled]
        # Where these are all rows of the step, nobody need say so.
        output_rows = None if len(last_rows) == len(rows.token_ids) else last_rows
        drawn: list[SampledToken | NoToken | None] = [None] * len(sequences)
        if all(sequences[index].params.logits_need is LogitsNeed.BEST for index in sampled):
            best = self._steps.next_tokens(rows, self._cache, output_rows)
            for index, token_id in zip(sampled, best, strict=True):
                drawn[index] = _taken(sequences[index], token_id)
            return drawn
        with torch.inference_mode():
            # Before the forward pass, which leaves nothing of all this in the processor's caches.
            draws = self._draws(sequences, sampled)
            hidden = self._steps.hidden_states(rows, self._cache, output_rows)
            for draw in draws:
                own = hidden if draw.rows is None else hidden.index_select(0, draw.rows)
                for index, token in zip(draw.indices, self._sample(own, draw), strict=True):
                    drawn[index] = token
            for row in rows_beyond_norm(hidden):
                drawn[sampled[row]] = NOT_FINITE
        return drawn

    def device_joules(self) -> float | None:
        """See `Accelerator.joules`; the host tells nothing."""
        return None if self._accelerator is None else self._accelerator.joules()

    def logits(self, token_ids: Sequence[int], chunk_tokens: int | None = None) -> Tensor:
        """See `TeacherForcing.logits`."""
        with self._lock:
            return self._teacher_forcing.logits(token_ids, chunk_tokens)

    def token_scores(self, token_ids: Sequence[int], alternatives: int) -> list[TokenScore]:
        """See `TeacherForcing.token_scores`."""
        with self._lock:
            return self._teacher_forcing.token_scores(token_ids, alternatives)

    def continuation_logits(
        self, prompt_ids: Sequence[int], continuations: Sequence[Sequence[int]], chunk_tokens: int | None = None
    ) -> list[Tensor]:
        """See `TeacherForcing.continuation_logits`."""
        with self._lock:
            return self._teacher_forcing.continuation_logits(prompt_ids, continuations, chunk_tokens)

    def _draws(self, sequences: tuple[ScheduledSequence, ...], sampled: list[int]) -> list[_Draw]:
        """Of the sequences that are to draw a token, those of one need each; nobody pays for what another one needs."""
        draws: list[_Draw] = []
        needs = [sequences[index].params.logits_need for index in sampled]
        for need in LogitsNeed:
            places = [place for place, own in enumerate(needs) if own is need]
            if places:
                indices = [sampled[place] for place in places]
                rows = None if len(places) == len(sampled) else torch.tensor(places, device=self._device)
                draws.append(_Draw(need, indices, [sequences[index] for index in indices], rows))
        return draws

    def _sample(self, hidden: Tensor, draw: _Draw) -> Sequence[SampledToken | NoToken]:
        """hidden [R, hidden], one row per sequence of the draw."""
        if draw.need is not LogitsNeed.BEST:
            rows = [_sampling_row(sequence) for sequence in draw.sequences]
            if self._draws_there is not None and draw.need is LogitsNeed.LIKELIEST:
                tokens = self._draws_there.tokens(hidden, rows)
                if tokens is not None:
                    return [_drawn(token) for token in tokens]
            return sample(self._steps.logits(hidden, exact=draw.need is LogitsNeed.ALL), rows)
        best: list[int] = self._steps.best_tokens(hidden).tolist()
        return [_taken(sequence, token) for sequence, token in zip(draw.sequences, best, strict=True)]

    def _allocate(self, blocks: int) -> tuple[KVLayer, ...]:
        return self._kv_format.allocate(self._decoder.config, blocks, self.block_size, self._device).layers


def _kernel_set(config: EngineConfig, device: torch.device) -> KernelSet:
    try:
        return make_kernel_set(config.kernel_set, device.type, deterministic=config.deterministic)
    except KernelSetUnavailableError as unavailable:
        raise ConfigurationError(
            f"EngineConfig.kernel_set asks for the `{config.kernel_set}` kernels, which cannot run here: {unavailable}."
        ) from unavailable


def _taken(sequence: ScheduledSequence, best: int) -> SampledToken | NoToken:
    if best == NO_BEST_TOKEN:
        return NOT_FINITE
    forced = sequence.forced_token_id
    return SampledToken(best if forced is None else forced)


def _drawn(token: int) -> SampledToken | NoToken:
    return NOT_FINITE if token == NO_BEST_TOKEN else SampledToken(token)


def _sampling_row(sequence: ScheduledSequence) -> SamplingRow:
    return SamplingRow(
        params=sequence.params,
        position=sequence.start_position + len(sequence.token_ids),
        forced_token_id=sequence.forced_token_id,
        history=sequence.history,
    )
