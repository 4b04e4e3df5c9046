"""Keys, rates and settings by themselves, on a virtual clock."""

from __future__ import annotations

import pytest

from quantgate_engine.clock import VirtualClock
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.server.api_error import ApiError
from quantgate_engine.server.keys import ApiKeys
from quantgate_engine.server.rate_limit import RateLimiter
from quantgate_engine.server.settings import ServerSettings

KEYS = ("first-key", "second-key")


def test_a_rate_fills_up_evenly_and_no_higher_than_a_minute() -> None:
    clock = VirtualClock()
    rates = RateLimiter(6, clock)
    for _ in range(6):
        rates.take(0)
    with pytest.raises(ApiError) as refused:
        rates.take(0)
    assert refused.value.headers == {"Retry-After": "10"}
    rates.take(1)
    clock.advance_ns(4_000_000_000)
    with pytest.raises(ApiError) as refused:
        rates.take(0)
    assert refused.value.headers == {"Retry-After": "6"}
    clock.advance_ns(6_000_000_000)
    rates.take(0)
    clock.advance_ns(3_600_000_000_000)
    for _ in range(6):
        rates.take(0)
    with pytest.raises(ApiError):
        rates.take(0)


@pytest.mark.parametrize("header", [None, "", "first-key", "Bearer", "Bearer first", "Basic first-key"])
def test_only_a_bearer_of_a_whole_key_is_let_in(header: str | None) -> None:
    keys = ApiKeys(KEYS)
    assert (keys.caller("Bearer first-key"), keys.caller("bearer second-key")) == (0, 1)
    with pytest.raises(ApiError):
        keys.caller(header)
    assert ApiKeys(()).caller(header) == 0


@pytest.mark.parametrize("key", ["schl\u00fcssel", "voil\u00e0", "\u9470\U0001f511"])
def test_a_key_beyond_ascii_is_known_by_the_bytes_that_clients_send(key: str) -> None:
    """Headers come as Latin-1 text; the last byte of "à" in UTF-8 reads as a space there, and is none."""
    keys = ApiKeys([key])
    assert keys.caller("Bearer " + key.encode().decode("latin-1") + " ") == 0
    with pytest.raises(ApiError):
        keys.caller("Bearer schlussel")


def test_keys_do_not_show_in_the_settings() -> None:
    assert "first-key" not in repr(ServerSettings(served_name="tiny", api_keys=KEYS))


@pytest.mark.parametrize("field", ["requests_per_minute", "max_body_bytes", "request_timeout_s", "max_unread_chunks"])
def test_settings_out_of_range_are_refused(field: str) -> None:
    with pytest.raises(ConfigurationError, match=f"ServerSettings.{field} is 0"):
        ServerSettings(served_name="tiny", **{field: 0})
