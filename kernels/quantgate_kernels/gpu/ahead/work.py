"""What a launch must at least do, by the bound in its kernel's docstring; of shapes alone, without a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from quantgate_kernels.types import dtype_name

Width = Literal["16-bit", "int8"]


@dataclass(frozen=True, slots=True)
class KernelWork:
    """shape: of the launch, in words. bytes_moved: read from the device's memory and written to it.

    operations: of matrix products, a multiply-add being two, of numbers of `width`; all else is not counted, as no
    device has a published peak for it.
    """

    shape: str
    bytes_moved: int
    operations: int = 0
    width: Width | None = None


Arguments = Mapping[str, Any]


def work_of(kernel: str, arguments: Arguments) -> KernelWork:
    """arguments: of the launch, by name. Contexts are as long as the block tables, where the launch has any."""
    return _WORK[kernel](arguments)


def _bytes(*tensors: Tensor | None) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors if tensor is not None)


def _width(tensor: Tensor) -> Width | None:
    """None for float32: no kernel of the catalogue multiplies it in matrices."""
    by_bytes: dict[int, Width] = {1: "int8", 2: "16-bit"}
    return by_bytes.get(tensor.element_size())


def _token_bytes(arguments: Arguments) -> int:
    """Of a token's keys and values in all key heads, as stored, with the scales of codes."""
    scales = 0 if arguments["key_scales"] is None else arguments["key_scales"].element_size()
    return int(2 * arguments["KV_HEADS"] * (arguments["HEAD_DIM"] * arguments["keys"].element_size() + scales))


def _context(arguments: Arguments) -> int:
    return int(arguments["tables"].shape[1] * arguments["BLOCK_SIZE"])


def _decode(arguments: Arguments) -> KernelWork:
    q, sequences, context = arguments["q"], arguments["sequences"].shape[0], _context(arguments)
    written = (arguments["attended"],) if arguments["WHOLE"] else (arguments["partial"], arguments["weights"])
    tokens = sequences * context
    return KernelWork(
        f"{sequences} x {context} tokens, {arguments['HEADS']} heads on {arguments['KV_HEADS']}",
        tokens * _token_bytes(arguments) + _bytes(q, *written),
        4 * tokens * arguments["HEADS"] * arguments["HEAD_DIM"],
        _width(q),
    )


def _prefill(arguments: Arguments) -> KernelWork:
    q, context = arguments["q"], _context(arguments)
    new = q.shape[0]
    # Of the new tokens the first sees all that came before it and itself.
    pairs = new * (context - new) + new * (new + 1) // 2
    return KernelWork(
        f"{new} new of {context} tokens, {arguments['HEADS']} heads on {arguments['KV_HEADS']}",
        context * _token_bytes(arguments) + _bytes(q, arguments["attended"]),
        4 * pairs * arguments["HEADS"] * arguments["HEAD_DIM"],
        _width(q),
    )


def _merge(arguments: Arguments) -> KernelWork:
    count, heads, splits, head_dim = arguments["partial"].shape
    return KernelWork(
        f"{count} rows, {heads} heads of {head_dim}, {splits} splits",
        _bytes(arguments["partial"], arguments["weights"], arguments["attended"]),
    )


def _rotate(arguments: Arguments) -> KernelWork:
    qkv, rows = arguments["qkv"], arguments["qkv"].shape[0]
    values = rows * arguments["KV_HEADS"] * arguments["HEAD_DIM"] * qkv.element_size()
    read = _bytes(qkv, arguments["cos"], arguments["sin"], arguments["slots"]) + values
    return KernelWork(
        f"{rows} rows, {arguments['HEADS']} heads on {arguments['KV_HEADS']}",
        read + _bytes(arguments["queries"]) + rows * _token_bytes(arguments),
    )


def _norm(arguments: Arguments) -> KernelWork:
    x = arguments["x"]
    moved = (x, arguments["weight"], arguments["normalised"])
    added = (arguments["residual"], arguments["total"]) if arguments["ADDED"] else ()
    with_residual = ", with a residual" if added else ""
    return KernelWork(f"{x.shape[0]} rows of {x.shape[1]}{with_residual}", _bytes(*moved, *added))


def _gate(arguments: Arguments) -> KernelWork:
    gated = arguments["gated"]
    return KernelWork(f"{gated.shape[0]} rows of {gated.shape[1]}", _bytes(arguments["gate_up"], gated))


def _copy(arguments: Arguments) -> KernelWork:
    pairs, source = arguments["pairs"], arguments["source"]
    block = _bytes(source) // source.shape[1]
    return KernelWork(f"{pairs.shape[0]} blocks of {block} bytes", 2 * pairs.shape[0] * block)


def _draw(arguments: Arguments) -> KernelWork:
    logits = arguments["logits"]
    shape = f"{logits.shape[0]} rows, {logits.shape[1]} tokens (arithmetic, not counted, takes longer)"
    return KernelWork(shape, _bytes(logits, arguments["sums"], arguments["tokens"]))


def _best(arguments: Arguments) -> KernelWork:
    sums = arguments["sums"]
    shape = f"{sums.shape[0]} rows, {sums.shape[1]} tiles"
    return KernelWork(shape, _bytes(sums, arguments["tokens"], arguments["drawn"]))


def _linear(arguments: Arguments, *weight: str, width: Width) -> KernelWork:
    x, inputs, outputs = arguments["x"], arguments["INPUTS"], arguments["OUTPUTS"]
    rows = x.shape[0]
    moved = _bytes(x, arguments["product"], *(arguments[name] for name in weight))
    return KernelWork(f"{rows} x {inputs} x {outputs}", moved, 2 * rows * inputs * outputs, width)


def _words(arguments: Arguments) -> KernelWork:
    return _linear(arguments, "words", "scales", "zeros", width="16-bit")


def _int8(arguments: Arguments) -> KernelWork:
    scales = ("row_scales", "scales") if arguments["WHOLE"] else ()
    return _linear(arguments, "codes", *scales, width="int8")


def _sum(arguments: Arguments) -> KernelWork:
    product, splits = arguments["product"], arguments["partial"].shape[0]
    moved = (arguments["partial"], arguments["row_scales"], arguments["scales"], product)
    return KernelWork(f"{product.shape[0]} x {product.shape[1]}, {splits} splits", _bytes(*moved))


def _quantize(arguments: Arguments) -> KernelWork:
    x = arguments["x"]
    return KernelWork(f"{x.shape[0]} rows of {x.shape[1]}", _bytes(x, arguments["codes"], arguments["scales"]))


def _dequantize(arguments: Arguments) -> KernelWork:
    numbers = arguments["numbers"]
    shape = f"{numbers.shape[0]} x {numbers.shape[1]} {dtype_name(numbers.dtype)}"
    return KernelWork(shape, _bytes(arguments["words"], arguments["scales"], arguments["zeros"], numbers))


_WORK: dict[str, Callable[[Arguments], KernelWork]] = {
    "decode_attention_kernel": _decode,
    "merge_splits_kernel": _merge,
    "prefill_attention_kernel": _prefill,
    "rotate_and_write_kernel": _rotate,
    "rms_norm_kernel": _norm,
    "silu_and_mul_kernel": _gate,
    "copy_blocks_kernel": _copy,
    "draw_tokens_kernel": _draw,
    "best_token_kernel": _best,
    "linear_words_kernel": _words,
    "linear_int8_kernel": _int8,
    "sum_splits_kernel": _sum,
    "quantize_tokens_kernel": _quantize,
    "dequantize_kernel": _dequantize,
}
KERNELS = tuple(_WORK)
"""Every kernel of the catalogues, by the name that Triton gives it."""
