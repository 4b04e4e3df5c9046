"""Which inputs of a layer share a scale: groups of one size in order, or a list that names the group of each input."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_engine.quant.formats.layer_tensors import LayerTensors

WHOLE_ROW = -1
"""As a group size: all inputs are one group."""


def count_groups(inputs: int, group_size: int) -> int:
    """The last group may be short."""
    return 1 if group_size == WHOLE_ROW else -(-inputs // group_size)


def groups_in_order(inputs: int, group_size: int) -> Tensor | None:
    """int64 [in] as `GroupedCodes.group_of_input`: None where groups of one size follow each other."""
    if group_size == WHOLE_ROW or inputs % group_size == 0:
        return None
    return torch.arange(inputs) // group_size


def listed_groups(
    tensors: LayerTensors, name: str, inputs: int, group_size: int, why: str, *, needed: bool
) -> Tensor | None:
    """The groups that the tensor `name` lists, int [in], in any order; those in order where it is not there.

    Lists that say what the order says are None as well, as are those of nothing but 0, with which some writers fill
    a place that they do not use. needed: inputs are in groups in an order that only the list tells, if there are
    several. Raises ModelError for a group that does not exist, and where a list that is needed is missing or says
    nothing.
    """
    groups = count_groups(inputs, group_size)
    needed = needed and groups > 1
    if name not in tensors and not needed:
        return groups_in_order(inputs, group_size)
    listed = tensors.take(name, (torch.int32, torch.int64), (inputs,), why).long()
    if not listed.any():
        if needed:
            raise tensors.error(name, f"holds nothing but 0; {why} needs the group of each input: the file is damaged")
        return groups_in_order(inputs, group_size)
    least, greatest = int(listed.min()), int(listed.max())
    if least < 0 or greatest >= groups:
        wrong = least if least < 0 else greatest
        raise tensors.error(
            name, f"names the group {wrong}; {why} has the groups 0 to {groups - 1}: the file is damaged"
        )
    size = inputs if group_size == WHOLE_ROW else group_size
    in_order = torch.equal(listed, torch.arange(inputs) // size)
    return groups_in_order(inputs, group_size) if in_order else listed
