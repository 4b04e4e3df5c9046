"""A prompt is hashed where it is submitted, and by no step; one that is refused or cut, not before that is decided."""

from __future__ import annotations

import pytest
from tests.engine.cached_engine import CachedEngine
from tests.engine.simulation import prompt

from quantgate_engine.kv.prefix_cache import PrefixCache, sha256
from quantgate_engine.kv.prefix_chain import PrefixChain
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.request import Request, RequestState
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.scheduler.admission.caps import Caps
from quantgate_engine.scheduler.admission.settings import AdmissionSettings

SHARING = CacheSettings(prefix_sharing=True)
DEGRADE = AdmissionSettings(over_cap="degrade", min_output_tokens=4)
TURNS = RequestTerms(turn_starts=(10, 210, 410))
CONVERSATION = prompt(10, 5) + prompt(200, 100) + prompt(200, 200) + prompt(100, 300)


def all_digests(chain: PrefixChain) -> list[bytes]:
    return [chain.root.digest, *[chain.digest(place) for place in range(chain.num_blocks)]]


def digests_of(request: Request) -> list[bytes]:
    assert request.prefix_chain is not None
    return all_digests(request.prefix_chain)


def expected_digests(engine: CachedEngine, tokens: tuple[int, ...], salt: str = "") -> list[bytes]:
    """Hashed block by block, from a cache of its own."""
    size = engine.config.block_size
    cache = PrefixCache(1, size, engine.executor.cache_identity)
    chain = cache.chain(salt)
    for stop in range(size, len(tokens) + 1, size):
        cache.lengthen(chain, lambda start, end: tokens[start:end], stop)
    return all_digests(chain)


def test_no_step_hashes_a_prompt_and_of_an_answer_one_block_is_hashed() -> None:
    hashed: list[bytes] = []

    def counting(data: bytes) -> bytes:
        hashed.append(data)
        return sha256(data)

    engine = CachedEngine(cache=SHARING, max_step_tokens=64)
    engine.core._kv.prefixes._digest = counting
    engine.add("a", prompt(22), max_tokens=20)
    engine.add("b", prompt(22) + prompt(9, 500), max_tokens=20, terms=RequestTerms(cache_salt="b"))
    assert len(hashed) == 5 + 1 + 7
    engine.step(3)
    assert engine.core.load.active_requests == 2
    assert len(hashed) == 5 + 1 + 7
    engine.run()
    assert len(hashed) == 5 + 1 + 7 + 1 + 1


def test_the_chain_is_that_of_the_tokens_and_the_salt_and_grows_with_the_answer() -> None:
    engine = CachedEngine(cache=SHARING)
    request = engine.add("a", prompt(10), max_tokens=9, terms=RequestTerms(cache_salt="mine"))
    assert digests_of(request) == expected_digests(engine, prompt(10), "mine")
    engine.run()
    assert digests_of(request) == expected_digests(engine, prompt(10) + request.output_token_ids, "mine")


def test_without_sharing_nothing_is_hashed() -> None:
    assert CachedEngine().add("a", prompt(20), max_tokens=4).prefix_chain is None


@pytest.mark.parametrize("tokens", [prompt(600), (-1, *prompt(20)), (2**40, *prompt(20))])
def test_what_is_refused_is_not_hashed(tokens: tuple[int, ...]) -> None:
    engine = CachedEngine(num_blocks=256, cache=SHARING)
    request = engine.add("a", tokens, max_tokens=4)
    assert engine.run()["a"].state is RequestState.REJECTED
    assert request.prefix_chain is None


def test_a_prompt_that_is_cut_has_the_chain_of_what_is_left() -> None:
    engine = CachedEngine(num_blocks=256, cache=SHARING, admission=DEGRADE)
    request = engine.add("a", CONVERSATION, max_tokens=20, terms=TURNS)
    assert request.prefix_chain is None
    engine.step()
    kept = CONVERSATION[:10] + CONVERSATION[210:]
    assert request.prompt_token_ids == kept
    assert digests_of(request) == expected_digests(engine, kept)
    engine.run()


def test_so_has_one_that_is_cut_after_it_was_hashed_because_the_cap_was_lowered_first() -> None:
    engine = CachedEngine(num_blocks=256, cache=SHARING, admission=DEGRADE)
    engine.core.set_caps(Caps(max_context_tokens=400, max_active_requests=4))
    request = engine.add("a", CONVERSATION, max_tokens=1, terms=TURNS)
    assert digests_of(request) == expected_digests(engine, CONVERSATION)
    engine.step()
    kept = CONVERSATION[:10] + CONVERSATION[210:]
    assert request.prompt_token_ids == kept
    assert digests_of(request) == expected_digests(engine, kept)
    engine.run()
