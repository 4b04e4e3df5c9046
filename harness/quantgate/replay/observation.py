"""What the driver saw of one request."""

from __future__ import annotations

from dataclasses import dataclass, field

from quantgate.targets.base import RequestEnd, TokenEvent
from quantgate.targets.transfer import TokenCounting, Transfer
from quantgate.workload.plan import PlannedRequest


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Text that came in one event; how many tokens it is, only the end of the stream can tell for sure."""

    time_ns: int
    text: str
    reasoning: bool
    token_ids: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """As far as the piece itself tells: one where it came without token ids."""
        return len(self.token_ids) or 1


@dataclass(slots=True)
class RequestObservation:
    """Times are nanoseconds of the driver's clock; one entry of `token_times_ns` per token.

    A target that streams token ids fills `token_ids` and `token_times_ns` as they come. One that streams text fills
    `pieces`; then every token of a piece has the piece's time, and `transfer` says how the tokens were counted.
    """

    request: PlannedRequest
    scheduled_ns: int
    sent_ns: int
    token_ids: list[int] = field(default_factory=list)
    token_times_ns: list[int] = field(default_factory=list)
    pieces: list[TextPiece] = field(default_factory=list)
    transfer: Transfer | None = None
    ended_ns: int = 0
    end: RequestEnd = field(default_factory=lambda: RequestEnd("failed", error="the target ended without saying how"))

    @property
    def tokens_so_far(self) -> int:
        """A piece of text counts as one token where it came without token ids."""
        return len(self.token_ids) or sum(piece.tokens for piece in self.pieces)

    def take(self, event: TokenEvent, now_ns: int) -> None:
        """Notes an event's content; its end is the caller's to judge."""
        if event.text is not None:
            self.pieces.append(TextPiece(now_ns, event.text, event.reasoning, event.token_ids))
        elif event.token_ids:
            self.token_ids.extend(event.token_ids)
            self.token_times_ns.extend([now_ns] * len(event.token_ids))
        if event.transfer is not None:
            self.transfer = event.transfer

    def settle(self) -> None:
        """Gives every token of the pieces its time, once the stream has ended, in whatever way."""
        if not self.pieces:
            return
        if self._told is not None:
            counts = self._told.tokens_per_event
            self.token_ids = list(self._told.token_ids)
        else:
            counts = tuple(piece.tokens for piece in self.pieces)
            self.token_ids = [i for piece in self.pieces for i in piece.token_ids] if self._all_have_ids else []
        self.token_times_ns = [
            piece.time_ns for piece, tokens in zip(self.pieces, counts, strict=True) for _ in range(tokens)
        ]

    @property
    def counted_by(self) -> TokenCounting:
        if self._told is not None:
            return self._told.counted_by
        if self.pieces:
            return "ids" if self._all_have_ids else "chunks"
        return "engine" if self.transfer is None else self.transfer.counted_by

    @property
    def _told(self) -> Transfer | None:
        """The transfer, if it counts the tokens of every piece; a stream that was cut off has none that does."""
        whole = self.transfer is not None and len(self.transfer.tokens_per_event) == len(self.pieces) > 0
        return self.transfer if whole else None

    @property
    def _all_have_ids(self) -> bool:
        return all(piece.token_ids for piece in self.pieces)

    def text(self, *, reasoning: bool) -> str:
        """The answer's text, or that of the reasoning before it, where the target streams text."""
        return "".join(piece.text for piece in self.pieces if piece.reasoning == reasoning)

    @property
    def first_answer_ns(self) -> int | None:
        """When the answer itself began: its first text after the reasoning; the first token where there was none."""
        if not any(piece.reasoning for piece in self.pieces):
            return self.token_times_ns[0] if self.token_times_ns else None
        return next((piece.time_ns for piece in self.pieces if piece.text and not piece.reasoning), None)
