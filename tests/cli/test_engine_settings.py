"""The engine's settings as YAML and flags state them are the engine's own: same fields, same defaults, same limits."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quantgate.cli.engine_flags import EngineFlags
from quantgate.cli.main import app
from quantgate.engine_settings.engine import EngineSettings
from quantgate.engine_settings.group import Group
from quantgate.engine_settings.groups import (
    AdmissionGroup,
    BatchingGroup,
    CacheGroup,
    PreemptionGroup,
    SLOClassEntry,
    TimeoutsGroup,
)
from quantgate.engine_settings.pools import PoolRuleEntry, RouterGroup, SpillEntry, TokenRangeEntry
from quantgate.validation import parse_yaml_model
from quantgate_engine import EngineConfig
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.router.settings import SpillSettings
from quantgate_engine.scheduler.slo_class import SLOClass

GROUPS: list[type[Group]] = [
    AdmissionGroup, BatchingGroup, CacheGroup, PreemptionGroup, TimeoutsGroup, SLOClassEntry, TokenRangeEntry,
    PoolRuleEntry, SpillEntry, RouterGroup,
]  # fmt: skip

POOLS = """
max_step_tokens: 200
kv_dtype: int8
cache: {prefix_sharing: true}
pools:
  - {name: quick, engine: {max_active_requests: 4, max_step_tokens: 64}, rule: {slo_classes: [interactive]},
     spill: {to: rest, waiting_requests: 8}}
  - {name: rest, engine: {cache: {}}, share: 2}
