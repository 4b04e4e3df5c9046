"""The bundled engine, in this process, as a target."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from quantgate.targets.base import BUNDLED_ENGINE, ArmDescription, ArmRole, TokenEvent
from quantgate.targets.engine_terms import EngineTerms
from quantgate.targets.turn_energy import TurnEnergy
from quantgate.workload.plan import PlannedRequest
from quantgate.workload.tokenizer_fingerprint import TEXT, fingerprint
from quantgate_engine import LLM, AsyncLLM, SamplingParams
from quantgate_engine.kv.holding import KVHolding
from quantgate_engine.step_record import StepRecord
from quantgate_engine.stepped_engine import SteppedEngine
from quantgate_kernels.roofline import DecoderWork

_MOST_SESSIONS = 20


class BundledEngineTarget:
    """Serves a loaded LLM. Give the LLM the driver's clock, so that engine and driver times share one origin.

    Decoding is greedy: arms differ in their weights, never in their luck.

    core: what serves requests with the LLM, where that is more than its own engine (pools behind a router). timeout_s:
    how long a client waits for an answer. step_work: what its steps must at least read and compute, for their bound.
    model: what it is a build of, where its weights are a checkpoint of another name.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        arm_id: str,
        role: ArmRole,
        core: SteppedEngine | None = None,
        timeout_s: float | None = None,
        notes: tuple[str, ...] = (),
        step_work: DecoderWork | None = None,
        model: str | None = None,
    ) -> None:
        self._llm = llm
        self._engine = AsyncLLM(core or llm)
        self._arm_id = arm_id
        self._role = role
        self._notes = notes
        self._step_work = step_work
        self._model = model or llm.info.name
        self._energy = TurnEnergy(llm.device_joules)
        self._terms = EngineTerms(self._engine.slo_classes, timeout_s)

    @property
    def description(self) -> ArmDescription:
        """As loaded; ask for it after the replay, when kernel paths and what had to be noted are known."""
        info = self._llm.info
        return ArmDescription(
            arm_id=self._arm_id,
            role=self._role,
            target=BUNDLED_ENGINE,
            model=self._model,
            scheme=info.scheme,
            kv_dtype=info.kv_dtype,
            compute_dtype=info.compute_dtype,
            head_dtype=info.head_dtype,
            kv_bytes_per_token=info.kv_bytes_per_token,
            weight_bytes=info.weight_bytes,
            linear_weight_bytes=info.linear_weight_bytes,
            load_seconds=info.load_seconds,
            kernel_set=info.kernel_set,
            kernel_paths=dict(info.kernel_paths),
            notes=(*self._notes, *self._terms.notes),
            kv_sessions=self._greatest_sessions(),
            step_work=self._step_work,
            joules_per_token=self._energy.joules_per_token,
            recorded_steps=info.recorded_steps,
            provenance=info.provenance,
            tokenizer_fingerprint=fingerprint(self._llm.tokenizer.encode(TEXT, add_special_tokens=False)),
        )

    def _greatest_sessions(self) -> tuple[KVHolding, ...]:
        sessions = [stay for stay in self._engine.kv_stays() if stay.kind == "session"]
        return tuple(sorted(sessions, key=lambda stay: -stay.block_seconds)[:_MOST_SESSIONS])

    async def start(self) -> None:
        await self._engine.start()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One of the arm's turns: it finds the engine as if it were the first, and leaves nothing behind in it."""
        self._terms.begin_turn()
        await self._engine.forget()
        self._energy.begin_turn()
        yield
        self._energy.end_turn()
        # Sessions would go on holding blocks, by the clock, while the other arms have their turns.
        await self._engine.forget()

    async def stop(self) -> None:
        await self._engine.stop()

    async def submit(self, request: PlannedRequest) -> AsyncGenerator[TokenEvent, None]:
        params = SamplingParams(max_tokens=request.output_tokens, ignore_eos=request.ignore_eos)
        terms = self._terms.of(request)
        async with aclosing(self._engine.stream(request.request_id, request.prompt_token_ids, params, terms)) as chunks:
            async for chunk in chunks:
                self._energy.count(len(chunk.token_ids))
                yield TokenEvent(chunk.token_ids, end=chunk.end)

    def take_steps(self) -> list[StepRecord]:
        return self._engine.take_steps()

    def decode_text(self, token_ids: list[int]) -> str:
        """The text without special tokens."""
        return str(self._llm.tokenizer.decode(token_ids, skip_special_tokens=True))
