"""What penalties know of the tokens before: each counted once, whenever they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quantgate_engine.executor.base import SampledToken
from quantgate_engine.sampling.token_history import TokenHistory


class CountingList(list[SampledToken]):
    """Counts how many tokens were read from it."""

    num_read = 0

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        self.num_read += len(part)
        return part


@dataclass
class Known:
    prompt_token_ids: tuple[int, ...]
    output: list[SampledToken] = field(default_factory=CountingList)


def counts(history: TokenHistory) -> dict[int, int]:
    return dict(zip(*history.drawn(), strict=True))


def test_tokens_are_counted_as_they_come() -> None:
    known = Known((5, 6, 5))
    history = TokenHistory(known)
    assert sorted(history.present()) == [5, 6]
    assert counts(history) == {}
    for token_id in (7, 5, 7):
        known.output.append(SampledToken(token_id))
    assert counts(history) == {7: 2, 5: 1}
    assert sorted(history.present()) == [5, 6, 7]
    known.output.append(SampledToken(5))
    assert counts(history) == {7: 2, 5: 2}


def test_each_token_is_read_once_however_many_steps_ask() -> None:
    output = CountingList()
    history = TokenHistory(Known((1, 2), output))
    for step in range(200):
        output.append(SampledToken(step % 7))
        history.present()
        history.drawn()
    assert output.num_read == 200


def test_a_prompt_that_is_shortened_before_the_first_draw_is_read_as_it_is_then() -> None:
    known = Known((1, 2, 3))
    history = TokenHistory(known)
    known.prompt_token_ids = (3,)
    assert list(history.present()) == [3]
