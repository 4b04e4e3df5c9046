"""Property tests of the whole engine: whatever happens and whenever, nothing is lost, shared wrongly or starved."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.cached_engine import CachedEngine
from tests.engine.random_operations import LIVE, RandomOperations, engine_under_pressure

from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request import AbortCause
from quantgate_engine.scheduler.admission.estimators import ESTIMATORS
from quantgate_engine.scheduler.admission.over_cap import OVER_CAP_POLICIES
from quantgate_engine.scheduler.admission.settings import AdmissionSettings
from quantgate_engine.scheduler.batching.modes import BATCH_MODES
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.preemption.modes import PREEMPTION_MODES
from quantgate_engine.scheduler.preemption.settings import PreemptionModeName, PreemptionSettings, VictimPolicyName
from quantgate_engine.scheduler.preemption.victims import VICTIM_POLICIES

SHARED = CacheSettings(prefix_sharing=True, session_seconds=100e-6, session_blocks=10)

ENGINES = st.builds(
    CachedEngine,
    num_blocks=st.integers(8, 24),
    block_size=st.sampled_from([1, 3, 4]),
    max_active_requests=st.integers(1, 5),
    max_step_tokens=st.integers(5, 20),
    max_overtakes=st.integers(1, 4),
    batching=st.builds(
        BatchingSettings,
        mode=st.sampled_from(list(BATCH_MODES)),
        chunked_prefill=st.booleans(),
        length_buckets=st.sampled_from([(), (8, 20)]),
        max_partial_prefills=st.sampled_from([None, 1, 2]),
        long_prefill_tokens=st.just(16),
        max_long_prefills=st.sampled_from([None, 1]),
        max_chunk_tokens=st.sampled_from([None, 4]),
    ),
    admission=st.builds(
        AdmissionSettings,
        estimator=st.sampled_from(list(ESTIMATORS)),
        over_cap=st.sampled_from(list(OVER_CAP_POLICIES)),
        watermark=st.sampled_from([0.0, 0.1]),
        max_kv_tokens=st.sampled_from([None, 60]),
        max_wait_s=st.sampled_from([None, 50e-6]),
        min_output_tokens=st.just(2),
    ),
    cache=st.sampled_from([CacheSettings(), SHARED]),
    preemption=st.builds(
        PreemptionSettings,
        mode=st.sampled_from(list(PREEMPTION_MODES)),
        victim=st.sampled_from(list(VICTIM_POLICIES)),
        host_blocks=st.integers(1, 20),
        max_preemptions=st.integers(1, 3),
    ),
)


@settings(max_examples=120, deadline=None)
@given(engine=ENGINES, seed=st.integers(0, 2**32), count=st.integers(1, 120))
def test_whatever_happens_the_books_add_up_and_everything_ends(engine: CachedEngine, seed: int, count: int) -> None:
    operations = RandomOperations(engine, seed)
    operations.run(count)
    operations.drain()


@pytest.mark.parametrize("mode", PREEMPTION_MODES)
@pytest.mark.parametrize("victim", VICTIM_POLICIES)
def test_long_runs_under_pressure_meet_every_state_and_every_cause(
    mode: PreemptionModeName, victim: VictimPolicyName
) -> None:
    operations = RandomOperations(engine_under_pressure(mode, victim), seed=7)
    operations.run(16_700)  # With six engines, 100,000 operations.
    operations.drain()
    assert operations.num_preempted > 200
    assert {state for state, _ in operations.aborted_in} >= set(LIVE)
    assert {cause for _, cause in operations.aborted_in} == set(AbortCause)
