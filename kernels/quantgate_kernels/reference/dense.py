"""Products with floating weights, and the packed order in which oneDNN multiplies them fastest on CPUs.

The 16-bit baseline must be the fastest that torch can do, or the speed-ups of INT8 and INT4 over it are lies: packed
once at load, a bfloat16 product of one row takes half the time, with the same bits as a result.
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from quantgate_kernels.types import DensePackedWeight, DenseWeight

# oneDNN pads its blocks; multiples of the largest block keep the packed weight at the size of the plain one.
PACKED_BLOCK = 64
EXPECTED_ROWS = 16


def torch_multiplies_bfloat16() -> bool:
    """By instructions of this processor. Without them torch converts each operand, at a fraction of the speed."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16", "arm_bf16", "bf16"))


def multiply_plain(x: Tensor, weight: DenseWeight) -> Tensor:
    """Storage may be narrower than the arithmetic (16-bit weights where the device has no 16-bit products)."""
    return F.linear(x, weight.weight.to(x.dtype))


def has_packed_product(weight: DenseWeight) -> bool:
    return (
        weight.weight.device.type == "cpu"
        and weight.weight.dtype == torch.bfloat16
        and not any(size % PACKED_BLOCK for size in weight.shape)
        and _packed_product_works()
    )


def pack(weight: DenseWeight) -> DensePackedWeight:
    return DensePackedWeight(torch.ops.mkldnn._reorder_linear_weight(weight.weight, EXPECTED_ROWS))


def unpack(weight: DensePackedWeight) -> DenseWeight:
    return DenseWeight(weight.packed.to_dense())


def multiply_packed(x: Tensor, weight: DensePackedWeight) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight.packed, None, "none", [], "")
    return product


@cache
def _packed_product_works() -> bool:
    """These operators belong to torch's compiler, not to its public interface: a probe decides, not a version."""
    probe = DenseWeight(torch.eye(PACKED_BLOCK, dtype=torch.bfloat16))
    x = torch.arange(PACKED_BLOCK, dtype=torch.bfloat16).unsqueeze(0)
    try:
        return torch.equal(multiply_packed(x, pack(probe)), x)
    except (AttributeError, RuntimeError):
        return False
