"""What is wrong in a suite file is told by file, line and field; nothing of another type is taken for a number."""

from __future__ import annotations

from pathlib import Path

import pytest

from quantgate.resources import bundled_root
from quantgate.suite import Suite, load_suite
from quantgate.validation import parse_yaml_model
from quantgate_engine.errors import ConfigurationError

HEAD = "schema: quantgate.suite/1\nname: s\nmodel: m\npolicy: p\n"
ARMS = "arms: [{scheme: fp16, role: baseline}, {scheme: int8}]\n"
TRAFFIC = "workload: {trace: t.jsonl}\n"


def with_transforms(transforms: str) -> str:
    return ARMS + f"workload: {{trace: t, transforms: [{transforms}]}}\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (ARMS + TRAFFIC + "seed: -5\n", "line 7, field seed: expected a value of at least 0, got -5."),
        (
            ARMS + TRAFFIC + "engine: {max_step_tokens: 3}\n",
            "line 7, field engine.max_step_tokens: got 3, expected ",
        ),
        (ARMS + "workload: {trace: ''}\n", "line 6, field workload.trace: expected text of at least 1 character"),
        (
            ARMS + "workload: {trace: t, blocks: true}\n",
            "line 6, field workload.blocks: expected an integer or 'auto', got true",
        ),
        (
            ARMS + "workload: {trace: t, blocks: '4'}\n",
            "line 6, field workload.blocks: expected an integer or 'auto', got '4'",
        ),
        (
            ARMS + "workload: {trace: t, request_timeout_s: .inf}\n",
            "line 6, field workload.request_timeout_s: expected a finite number, got inf.",
        ),
        (
            TRAFFIC + "arms:\n- {scheme: a, role: baseline}\n- scheme: {lm_head: int8-w8a16}\n",
            "line 8, field arms.1.scheme: A map of schemes has no 'default', the scheme of layers that no pattern fits",
        ),
        (
            TRAFFIC + "arms: [{scheme: a, role: baseline}, {scheme: b, role: baseline}]\n",
            "line 6, field arms: expected exactly one arm with role baseline, got 2.",
        ),
        (
            TRAFFIC + "arms: [{scheme: a, role: baseline}, {scheme: a}]\n",
            "line 6, field arms.1: two arms are called 'a'; give each an id of its own.",
        ),
        (
            "arms:\n- {scheme: a, role: baseline}\n- {scheme: b}\n- {scheme: a-aa}\n" + TRAFFIC,
            "line 8, field arms.2: an arm may not be called 'a-aa'; that name is the A/A pair's.",
        ),
        (
            ARMS + "workload: {trace: t, load_processes: 2, clients: 2}\n",
            "line 6, field workload.load_processes: several load processes deal out a schedule, which the clients of a "
            "closed loop would change; drop one of the two.",
        ),
        (
            ARMS + "workload: {trace: t, load_processes: 2, history: live}\n",
            "line 6, field workload.load_processes: several load processes deal out a schedule, which live history "
            "would change; drop one of the two.",
        ),
        (
            "workload: {trace: t, load_processes: 2}\narms: [{scheme: a, role: baseline}, {scheme: b}]\n",
            "field workload.load_processes: load processes send to servers over HTTP, but arm a runs on the bundled "
            "engine; drop load_processes.",
        ),
        (
            TRAFFIC + "device: one_at_a_time\narms:\n- {scheme: a, role: baseline}\n- {scheme: b}\n",
            "line 6, field device: the device holds one arm at a time, so that whole passes take turns (A B, B A), but "
            "passes is 1; give an even number.",
        ),
        (
            "workload: {trace: t,passes: 2}\ndevice: one_at_a_time\narms: [{scheme: a, role: baseline}, {scheme: b}]\n",
            "line 7, field arms.0: the device holds one arm at a time, but nothing says how to launch arm a; say how",
        ),
        (
            ARMS + TRAFFIC + f"seed: {2**63}\n",
            "line 7, field seed: expected a value of at most 9223372036854775807, got",
        ),
        (
            with_transforms("{kind: shrink}"),
            "line 6, field workload.transforms.0: expected 'window', 'speed', 'thin', 'clip', 'limit', 'sample', "
            "'spread_ticks', 'arrivals', 'rate_cap' as its kind, got 'shrink'.",
        ),
        (
            with_transforms("{keep: 1}"),
            "line 6, field workload.transforms.0.kind: this key is missing; add it (arrivals, clip, limit, rate_cap, "
            "sample, speed, spread_ticks, thin, window).",
        ),
        (with_transforms("{kind: clip}"), "line 6, field workload.transforms.0: a clip without a limit changes nothin"),
        (with_transforms("{kind: limit, requests: true}"), "transforms.0.requests: expected an integer, got true."),
        (with_transforms("{kind: window, length_s: 1.0e+300}"), "0.length_s: expected a value of at most 1000000000"),
        (with_transforms("{kind: speed, factor: .nan}"), "transforms.0.factor: expected "),
        (with_transforms("{kind: speed, factor: 1.0e-300}"), "transforms.0.factor: expected a value of at least 0.001"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_yaml_model(HEAD + text, Suite, name="s.yaml")
    assert str(caught.value).startswith("s.yaml, ")
    assert sentence in str(caught.value)


def test_a_suite_needs_a_name_and_its_arms_a_model() -> None:
    text = HEAD.replace("model: m\n", "") + "arms:\n- {scheme: fp16, role: baseline}\n- {scheme: int8}\n" + TRAFFIC
    with pytest.raises(
        ConfigurationError, match=r"line 5, field arms\.0: arm fp16 runs on the bundled engine and needs"
    ):
        parse_yaml_model(text, Suite, name="s.yaml")
    with pytest.raises(ConfigurationError, match=r"line 2, field name: expected printable .* on one line, got 'a\\nb'"):
        parse_yaml_model(HEAD.replace("name: s", 'name: "a\\nb"') + ARMS + TRAFFIC, Suite, name="s.yaml")


@pytest.mark.parametrize("path", sorted((bundled_root() / "suites").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_bundled_suites_load(path: Path) -> None:
    assert load_suite(path).suite.arms


def test_lists_of_yaml_are_taken_for_the_sequences_that_they_are() -> None:
    text = HEAD + with_transforms(
        "{kind: sample, requests: 3, by: [class], length_edges: [10, 20]}, {kind: thin, keep: 1}"
    )
    sample, thin = parse_yaml_model(text, Suite, name="s").workload.transforms
    assert (sample.kind, thin.kind) == ("sample", "thin")


def test_a_map_of_schemes_is_one_arm() -> None:
    text = "arms:\n- {scheme: fp16, role: baseline}\n- scheme: {'*.down_proj': int8-w8a16, default: int4-g64}\n"
    suite = parse_yaml_model(HEAD + text + TRAFFIC, Suite, name="s.yaml")
    arm = suite.arms[1]
    assert (arm.arm_id, arm.scheme) == ("mixed", "int4-g64+*.down_proj=int8-w8a16")
