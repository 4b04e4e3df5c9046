"""Load by clients that wait for their answers, and the words for both kinds of load.

A closed loop says how much an arm serves to a number of clients. It does not say how an arm bears a rate of arrivals:
where answers are slow the clients send less, and the queue that an open loop would show never forms.
"""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.counted import counted

OPEN_LOOP = "open loop"


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """`clients` at a time, each of which sends its next session or request when its last one has ended.

    think_ns: how long a client waits between the two.
    """

    clients: int
    think_ns: int = 0

    @property
    def words(self) -> str:
        pause = f" that pause {self.think_ns / 1e9:g} s after an answer" if self.think_ns else ""
        return f"closed loop, {counted(self.clients, 'client')}{pause}"

    @property
    def note(self) -> str:
        """What a reader of the arm's times must know."""
        return (
            f"{self.words}: the next request waits for an answer, so a slower arm is sent less, and its TTFT is not "
            "that under a given rate of arrivals."
        )


def load_words(closed_loop: ClosedLoop | None) -> str:
    return OPEN_LOOP if closed_loop is None else closed_loop.words
