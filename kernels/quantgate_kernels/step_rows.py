"""One step's rows as plain numbers, before anybody makes tensors of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class StepRows(NamedTuple):
    """The new tokens of S sequences, back to back, and where their keys and values live.

    token_ids: [T]. query_starts: [S + 1], the range of each sequence's rows. context_lens: [S], tokens of each sequence
    after this step; its new ones are the last of them. block_tables: for each sequence the blocks that hold these, and
    perhaps more.
    """

    token_ids: Sequence[int]
    query_starts: Sequence[int]
    context_lens: Sequence[int]
    block_tables: Sequence[Sequence[int]]
    block_size: int
