"""Mistakes between the settings of an engine and of its pools are told at the line where they can be mended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quantgate.cli.engine_flags import EngineFlags
from quantgate.engine_settings.engine import EngineSettings
from quantgate.suite import Suite
from quantgate.validation import parse_yaml_model
from quantgate_engine.errors import ConfigurationError

TWO_POOLS = """
max_step_tokens: 128
block_size: 8
cache: {prefix_sharing: true, session_seconds: 60}
pools:
  - {name: main, engine: {max_active_requests: 4, num_kv_blocks: 80}, spill: {to: over, held_share: 0.5}}
  - {name: over, engine: {cache: {}}}
router: {turns: priority}
"""


def read(text: str) -> EngineSettings:
    return parse_yaml_model(text, EngineSettings, name="e.yaml")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "pools:\n- name: a\n- name: b\n\n- name: a\n",
            "e.yaml, line 5, field pools.2.name: got 'a', expected a name that no other pool has.",
        ),
        (
            "pools:\n- name: a\n- name: b\n  rule:\n    slo_classes:\n      [zz]\n",
            "e.yaml, line 6, field pools.1.rule.slo_classes: got ['zz'], expected classes that the engine of pool b "
            "has (interactive, batch).",
        ),
        (
            "pools:\n- name: a\n  spill:\n    to: nowhere\n    held_share: 0.5\n- name: b\n",
            "e.yaml, line 4, field pools.0.spill.to: got 'nowhere', expected another pool (b).",
        ),
        (
            "max_step_tokens: 128\npools:\n- name: a\n- name: b\n  engine:\n    max_active_requests: 300\n",
            "e.yaml, line 6, field pools.1.engine.max_active_requests: max_step_tokens is 128; expected at least "
            "max_active_requests (300), because every active request needs one token of the budget to decode.",
        ),
        (
            "pools:\n- name: b\nmax_step_tokens: 8\n",
            "e.yaml, line 3, field max_step_tokens: pool b: max_step_tokens is 8; expected at least "
            "max_active_requests (16), because every active request needs one token of the budget to decode.",
        ),
        (
            "max_active_requests: 300\n",
            "e.yaml, line 1, field max_active_requests: max_step_tokens is 256; expected at least max_active_requests "
            "(300), because every active request needs one token of the budget to decode.",
        ),
        (
            "pools:\n- name: a\n- name: b\n  spill: {to: a}\n",
            "e.yaml, line 4, field pools.1.spill: waiting_requests is nothing (null); expected a threshold here or in "
            "held_share.",
        ),
        (
            "pools:\n- name: a\n  rule:\n    prompt_tokens: {least: 5,\n      most: 4}\n",
            "e.yaml, line 5, field pools.0.rule.prompt_tokens.most: got 4, expected at least 5, which is `least`, or "
            "null.",
        ),
        (
            "pools: [{name: a, rule: {slo_classes: [batch, batch]}}]\n",
            "e.yaml, line 1, field pools.0.rule.slo_classes: got ['batch', 'batch'], expected no name twice.",
        ),
        (
            'pools:\n- name: "a\\nb"\n',
            "e.yaml, line 2, field pools.0.name: got 'a\\nb', expected a name of 1 to 80 printable characters without "
            "spaces at its ends.",
        ),
        (
            "batching: {slo_classes: [{name: ' '}]}\n",
            "e.yaml, line 1, field batching.slo_classes.0.name: got ' ', expected a name of 1 to 80 printable "
            "characters without spaces at its ends.",
        ),
        (
            "threads: 2\nrouter: {turns: priority}\n",
            "e.yaml, line 2, field router: expected pools beside it to route between; add them, or remove this key.",
        ),
        (
            "pools: []\n",
            "e.yaml, line 1, field pools: expected at least one pool, got none; add one, or remove this key.",
        ),
    ],
)
def test_the_sentence_says_where_it_can_be_mended(text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(text)
    assert str(refused.value) == sentence


def test_what_no_pool_takes_from_beside_the_pools_is_not_judged() -> None:
    settings = read("max_step_tokens: 8\npools: [{name: a, engine: {max_active_requests: 4}}]\n")
    assert settings.to_engine_config().max_active_requests == 4


def test_a_record_tells_what_pools_ran_with_and_sets_up_the_same() -> None:
    settings = read(TWO_POOLS)
    record = json.loads(json.dumps(settings.as_recorded()))
    main, over = (pool["engine"] for pool in record["pools"])
    assert (main["block_size"], main["max_active_requests"], main["cache"]["session_seconds"]) == (8, 4, 60)
    assert (over["block_size"], over["max_active_requests"], over["cache"]["prefix_sharing"]) == (8, 16, False)
    again = EngineSettings.model_validate(record)
    assert again.to_pools("int8") == settings.to_pools("int8")
    assert again.router.to_engine() == settings.router.to_engine()
    assert again.as_recorded() == settings.as_recorded()


def test_a_record_without_pools_sets_up_the_same() -> None:
    settings = read("max_active_requests: 3\npreemption: {mode: swap, host_blocks: 4}\n")
    again = EngineSettings.model_validate(json.loads(json.dumps(settings.as_recorded())))
    assert again.to_engine_config() == settings.to_engine_config()


def test_a_suites_record_is_a_suite_of_the_same_experiment() -> None:
    head = "schema: quantgate.suite/1\nname: s\nmodel: m\npolicy: p\nworkload: {trace: t}\n"
    arms = "arms: [{scheme: fp16, role: baseline}, {scheme: int8}]\n"
    engine = "engine:\n" + "".join(f"  {line}\n" for line in TWO_POOLS.strip().splitlines())
    suite = parse_yaml_model(head + arms + engine, Suite, name="s.yaml")
    again = Suite.model_validate(json.loads(json.dumps(suite.as_recorded())))
    assert again.engine.to_pools() == suite.engine.to_pools()
    assert again.model_copy(update={"engine": suite.engine}) == suite


def test_a_record_is_a_file_for_the_engine_flag(tmp_path: Path) -> None:
    settings = read(TWO_POOLS)
    file = tmp_path / "record.yaml"
    file.write_text(json.dumps(settings.as_recorded(), indent=2))
    assert EngineFlags(file).settings().to_pools() == settings.to_pools()
