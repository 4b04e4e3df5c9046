"""What is sent: the form of the prompt, the API, and the fields beside it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.targets.wire import URL

from quantgate.capabilities.capabilities import Capabilities
from quantgate.targets.openai.request_body import BodyBuilder, RequestBody
from quantgate.targets.openai.settings import EndpointSettings
from quantgate.traces.record import Message
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.errors import ConfigurationError

IDS = (5, 6, 7)
MESSAGES = (Message("system", "Be brief."), Message("user", "Hi"))


class Decoder:
    """The text of token ids is their numbers."""

    def decode(self, token_ids: Any) -> str:
        return " ".join(map(str, token_ids))


DECODER: Any = Decoder()


def server(**gives: Any) -> Capabilities:
    known = {"model": "m", "models": ["m"], "completions": True, "chat": True, "tokenizer": "agrees"}
    return Capabilities.model_validate(known | gives)


def build(
    capabilities: Capabilities | None = None,
    tokenizer: Any = DECODER,
    *,
    token_ids: tuple[int, ...] = IDS,
    messages: tuple[Message, ...] | None = MESSAGES,
    text: str | None = None,
    ignore_eos: bool = True,
    **settings: Any,
) -> RequestBody:
    request = PlannedRequest("r", 0, token_ids, 9, ignore_eos=ignore_eos, messages=messages, prompt_text=text)
    return BodyBuilder(EndpointSettings(url=URL, **settings), "m", capabilities, tokenizer).build(request)


def test_the_fields_that_every_request_has() -> None:
    assert build(messages=None, text="Once", token_ids=()).fields == {
        "model": "m", "prompt": "Once", "max_tokens": 9, "temperature": 0.0, "stream": True,
        "stream_options": {"include_usage": True},
    }  # fmt: skip


def test_token_ids_go_to_servers_that_take_them() -> None:
    body = build(server(token_id_prompts=True))
    assert (body.dialect.path, body.fields["prompt"]) == ("/v1/completions", [5, 6, 7])


@pytest.mark.parametrize("capabilities", [None, server(), server(token_id_prompts=True, tokenizer="differs")])
def test_else_their_text_goes(capabilities: Capabilities | None) -> None:
    body = build(capabilities)
    assert (body.dialect.path, body.fields["prompt"]) == ("/v1/completions", "5 6 7")


def test_the_traces_text_goes_where_no_tokenizer_is_known() -> None:
    assert build(server(), None, token_ids=(), messages=None, text="Once").fields["prompt"] == "Once"


def test_else_messages_go_under_the_servers_template() -> None:
    body = build(server(), None, token_ids=())
    assert body.dialect.path == "/v1/chat/completions"
    assert body.fields["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert "prompt" not in body.fields


@pytest.mark.parametrize(("completions", "chat", "path"), [(True, False, "completions"), (False, True, "chat")])
def test_an_api_that_the_server_lacks_is_not_used(completions: bool, chat: bool, path: str) -> None:
    assert build(server(completions=completions, chat=chat)).dialect.name == path


def test_the_settings_decide_over_what_is_possible() -> None:
    assert build(server(token_id_prompts=True), api="chat").dialect.name == "chat"
    assert build(None, prompt_as="token_ids").fields["prompt"] == [5, 6, 7]
    assert build(server(token_id_prompts=True), prompt_as="text").fields["prompt"] == "5 6 7"
    assert build(server(token_id_prompts=True), prompt_as="messages").dialect.name == "chat"
    template = build(server(token_id_prompts=True), chat_template_kwargs={"enable_thinking": False})
    assert template.fields["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_prompt_of_tokens_or_text_becomes_what_the_user_says() -> None:
    assert build(messages=None, api="chat").fields["messages"] == [{"role": "user", "content": "5 6 7"}]


def test_a_request_that_fits_no_form_says_what_is_missing() -> None:
    with pytest.raises(ConfigurationError, match="Request r has nothing to send as text; name the model's tokenizer"):
        build(None, None, prompt_as="text")


def test_fields_that_only_some_servers_take_go_to_those() -> None:
    assert not {"ignore_eos", "return_token_ids"} & build(server(ignore_eos=False)).fields.keys()
    # Where the probe could not tell, a plan of forced lengths asks for them; a server that minds says so loudly.
    assert build(server(ignore_eos=None)).fields["ignore_eos"] is True
    body = build(server(ignore_eos=True, token_ids_returned=True)).fields
    assert (body["ignore_eos"], body["return_token_ids"]) == (True, True)
    assert "ignore_eos" not in build(server(ignore_eos=True), ignore_eos=False).fields


def test_the_extra_body_wins_and_null_takes_a_field_out() -> None:
    extra = {"max_tokens": None, "max_completion_tokens": 9, "temperature": 0.5}
    fields = build(extra_body=extra).fields
    assert "max_tokens" not in fields
    assert (fields["max_completion_tokens"], fields["temperature"]) == (9, 0.5)


@pytest.mark.parametrize(
    ("slo_classes", "told"),
    [
        ((), {}),
        (("interactive", "batch"), {"slo_class": "batch", "session_id": "s"}),
        (("chat",), {"session_id": "s"}),
    ],
)
def test_class_and_session_go_to_a_server_that_schedules_by_them(
    slo_classes: tuple[str, ...], told: dict[str, str]
) -> None:
    request = PlannedRequest("r", 0, IDS, 9, slo_class="batch", session_id="s", prompt_text="Once")
    fields = BodyBuilder(EndpointSettings(url=URL), "m", server(), DECODER, slo_classes).build(request).fields
    assert {name: fields[name] for name in ("slo_class", "session_id") if name in fields} == told
