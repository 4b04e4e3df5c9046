"""The ready policies can be met by a server of somebody else's, which tells less than the bundled engine."""

from __future__ import annotations

from datetime import date

import pytest
from tests.gate.conftest import SyntheticArm, build_run

from quantgate.gate.gains.registry import GAIN_METRICS
from quantgate.gate.judge import judge
from quantgate.gate.policy import Policy, load_policy
from quantgate.resources import find_policy

FOR_SERVICES = ("chat", "batch", "mixed", "ci")
UNKNOWN_SIZE = {"weight_bytes": None, "linear_weight_bytes": None, "scheme": "unknown"}


def ready(name: str) -> Policy:
    return load_policy(find_policy(name)).model_copy(update={"resamples": 1000})


@pytest.mark.parametrize("name", ["chat", "batch", "mixed"])
def test_a_gain_in_speed_is_enough_where_nobody_knows_the_weights(name: str) -> None:
    policy = ready(name)
    assert policy.gain is not None
    assert policy.gain.any is not None
    assert any(GAIN_METRICS[gain.metric].by_class for gain in policy.gain.any)
    run = build_run(
        SyntheticArm("fp16", "baseline", changes=UNKNOWN_SIZE),
        SyntheticArm("fp16-aa", "aa", changes=UNKNOWN_SIZE),
        SyntheticArm("fast", slowdown=0.7, changes=UNKNOWN_SIZE),
        SyntheticArm("same", changes=UNKNOWN_SIZE),
        requests=400,
    )
    arms = judge(run, policy, today=date(2027, 1, 1)).arms
    assert arms["fast"].gain_outcome == "pass"
    # Nobody knows whether the equal build is smaller: that is no proof that it brings nothing.
    assert arms["same"].gain_outcome == "inconclusive"


@pytest.mark.parametrize("name", FOR_SERVICES)
def test_a_server_gives_one_kind_of_divergence_and_the_other_does_not_hold_it_up(name: str) -> None:
    rules = {rule.name: rule for rule in ready(name).rules}
    assert (rules["kl"].metric, rules["kl-topk"].metric) == ("kl_mean", "kl_topk")
    assert not rules["kl"].required
    assert not rules["kl-topk"].required


@pytest.mark.parametrize("name", FOR_SERVICES)
def test_a_divergence_beyond_the_margin_still_stops_the_build(name: str) -> None:
    run = build_run(
        SyntheticArm("fp16", "baseline"), SyntheticArm("fp16-aa", "aa"), SyntheticArm("broken", kl=2.0), requests=100
    )
    assert judge(run, ready(name), today=date(2027, 1, 1)).arms["broken"].verdict == "do_not_ship"


@pytest.mark.parametrize("name", FOR_SERVICES)
def test_builds_of_unlike_models_or_tokenizers_are_not_compared(name: str) -> None:
    assert {"target", "model", "tokenizer_fingerprint"} <= set(ready(name).must_match)