router: {turns: priority}
"""


def read(text: str) -> EngineSettings:
    return parse_yaml_model(text, EngineSettings, name="engine.yaml")


def test_without_a_word_everything_is_as_the_engine_has_it() -> None:
    assert EngineSettings().to_engine_config() == EngineConfig()
    assert EngineSettings().to_pools() == ()


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_a_group_has_the_fields_of_the_engines_own(group: type[Group]) -> None:
    assert set(group.model_fields) == {field.name for field in fields(group.made_into)}


def test_every_setting_of_the_engine_can_be_stated() -> None:
    own = {field.name for field in fields(EngineConfig)}
    assert set(EngineSettings.model_fields) == own | {"pools", "router"}


def test_what_is_stated_reaches_the_engine() -> None:
    config = read(
        "batching: {mode: split, length_buckets: [100], slo_classes: [{name: chat, max_wait_s: 2}, {name: rest}]}\n"
        "admission: {estimator: optimistic, over_cap: degrade, watermark: 0.1, max_wait_s: 3}\n"
        "preemption: {mode: swap, host_blocks: 8, victim: lowest-class}\n"
        "timeouts: {request_s: 9}\nkv_dtype: int8\ndeterministic: true\n"
    ).to_engine_config()
    assert config.batching.slo_classes == (SLOClass("chat", max_wait_s=2), SLOClass("rest"))
    assert (config.batching.mode, config.batching.length_buckets) == ("split", (100,))
    assert (config.admission.estimator, config.admission.watermark) == ("optimistic", 0.1)
    assert (config.preemption.mode, config.preemption.host_blocks) == ("swap", 8)
    assert (config.timeouts.request_s, config.kv_dtype, config.deterministic) == (9, "int8", True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("batching: {mode: mixt}", "line 1, field batching.mode: expected 'mixed', 'split' or 'static', got 'mixt'"),
        (
            "threads: 1\nbatching:\n  length_buckets: [5, 4]",
            "line 3, field batching.length_buckets: got [5, 4], expected ",
        ),
        ("admission: {watermark: '0.1'}", "line 1, field admission.watermark: expected a number, got '0.1'"),
        ("cache: {session_seconds: 5}", "field cache.session_seconds: got 5.0, expected 0 unless prefix_sharing"),
        ("cache: {sesion_blocks: 5}", "field cache.sesion_blocks: unknown key, did you mean session_blocks?"),
        (
            "batching: {slo_classes: [{name: a}, {name: a}]}",
            "batching.slo_classes: got ['a', 'a'], expected no name tw",
        ),
        (
            "batching: {slo_classes: [{name: a, reserved_active: 40}]}",
            "field batching.slo_classes: max_active_requests is 16; expected at least 40, the places",
        ),
        ("max_step_tokens: 3", "field max_step_tokens: got 3, expected at least max_active_requests (16)"),
        ("kv_dtype: int4", "field kv_dtype: expected 'auto' or 'int8', got 'int4'"),
        ("pools: [{name: a}, {name: a}]", "field pools.1.name: got 'a', expected a name that no other pool has"),
        (
            "pools: [{name: a, engine: {max_step_tokens: 3}}]",
            "pools.0.engine.max_step_tokens: got 3, expected at lea",
        ),
        ("pools: [{name: a, engine: {kv_dtype: int8}}]", "field pools.0.engine.kv_dtype: unknown key"),
        ("pools: [{name: a, spill: {to: b, waiting_requests: 1}}]", "pools.0.spill.to: got 'b', expected another pool"),
        (
            "pools: [{name: a, rule: {slo_classes: [urgent]}}]",
            "slo_classes: got ['urgent'], expected classes that",
        ),
    ],
)
def test_what_the_engine_refuses_is_told_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(text)
    assert str(refused.value).startswith("engine.yaml, line ")
    assert sentence in str(refused.value)


def test_a_pool_has_what_all_have_but_for_what_it_states() -> None:
    settings = read(POOLS)
    quick, rest = settings.to_pools()
    assert (quick.engine.max_active_requests, quick.engine.max_step_tokens) == (4, 64)
    assert quick.engine.cache == CacheSettings(prefix_sharing=True)
    assert quick.spill == SpillSettings("rest", waiting_requests=8)
    assert (rest.engine.max_step_tokens, rest.share) == (200, 2)
    assert rest.engine.cache == CacheSettings()
    assert quick.engine.kv_dtype == rest.engine.kv_dtype == "int8"
    assert settings.to_engine_config() == quick.engine


def test_an_arms_own_kv_dtype_is_that_of_all_its_pools() -> None:
    assert EngineSettings().to_engine_config("int8") == EngineConfig(kv_dtype="int8")
    assert [pool.engine.kv_dtype for pool in read(POOLS).to_pools("auto")] == ["auto", "auto"]


def test_flags_go_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "engine.yaml"
    file.write_text("max_active_requests: 8\nmax_step_tokens: 100\ncache: {prefix_sharing: true, session_seconds: 2}\n")
    settings = EngineFlags(file, max_active_requests=4, kv_dtype="int8").settings(block_size=8, threads=None)
    assert (settings.max_active_requests, settings.max_step_tokens, settings.kv_dtype) == (4, 100, "int8")
    assert (settings.block_size, settings.threads) == (8, None)
    assert settings.cache.to_engine() == CacheSettings(prefix_sharing=True, session_seconds=2)
    assert EngineFlags(prefix_sharing=True).settings().cache.prefix_sharing
    assert EngineFlags().settings() == EngineSettings()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("threads: 1\ntimeouts: {request_s: 5}\n", "line 2, field timeouts"),
        ("threads: 1\nblock_size: 8\ntimeouts:\n  drain_s: 5\n", "line 3, field timeouts"),
        (
            "pools:\n  - {name: a}\n  - name: b\n    engine:\n      block_size: 8\n      timeouts: {drain_s: 5}\n",
            "line 6, field pools.1.engine.timeouts",
        ),
    ],
)
def test_a_server_refuses_timeouts_of_a_file_at_their_line(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / "engine.yaml"
    file.write_text(text)
    result = CliRunner().invoke(app, ["serve", "nothing", "--engine", str(file)])
    assert isinstance(result.exception, ConfigurationError)
    assert str(result.exception) == (
        f"{file}, {place}: a server has --request-timeout and --drain-seconds for that; remove it."
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "threads: 1\ntimeouts:\n  request_s: 0",
            "line 3, field timeouts.request_s: got 0.0, expected above 0",
        ),
        ("threads: 1\ntimeouts:\n  drain_s: .inf", "line 3, field timeouts.drain_s: expected a finite number, got inf"),
        (
            "pools:\n  - name: a\n    engine:\n      timeouts: {drain_s: -1}",
            "line 4, field pools.0.engine.timeouts.d",
        ),
    ],
)
def test_a_timeout_that_no_engine_takes_is_told_at_its_line(text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(text)
    assert sentence in str(refused.value)


def test_a_flag_that_does_not_fit_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "engine.yaml"
    file.write_text("cache: {prefix_sharing: true, session_seconds: 2}\n")
    with pytest.raises(ConfigurationError, match=r"^--prefix-sharing, field cache.session_seconds: got 2.0, expected"):
        EngineFlags(file, prefix_sharing=False).settings()
    with pytest.raises(ConfigurationError, match="there is no such file"):
        EngineFlags(tmp_path / "none.yaml").settings()
