"""Writes a GGUF file in another type: gguf_file.py bf16|q8_0|q4_0 SOURCE TARGET, in llama-cpp-python's environment."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import llama_cpp

FILE_TYPES = {
    "bf16": llama_cpp.LLAMA_FTYPE_MOSTLY_BF16,
    "q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
    "q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0,
}


def main(kind: str, source: str, target: str) -> None:
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = FILE_TYPES[kind]
    # The source is quantized itself: its values are taken as the weights, here as by quantgate.
    params.allow_requantize = True
    code = llama_cpp.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params))
    if code != 0:
        sys.exit(f"llama_model_quantize gave {code} for {source}")


if __name__ == "__main__":
    main(*sys.argv[1:])
