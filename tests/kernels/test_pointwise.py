"""Norm, rope and activation against their formulas."""

from __future__ import annotations

import pytest
import torch

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.types import KVLayer


def test_rms_norm_by_hand(kernels: KernelSet) -> None:
    normalised, total = kernels.rms_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 2.0]), eps=0.5)
    # mean(9, 16) + 0.5 = 13
    assert normalised[0].tolist() == pytest.approx([3 / 13**0.5, 8 / 13**0.5], rel=1e-6)
    assert total.tolist() == [[3.0, 4.0]]


def test_rms_norm_adds_the_residual_first(kernels: KernelSet) -> None:
    x, residual, weight = torch.tensor([[1.0, 1.0]]), torch.tensor([[2.0, 3.0]]), torch.ones(2)
    normalised, total = kernels.rms_norm(x, weight, 0.5, residual)
    assert total.tolist() == [[3.0, 4.0]]
    assert torch.equal(normalised, kernels.rms_norm(total, weight, 0.5)[0])


def test_rms_norm_keeps_its_mean_in_float32(kernels: KernelSet) -> None:
    """4,096 squares of 1: summed in bfloat16 they would stop at 256."""
    normalised, _ = kernels.rms_norm(torch.ones(1, 4096).bfloat16(), torch.ones(4096).bfloat16(), 0.0)
    assert torch.equal(normalised, torch.ones(1, 4096).bfloat16())


def test_rope_is_a_rotation_of_complex_numbers_and_fills_its_slots(kernels: KernelSet) -> None:
    heads, kv_heads, head_dim, rows, blocks, block_size = 4, 2, 6, 3, 2, 4
    generator = torch.Generator().manual_seed(0)
    qkv = torch.randn(rows, (heads + 2 * kv_heads) * head_dim, generator=generator)
    angles = torch.randn(rows, head_dim // 2, generator=generator)
    doubled = torch.cat((angles, angles), dim=-1)
    untouched = 77.0
    shape = (blocks, block_size, kv_heads, head_dim)
    cache = KVLayer(torch.full(shape, untouched), torch.full(shape, untouched))
    slots = torch.tensor([6, 1, 3])
    queries = kernels.rope_and_write_kv(qkv, doubled.cos(), doubled.sin(), heads, kv_heads, cache, slots)

    parts = qkv.view(rows, heads + 2 * kv_heads, head_dim)
    rotating = parts[:, : heads + kv_heads]
    turned = torch.complex(rotating[..., :3], rotating[..., 3:]) * torch.exp(1j * angles).unsqueeze(1)
    expected = torch.cat((turned.real, turned.imag), dim=-1)
    torch.testing.assert_close(queries, expected[:, :heads])
    keys, values = cache.keys.view(-1, kv_heads, head_dim), cache.values.view(-1, kv_heads, head_dim)
    torch.testing.assert_close(keys[slots], expected[:, heads:])
    assert torch.equal(values[slots], parts[:, heads + kv_heads :])
    others = [slot for slot in range(blocks * block_size) if slot not in slots.tolist()]
    assert (keys[others] == untouched).all()
    assert (values[others] == untouched).all()


def test_silu_and_mul_by_hand(kernels: KernelSet) -> None:
    gated = kernels.silu_and_mul(torch.tensor([[0.0, 2.0, 5.0, 3.0]]))
    assert gated[0].tolist() == pytest.approx([0.0, 3 * 2 / (1 + 2.718281828459045**-2)], rel=1e-6)
