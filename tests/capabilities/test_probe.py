"""What the probe finds on servers that give all, some or next to nothing, and what it makes of each quality tier."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.quality.fake_server import (
    SETTINGS,
    FakeServer,
    LenientTokenizer,
    like_llama_cpp,
    like_sglang,
    like_vllm,
    ours,
    status,
)

from quantgate.capabilities.capabilities import Capabilities
from quantgate.capabilities.probe import probe
from quantgate.targets.openai.errors import EndpointError, EndpointSettingError, not_an_api, refused_by_status
from quantgate.targets.openai.settings import EndpointSettings
from quantgate.targets.openai.whole_answer import EndlessAnswerError
from quantgate.workload.tokenizer_fingerprint import TEXT, fingerprint


def probed(server: FakeServer, tokenizer: Any = None, **settings: Any) -> Capabilities:
    asked = SETTINGS.model_copy(update=settings)
    return asyncio.run(probe(server, asked, tokenizer or LenientTokenizer()))


def test_our_own_server_gives_everything() -> None:
    found = probed(ours())
    assert found == Capabilities(
        model="fake", models=["fake"], weights_sha256="w", tokenizer_sha256="t", max_context_tokens=512,
        completions=True, chat=True, token_id_prompts=True, prompt_logprobs=96, echoed_logprobs=None,
        generated_logprobs=96, vocabulary_listed=True, tokens_identified=True, forced_tokens=True,
        continuation_logits=True, ignore_eos=True,
        seed=True, stream_usage=True, token_ids_returned=True, metrics=True, tokenize=True, tokenizer="agrees",
        tokenizer_fingerprint=fingerprint(LenientTokenizer().encode(TEXT, add_special_tokens=False)),
        notes=[], requests=found.requests,
    )  # fmt: skip
    assert {found.distribution.status, found.likelihood.status, found.answers.status} == {"exact"}
    assert found.alternatives is None


def test_a_server_like_vllm_compares_twenty_tokens() -> None:
    found = probed(like_vllm())
    assert (found.scoring, found.prompt_logprobs, found.generated_logprobs) == ("prompt_logprobs", 20, 20)
    assert (found.forced_tokens, found.continuation_logits, found.max_context_tokens) == (False, False, 4096)
    assert found.distribution.status == "partial"
    assert "20 likeliest tokens" in found.distribution.reason
    assert "kl_topk" in found.distribution.reason
    assert found.likelihood.status == "exact"


def test_a_server_like_llama_cpp_is_scored_step_by_step() -> None:
    found = probed(like_llama_cpp())
    assert (found.scoring, found.prompt_logprobs, found.echoed_logprobs) == ("stepwise", None, None)
    assert (found.generated_logprobs, found.max_context_tokens, found.tokenizer) == (96, 1024, "agrees")
    assert found.slots == 2
    assert (found.vocabulary_listed, found.likelihood.status) == (True, "exact")
    found = probed(like_llama_cpp(cap=95))
    assert (found.vocabulary_listed, found.likelihood.status) == (False, "partial")
    assert "left out on every arm" in found.likelihood.reason


def test_a_server_like_sglang_echoes() -> None:
    found = probed(like_sglang())
    assert (found.scoring, found.echoed_logprobs, found.tokens_identified) == ("echo", 96, True)
    assert found.likelihood.status == "exact"


def test_a_server_that_takes_chat_alone_can_only_be_asked_for_answers() -> None:
    found = probed(FakeServer(completions=False, answers={"yes": "yes"}))
    assert (found.completions, found.chat, found.scoring, found.seed, found.stream_usage) == (
        False, True, None, True, True,
    )  # fmt: skip
    assert found.distribution.status == found.likelihood.status == "not_measurable"
    assert found.distribution.reason == "the server gives no log-probs of given tokens"
    assert (found.answers.status, "own chat template" in found.answers.reason) == ("partial", True)


def test_what_a_server_lists_counts_and_not_what_it_accepts() -> None:
    found = probed(like_vllm(prompt_logprobs=1000, logprobs=1000, cap=5))
    assert (found.prompt_logprobs, found.generated_logprobs) == (5, 5)


def test_fields_that_are_ignored_are_not_given() -> None:
    found = probed(FakeServer(logprobs=None))
    assert (found.prompt_logprobs, found.echoed_logprobs, found.generated_logprobs) == (None, None, None)
    assert (found.forced_tokens, found.token_ids_returned) == (False, False)


def test_alternatives_without_names_cannot_be_compared() -> None:
    found = probed(like_sglang(shape="texts"))
    assert not found.tokens_identified
    assert found.distribution.reason == "the server lists no alternatives that can be told apart as tokens"
    assert found.likelihood.status == "exact"


@pytest.mark.parametrize(("honoured", "expected"), [(True, True), (False, False)])
def test_seeds_and_ignore_eos_are_tried_and_not_believed(honoured: bool, expected: bool) -> None:
    found = probed(ours(honours_seed=honoured, honours_eos=honoured))
    assert (found.seed, found.ignore_eos) == (expected, expected)


def test_without_an_answer_that_ends_nothing_is_known_of_ignore_eos() -> None:
    found = probed(ours(answers={"yes": "y" * 100}))
    assert found.ignore_eos is None
    assert found.notes == ["ignore_eos: not told (no answer ended by itself within 64 tokens)"]


def endless(path: str) -> EndpointError:
    return EndlessAnswerError(f"{SETTINGS.url}{path}", "10 s", "look at the server")


@pytest.mark.parametrize("paths", [["/v1/models"], ["/v1/completions"], ["/v1/chat/completions"]])
def test_a_short_answer_that_never_ends_is_the_end_of_the_probe(paths: list[str]) -> None:
    server = ours(refuse=lambda path, body: endless(path) if path in paths else None)
    with pytest.raises(EndlessAnswerError, match="had not come to its end after 10 s"):
        probed(server)


def test_a_stream_of_two_tokens_that_never_ends_is_the_end_of_the_probe() -> None:
    server = ours(refuse=lambda path, body: endless(path) if body and body.get("stream") else None)
    with pytest.raises(EndlessAnswerError):
        probed(server)


def test_metrics_that_never_end_are_a_note() -> None:
    found = probed(ours(refuse=lambda path, body: endless(path) if path == "/metrics" else None))
    assert not found.metrics
    assert any(note.startswith("/metrics: not told") for note in found.notes)


class OtherTokenizer(LenientTokenizer):
    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        return [*super().encode(text, add_special_tokens=add_special_tokens), 0]


@pytest.mark.parametrize("server", [like_vllm(), like_sglang()])
def test_a_tokenizer_that_reads_otherwise_measures_no_tokens(server: FakeServer) -> None:
    """By the ids of /tokenize, or by the number of prompt tokens where there is no such path."""
    found = probed(server, OtherTokenizer())
    assert found.tokenizer == "differs"
    assert found.distribution.reason == "the tokenizer given does not read as the server's does"
    assert found.answers.status == "partial"


def test_a_server_that_counts_no_tokens_leaves_the_tokenizer_uncompared() -> None:
    found = probed(like_sglang(usage=False))
    assert (found.tokenizer, found.stream_usage, found.ignore_eos) == ("not_compared", False, None)


def test_without_a_tokenizer_the_ids_are_the_servers_own() -> None:
    found = asyncio.run(probe(like_vllm(), SETTINGS, None))
    assert (found.tokenizer, found.token_id_prompts, found.prompt_logprobs) == ("not_given", True, 20)
    assert found.distribution.reason == found.likelihood.reason == "no tokenizer given"
    assert found.answers.status == "partial"


def test_the_model_is_named_where_several_are_offered() -> None:
    several = [{"id": "a"}, {"id": "b"}]
    assert probed(FakeServer(models=several), model="b").model == "b"
    with pytest.raises(
        EndpointSettingError, match=r"^http://fake:8000: offers 2 models; .*--model.*: a, b\.$"
    ) as raised:
        probed(FakeServer(models=several))
    assert raised.value.exit_code == 2
    with pytest.raises(EndpointSettingError, match=r"does not offer the model 'c'; expected one of .*--model.*: a, b"):
        probed(FakeServer(models=several), model="c")
    with pytest.raises(EndpointSettingError, match="lists no model under /v1/models; name it"):
        probed(FakeServer(models=[]))


@pytest.mark.parametrize("model_id", [7, None, "", ["a"], "\ud800"])
def test_a_list_without_text_ids_offers_no_model(model_id: Any) -> None:
    with pytest.raises(
        EndpointSettingError, match=r"lists no model under /v1/models \(no entry has a text as its id\)"
    ):
        probed(FakeServer(models=[{"id": model_id}]))


def test_why_there_is_no_list_of_models_is_told() -> None:
    def without_list(error: EndpointError) -> FakeServer:
        return FakeServer(refuse=lambda path, _: error if path == "/v1/models" else None)

    page = not_an_api("http://fake:8000/v1/models", "a web page")
    with pytest.raises(EndpointSettingError, match=r"lists no model under /v1/models \(status 200: a web page\)"):
        probed(without_list(page))
    failed = status(500)
    with pytest.raises(EndpointError) as raised:
        probed(without_list(failed))
    assert raised.value is failed
    assert raised.value.exit_code == 3
    assert probed(without_list(failed), model="fake").model == "fake"


def test_the_users_extra_fields_go_with_every_question() -> None:
    server = FakeServer()
    probed(server, extra_body={"provider": "x", "nothing": None})
    bodies = [body for path, body in server.requests if path.startswith("/v1/") and body]
    assert {body["provider"] for body in bodies} == {"x"}
    assert not any("nothing" in body for body in bodies)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/completions"])
def test_a_refused_key_and_a_missing_server_end_the_run(path: str) -> None:
    """llama.cpp lists its models to everybody, so that a wrong key shows at the first question alone."""
    for error in (status(401), EndpointError("nothing listens there.", "connect")):
        with pytest.raises(EndpointError) as raised:
            probed(FakeServer(refuse=lambda asked, _, error=error: error if asked == path else None))
        assert raised.value is error


def test_a_protected_metrics_page_is_no_refused_key() -> None:
    assert not probed(ours(refuse=lambda path, _: status(401) if path == "/metrics" else None)).metrics


def test_a_server_without_either_api_is_refused() -> None:
    with pytest.raises(EndpointError, match=r"answers neither /v1/completions \(.*\) nor /v1/chat/completions"):
        probed(FakeServer(completions=False, chat=False))


def test_why_neither_api_answers_is_told() -> None:
    causes = {
        "/v1/completions": refused_by_status("u", 500, "out of memory", key_env="K", key_sent=False),
        "/v1/chat/completions": refused_by_status("u", 429, "slow down", key_env="K", key_sent=False),
    }
    with pytest.raises(EndpointError) as raised:
        probed(FakeServer(refuse=lambda path, _: causes.get(path)))
    assert "/v1/completions (status 500: out of memory) nor" in str(raised.value)
    assert "/v1/chat/completions (status 429: slow down); check" in str(raised.value)


def test_what_a_busy_server_did_not_tell_is_noted() -> None:
    found = probed(ours(refuse=lambda path, _: status(429) if "continuation" in path else None))
    assert not found.continuation_logits
    assert found.notes == ["whole logits: not told (http://fake:8000: status 429 it said)"]


@pytest.mark.parametrize("server", [ours(), like_vllm(), like_llama_cpp(), like_sglang(), FakeServer()])
def test_the_probe_is_cheap(server: FakeServer) -> None:
    found = probed(server)
    assert found.requests == len(server.requests) <= 27
    bodies = [body for _, body in server.requests if body]
    assert sum(body.get("max_tokens", 0) for body in bodies) <= 256
    assert server.most_in_flight == 1


def test_settings_without_a_model_and_findings_fit_into_json() -> None:
    found = probed(ours())
    assert Capabilities.model_validate(found.model_dump(mode="json")) == found
    assert EndpointSettings(url="http://fake:8000").model is None
