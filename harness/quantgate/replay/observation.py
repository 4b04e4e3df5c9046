"""What the driver saw of one request."""

from __future__ import annotations

from dataclasses import dataclass, field

from quantgate.targets.base import RequestEnd, TokenEvent
from quantgate.targets.transfer import TokenCounting, Transfer
from quantgate.workload.plan import PlannedRequest


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Text that came in one event; how many tokens it is, only the end of the stream can tell."""

    time_ns: int
    text: str
    reasoning: bool


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
        """A piece of text counts as one token until its target has told more."""
        return len(self.token_ids) or len(self.pieces)

    def take(self, event: TokenEvent, now_ns: int) -> None:
        """Notes an event's content; its end is the caller's to judge."""
        if event.text:
            self.pieces.append(TextPiece(now_ns, event.text, event.reasoning))
        elif event.token_ids:
            self.token_ids.extend(event.token_ids)
            self.token_times_ns.extend([now_ns] * len(event.token_ids))
        if event.transfer is not None:
            self.transfer = event.transfer

    def settle(self) -> None:
        """Gives every token of the pieces its time, once the stream has ended, in whatever way."""
        if not self.pieces:
            return
        counts = self.transfer.tokens_per_event if self.transfer else ()
        if len(counts) != len(self.pieces):
            counts = (1,) * len(self.pieces)
        self.token_ids = list(self.transfer.token_ids) if self.transfer else []
        self.token_times_ns = [
            piece.time_ns for piece, tokens in zip(self.pieces, counts, strict=True) for _ in range(tokens)
        ]

    @property
    def counted_by(self) -> TokenCounting:
        if not self.pieces:
            return "engine" if self.transfer is None else self.transfer.counted_by
        return self.transfer.counted_by if self.transfer else "chunks"

    def text(self, *, reasoning: bool) -> str:
        """The answer's text, or that of the reasoning before it, where the target streams text."""
        return "".join(piece.text for piece in self.pieces if piece.reasoning == reasoning)

    @property
    def first_answer_ns(self) -> int | None:
        """When the first token came that is no reasoning; None before that."""
        if not self.pieces:
            return self.token_times_ns[0] if self.token_times_ns else None
        return next((piece.time_ns for piece in self.pieces if not piece.reasoning), None)
