"""The floating dtypes of an arm, and the fastest 16-bit path of a device and its kernels."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from quantgate_kernels.kernel_set import KernelSet


@dataclass(frozen=True, slots=True)
class Precision:
    """storage: dtype of unquantized weights (embedding, head, dense layers); compute: of activations and KV."""

    storage: torch.dtype
    compute: torch.dtype


def float32_precision(_device: torch.device, _kernels: KernelSet) -> Precision:
    return Precision(storage=torch.float32, compute=torch.float32)


def bfloat16_precision(_device: torch.device, _kernels: KernelSet) -> Precision:
    return Precision(storage=torch.bfloat16, compute=torch.bfloat16)


def fastest_16_bit_precision(device: torch.device, kernels: KernelSet) -> Precision:
    """float16 on GPUs; bfloat16 on CPUs whose kernels multiply it; else 16-bit storage with float32 arithmetic.

    float16 arithmetic on CPUs, and bfloat16 that is emulated, are slow: a baseline on either would make every
    quantized arm look faster than it is.
    """
    if device.type != "cpu":
        return Precision(storage=torch.float16, compute=torch.float16)
    if kernels.multiplies_bfloat16:
        return Precision(storage=torch.bfloat16, compute=torch.bfloat16)
    return Precision(storage=torch.float16, compute=torch.float32)
