"""Who may start: the `guaranteed` estimate."""

from __future__ import annotations

from quantgate_engine.kv.kv_manager import KVManager
from quantgate_engine.request import Request


class GuaranteedAdmission:
    """Lets a request in only where its whole sequence fits in blocks that nobody was promised.

    What is running can then always go on to its last token, so nothing is ever preempted. The price is memory that is
    promised and, where a request stops early, never used.
    """

    def __init__(self, kv: KVManager, max_context_tokens: int, vocab_size: int) -> None:
        self._kv = kv
        self._max_context_tokens = max_context_tokens
        self._vocab_size = vocab_size

    def refusal(self, request: Request) -> str | None:
        """Why the request could never run, with the numbers; None where it can."""
        prompt, output = len(request.prompt_token_ids), request.params.max_tokens
        if prompt == 0:
            return f"Request {request.request_id} has an empty prompt; expected at least 1 token."
        token_ids = request.prompt_token_ids + request.params.forced_token_ids
        if min(token_ids) < 0 or max(token_ids) >= self._vocab_size:
            return (
                f"Request {request.request_id} has token ids from {min(token_ids)} to {max(token_ids)}; "
                f"expected 0 to {self._vocab_size - 1}, the model's vocabulary."
            )
        if prompt + output > self._max_context_tokens:
            return (
                f"Request {request.request_id} can never run: {prompt} prompt tokens and max_tokens {output} make "
                f"{prompt + output}, above the context limit of {self._max_context_tokens}; "
                "shorten the prompt or lower max_tokens."
            )
        needed = self._kv.blocks_for(request.max_stored_tokens)
        if needed > self._kv.num_blocks:
            return (
                f"Request {request.request_id} can never run: {prompt} prompt tokens and max_tokens {output} need "
                f"{needed} KV blocks of {self._kv.block_size} tokens, and the pool has {self._kv.num_blocks}; "
                "raise num_kv_blocks, shorten the prompt or lower max_tokens."
            )
        return None

    def fits(self, request: Request) -> bool:
        return self._kv.blocks_for(request.max_stored_tokens) <= self._kv.unpromised_blocks

    def admit(self, request: Request, now_ns: int) -> None:
        """Gives the promise; call it only where `fits`."""
        self._kv.open(request.request_id, request.max_stored_tokens, now_ns)
