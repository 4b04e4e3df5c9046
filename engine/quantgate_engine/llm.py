"""The synchronous front: load a model, generate, look at logits."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quantgate_engine.argument_checks import is_whole, refuse_argument, require_kind
from quantgate_engine.clock import Clock, MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.counted import counted
from quantgate_engine.engine import EngineCore
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.executor.compute_thread import on_compute_thread, repeat_on_compute_thread
from quantgate_engine.outputs import RequestOutput, times_of
from quantgate_engine.preparation import Preparation
from quantgate_engine.prompts import Prompt, encode_prompt
from quantgate_engine.request import TRANSITIONS, AbortCause, FinishReason, Request, RequestState
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.step_record import StepRecord
from quantgate_engine.text.answer_text import AnswerText

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerFast

    from quantgate_engine.executor.base import TokenScore
    from quantgate_engine.model_info import ModelInfo
    from quantgate_engine.quant.perturbation import WeightPerturbation
    from quantgate_engine.quant.scheme_text import SchemeChoice


class LLM:
    """A loaded model under one quantization scheme.

    model: a known name, a Hugging Face folder, a GGUF file or a Hub id. scheme: `fp16`, `int4-g64`, `int4-g64-gptq`,
    ..., or a map from patterns of layers' names to those that quantize at load; None takes a quantized checkpoint as it
    is stored, others as `fp16`.
    config: the engine's settings; or give its fields as keywords (`max_active_requests=16`), not both.
    clock: where the engine reads the time (the machine's monotonic clock by default).
    perturbation: planted noise on the weights, to prove that a regression is seen.
    preparation: what schemes that quantize a model once and into the cache (`int4-g64-gptq`, ...) are to know and tell.

    Raises ModelError or ConfigurationError where the model, the scheme or a setting is wrong.
    """

    def __init__(
        self,
        model: str | Path,
        scheme: SchemeChoice | None = None,
        config: EngineConfig | None = None,
        *,
        clock: Clock | None = None,
        perturbation: WeightPerturbation | None = None,
        preparation: Preparation | None = None,
        **config_fields: Any,
    ) -> None:
        # Here, not at the top: torch takes seconds to import, and `import quantgate_engine` must not.
        from quantgate_engine.executor.pinned import PinnedExecutor
        from quantgate_engine.executor.torch_executor import TorchExecutor
        from quantgate_engine.model.catalog import resolve_model
        from quantgate_engine.prepared_model import prepared_model

        self.config = _settings(config, config_fields)
        self._folder = prepared_model(resolve_model(model), scheme, preparation or Preparation())
        self._executor = PinnedExecutor(
            on_compute_thread(lambda: TorchExecutor.load(self._folder, scheme, self.config, perturbation=perturbation))
        )
        self.core = EngineCore(self._executor, self.config, clock if clock is not None else MonotonicClock())
        self._request_numbers = itertools.count()

    @property
    def info(self) -> ModelInfo:
        """What was loaded, as measured: bytes, dtypes, kernels, hashes."""
        return self._executor.info

    @property
    def max_context_tokens(self) -> int:
        """Longest prompt plus output that this engine serves: by the model, the settings, and alone in the KV cache."""
        return self.core.max_sequence_tokens

    @property
    def vocab_size(self) -> int:
        """Token ids run from 0 to one below it."""
        return self._executor.vocab_size

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The model's tokenizer, with its chat template."""
        from quantgate_engine.model.tokenizer import load_tokenizer

        return load_tokenizer(str(self._folder.path))

    def engine_beside(self, config: EngineConfig) -> EngineCore:
        """Another engine over the same weights, with queues and a KV cache of its own, on this one's clock.

        What was settled when the model was loaded (threads, kernels, the longest context) holds for it too. Raises
        ConfigurationError where its cache does not fit into memory.
        """
        return EngineCore(self._executor.beside(config), config, self.core.clock)

    def generate(
        self, prompts: str | Iterable[Prompt], params: SamplingParams | Iterable[SamplingParams] | None = None
    ) -> list[RequestOutput]:
        """Completes `prompts` under continuous batching; outputs stand in the order of the prompts.

        params: one setting for all, or one for each prompt; None takes the defaults. A lone string is one prompt.
        Raises ConfigurationError where an argument is of another kind or a prompt could never run (before any is
        started), and RunError where the executor failed. Ctrl-C gives up what is running and leaves the engine ready
        for the next call.
        """
        prompts = _prompts(prompts)
        each = _each_params(params, len(prompts))
        if len(each) != len(prompts):
            raise ConfigurationError(
                f"generate got {counted(len(prompts), 'prompt')} and {len(each)} SamplingParams; expected one, or one "
                "a prompt."
            )
        token_ids = [encode_prompt(self.tokenizer, prompt) for prompt in prompts]
        request_ids = [f"generate-{next(self._request_numbers)}" for _ in prompts]
        for refusal in map(self.core.refusal, request_ids, token_ids, each):
            if refusal is not None:
                raise ConfigurationError(refusal)
        self.core.claim()
        try:
            # A stream that drove the engine before has shut it down behind itself. On the thread that steps, because
            # what an interrupted call has left there comes first.
            on_compute_thread(self.core.reopen)
            answers = self._run(zip(request_ids, token_ids, each, strict=True))
        finally:
            self.core.relinquish()
        return [self._output(*answer) for answer in answers]

    def logits(self, token_ids: Sequence[int], chunk_tokens: int | None = None) -> Tensor:
        """Teacher-forced logits of one sequence through the paged path: float32 [len(token_ids), vocabulary].

        Row i is the model's view of token i + 1. chunk_tokens: prefill in chunks of so many tokens; None takes the step
        budget. It uses blocks of its own, so it may be called while the engine serves. Raises ConfigurationError where
        the sequence is empty, longer than a request may be, or not of the model's token ids, and RunError where the
        logits are NaN or infinite.
        """
        return self._executor.logits(token_ids, chunk_tokens)

    def token_scores(self, token_ids: Sequence[int], alternatives: int = 0) -> list[TokenScore]:
        """Log-probability and rank of each token but the first, after those before it, with its likeliest alternatives.

        As `logits`, it may be called while the engine serves.
        """
        return self._executor.token_scores(token_ids, alternatives)

    def continuation_logits(
        self, prompt_ids: Sequence[int], continuations: Sequence[Sequence[int]], chunk_tokens: int | None = None
    ) -> list[Tensor]:
        """Teacher-forced logits of several continuations of one prompt, which is computed once.

        float32 [len(continuation), vocabulary] for each; row i is the model's view of continuation[i].
        chunk_tokens: prefill the prompt in chunks of so many tokens; None: the engine's step budget. As `logits`, it
        may be called while the engine serves.
        """
        return self._executor.continuation_logits(prompt_ids, continuations, chunk_tokens)

    def device_joules(self) -> float | None:
        """Energy that the device has taken since some moment, so that differences tell; None where it is not reported.

        That of a GPU is the whole GPU's, whoever uses it.
        """
        return self._executor.device_joules()

    def take_steps(self) -> list[StepRecord]:
        """The records of the steps since the last call, in order."""
        return self.core.take_steps()

    def _run(
        self, arrivals: Iterable[tuple[str, tuple[int, ...], SamplingParams]]
    ) -> list[tuple[Request, _StopWatch | None]]:
        """The finished requests, each with its watch where it has stop strings."""
        requests: list[Request] = []
        try:
            requests.extend(self.core.add_request(*arrival) for arrival in arrivals)
            watches = {
                request.request_id: _StopWatch(self.tokenizer, request) for request in requests if request.params.stop
            }
            repeat_on_compute_thread(lambda: self._step(watches))
        finally:
            # There too: a second Ctrl-C may have left a step running.
            on_compute_thread(partial(self._give_up, requests))
        return [(request, watches.get(request.request_id)) for request in requests]

    def _step(self, watches: Mapping[str, _StopWatch]) -> bool:
        """Whether another one is to follow. Raises RunError where a request failed."""
        result = self.core.step()
        for request, token in result.tokens:
            watch = watches.get(request.request_id)
            if watch is not None and watch.stops_at(token.token_id):
                self.core.finish(request.request_id)
        for ended in result.ended:
            if ended.state is not RequestState.FINISHED:
                raise RunError(f"Request {ended.request_id} failed: {ended.error}.")
        return self.core.has_work

    def _give_up(self, requests: Sequence[Request]) -> None:
        """Those that have not ended, and nobody else: an interrupt may let the next call begin before this has run."""
        left = [request for request in requests if TRANSITIONS[request.state]]
        for request in left:
            self.core.abort(request.request_id, AbortCause.CANCELLED)
        if left:
            self.core.step()

    def _output(self, request: Request, watch: _StopWatch | None) -> RequestOutput:
        token_ids = request.output_token_ids
        stopped = request.finish_reason is FinishReason.STOP
        if watch is not None:
            text = watch.text()
            stopped = stopped or watch.stopped
        else:
            text = str(self.tokenizer.decode(list(token_ids[:-1] if stopped else token_ids), skip_special_tokens=True))
        return RequestOutput(
            request_id=request.request_id,
            prompt_token_ids=request.prompt_token_ids,
            token_ids=token_ids,
            text=text,
            finish_reason="stop" if stopped else "length",
            logprobs=tuple(request.output) if request.params.logprobs is not None else None,
            timing=times_of(request),
        )


class _StopWatch:
    """Reads a request's text for its stop strings while it is drawn."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, request: Request) -> None:
        self._request = request
        self._answer = AnswerText(tokenizer, request.params.stop)
        self._pieces: list[str] = []

    @property
    def stopped(self) -> bool:
        return self._answer.stopped

    def stops_at(self, token_id: int) -> bool:
        """True at the token that completes a stop string; the token that itself ended the request is no text."""
        if self._request.finish_reason is not FinishReason.STOP:
            self._pieces.append(self._answer.push(token_id))
        return self._answer.stopped

    def text(self) -> str:
        return "".join(self._pieces) + self._answer.end()


def _prompts(given: object) -> list[Any]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, bytes | bytearray | Mapping):
        raise refuse_argument("generate: prompts", given, "a string, or a sequence of prompts")
    prompts = list(given)
    if any(is_whole(prompt) for prompt in prompts):
        raise refuse_argument("generate: prompts", prompts, "a sequence of prompts; one prompt of token ids is [[...]]")
    return prompts


def _each_params(given: object, prompts: int) -> list[SamplingParams]:
    if given is None or isinstance(given, SamplingParams):
        return [given or SamplingParams()] * prompts
    each: list[Any] = list(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else [given]
    for params in each:
        require_kind("generate: params", params, SamplingParams)
    return each


def _settings(config: EngineConfig | None, fields: dict[str, Any]) -> EngineConfig:
    if config is not None and fields:
        raise ConfigurationError(f"LLM got both a config and {', '.join(sorted(fields))}; give one or the other.")
    if config is not None:
        require_kind("LLM: config", config, EngineConfig)
    unknown = sorted(fields.keys() - EngineConfig.__dataclass_fields__.keys())
    if unknown:
        raise ConfigurationError(
            f"LLM does not know {', '.join(unknown)}; expected fields of EngineConfig: "
            f"{', '.join(EngineConfig.__dataclass_fields__)}."
        )
    return config if config is not None else EngineConfig(**fields)
