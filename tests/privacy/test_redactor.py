"""Placeholders: the same value the same number, in one scope, and results that stay as they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.test_kinds import HITS

from quantgate.privacy.redactor import Redactor
from quantgate.traces.record import Message, TraceRecord
from quantgate.traces.redacted import redact_records


def test_the_same_value_has_the_same_number_and_another_one_has_not() -> None:
    redactor = Redactor()
    assert redactor.redact("a@x.org, b@x.org, A@X.org") == "[EMAIL_1], [EMAIL_2], [EMAIL_1]"
    assert redactor.redact("b@x.org again, c@x.org") == "[EMAIL_2] again, [EMAIL_3]"
    assert redactor.found == {"EMAIL": 5}


def test_a_text_that_comes_again_counts_once() -> None:
    redactor = Redactor()
    assert redactor.redact("a@x.org") == redactor.redact("a@x.org") == "[EMAIL_1]"
    assert redactor.found == {"EMAIL": 1}


def test_several_kinds_in_one_text() -> None:
    text = "Mail a@x.org or call +49 30 1234567 from 10.1.2.3; pay to DE89370400440532013000."
    assert Redactor().redact(text) == "Mail [EMAIL_1] or call [PHONE_1] from [IPV4_1]; pay to [IBAN_1]."


def test_what_a_neighbour_hid_is_found_too() -> None:
    text = "123-45-6789 4111 1111 1111 1111"
    assert Redactor().redact(text) == "[US_SOCIAL_SECURITY_1] [CREDIT_CARD_1]"


@given(st.lists(st.one_of(st.sampled_from([hit[2] for hit in HITS]), st.text(max_size=12)), max_size=6))
def test_redacting_again_changes_nothing(pieces: list[str]) -> None:
    once = Redactor().redact(" ".join(pieces))
    assert Redactor().redact(once) == once


def chat(request_id: str, *contents: str, **changes: object) -> TraceRecord:
    roles = ("user", "assistant")
    messages = tuple(Message(roles[index % 2], content) for index, content in enumerate(contents))
    return TraceRecord(request_id, 0, 5, messages=messages, **changes)  # type: ignore[arg-type]  # fields by name


def test_later_turns_keep_their_prefix_and_other_sessions_their_own_numbers() -> None:
    records = [
        chat("1", "I am a@x.org", session_id="s", turn=1),
        chat("2", "I am c@x.org", session_id="other", turn=1),
        chat("3", "I am a@x.org", "Hello", "And b@x.org is my wife", session_id="s", turn=2),
    ]
    redacted, step = redact_records(records)
    contents = [[message.content for message in record.messages or ()] for record in redacted]
    assert contents == [
        ["I am [EMAIL_1]"],
        ["I am [EMAIL_1]"],
        ["I am [EMAIL_1]", "Hello", "And [EMAIL_2] is my wife"],
    ]
    assert (step.name, step.parameters, step.rows_touched) == ("redact", {"found": {"EMAIL": 3}}, 3)


def test_prompts_tags_ids_and_session_names_are_redacted_too() -> None:
    record = TraceRecord(
        "a@x.org", 0, 5, prompt_text="from 10.1.2.3", tags=("b@x.org", "rag"), session_id="c@x.org", turn=1
    )
    (redacted,), _ = redact_records([record])
    assert redacted == TraceRecord(
        "request-1", 0, 5, prompt_text="from [IPV4_1]", tags=("[EMAIL_1]", "rag"), session_id="session-1", turn=1
    )


def test_records_without_text_stay_untouched() -> None:
    records = [TraceRecord("a", 0, 5, prompt_token_count=7)]
    assert redact_records(records)[0] == records
    assert redact_records(records)[1].rows_touched == 0
