"""Scripts of steps over a few sequences: prefills in one piece and in chunks, decodes, and steps that mix them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.sampling_params import SamplingParams

BLOCK_SIZE = 8
VOCABULARY = 257


@dataclass(frozen=True)
class Sequence:
    """`length` tokens, from step `begins` on: `first` of them in its first step, `then` in each one after."""

    length: int
    begins: int = 0
    first: int = 1
    then: int = 1


@dataclass(frozen=True)
class Script:
    sequences: tuple[Sequence, ...]

    @property
    def num_blocks(self) -> int:
        """One more than needed: block 0, which pads tables, belongs to nobody."""
        return 1 + sum(-(-sequence.length // BLOCK_SIZE) for sequence in self.sequences)

    def tokens(self, index: int) -> tuple[int, ...]:
        generator = torch.Generator().manual_seed(100 + index)
        return tuple(torch.randint(3, VOCABULARY, (self.sequences[index].length,), generator=generator).tolist())

    def tables(self) -> list[tuple[int, ...]]:
        """Blocks in no order."""
        order = random.Random(3).sample(range(1, self.num_blocks), self.num_blocks - 1)
        tables, taken = [], 0
        for sequence in self.sequences:
            blocks = -(-sequence.length // BLOCK_SIZE)
            tables.append(tuple(order[taken : taken + blocks]))
            taken += blocks
        return tables

    def steps(self) -> Iterator[tuple[list[int], tuple[ScheduledSequence, ...]]]:
        """-> (the numbers of the sequences that are in a step, their parts of it)."""
        computed = [0] * len(self.sequences)
        known, tables, number = [self.tokens(index) for index in range(len(computed))], self.tables(), 0
        while any(done < sequence.length for done, sequence in zip(computed, self.sequences, strict=True)):
            members, parts = [], []
            for index, sequence in enumerate(self.sequences):
                if number < sequence.begins or computed[index] == sequence.length:
                    continue
                start = computed[index]
                part = known[index][start : start + (sequence.then if start else sequence.first)]
                members.append(index)
                name, params = str(index), SamplingParams()
                parts.append(ScheduledSequence(name, part, start, tables[index], sample=False, params=params))
                computed[index] += len(part)
            number += 1
            if members:
                yield members, tuple(parts)


SCRIPTS = {
    "one prefill": Script((Sequence(70, first=70),)),
    "prefills": Script((Sequence(70, first=70), Sequence(33, first=33), Sequence(1), Sequence(2, first=2))),
    "chunks": Script((Sequence(70, first=9, then=9), Sequence(41, first=16, then=5))),
    "decodes": Script((Sequence(30), Sequence(45), Sequence(9), Sequence(40, begins=4))),
    "mixed": Script(
        (
            Sequence(60, first=20),
            Sequence(50, begins=3, first=13, then=7),
            Sequence(40, begins=6, first=25),
            Sequence(25, begins=8),
        )
    ),
}
LONG = Script((Sequence(300, first=300), Sequence(40, first=1, then=39)))
"""More rows than any tile, strip or buffer for few rows holds."""
