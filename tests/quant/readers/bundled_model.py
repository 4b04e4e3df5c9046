"""The bundled model's quantized checkpoints: logits of transformers beside those of this engine, as JSON lines.

    quantgate quantize smollm2-135m-instruct --scheme int4-g64 --format compressed-tensors --out CHECKPOINT
    python -m tests.quant.readers.bundled_model CHECKPOINT...

from the top of the project, in its environment for development. Both compute in float32, over the first 256 tokens of
README.md; a difference is the largest one over the largest expected logit. `as_written` is by the way of transformers
that loads the folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.engine.against_transformers import expected_logits, relative_difference
from tests.quant.in_transformers import (
    has_zeros,
    load_in_engine,
    load_in_transformers,
    round_inputs_by_127,
    rounds_inputs,
    with_wide_scales,
)
from torch import Tensor
from transformers import AutoTokenizer

TOKENS = 256


def compared(folder: Path) -> dict[str, Any]:
    tokens = AutoTokenizer.from_pretrained(folder)(Path("README.md").read_text(encoding="utf-8"))["input_ids"][:TOKENS]
    found = load_in_engine(folder).logits(tokens)
    zeros = has_zeros(folder)
    model = load_in_transformers(folder, dequantize=zeros)
    differences = {"as_written": _difference(found, expected_logits(model, tokens))}
    if zeros:
        with TemporaryDirectory() as place:
            model = load_in_transformers(with_wide_scales(folder, Path(place) / "wide"), dequantize=True)
            differences["scales_widened"] = _difference(found, expected_logits(model, tokens))
    if rounds_inputs(model):
        round_inputs_by_127(model)
        expected = expected_logits(model, tokens)
        differences["inputs_by_127"] = _difference(found, expected)
        differences["transformers_beside_itself_in_float64"] = _difference(
            expected, expected_logits(model.double(), tokens).float()
        )
    return {"checkpoint": folder.name, **differences}


def _difference(found: Tensor, expected: Tensor) -> dict[str, float]:
    return {
        "largest": relative_difference(found, expected),
        "same_likeliest_token": (found.argmax(-1) == expected.argmax(-1)).float().mean().item(),
    }


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(json.dumps(compared(Path(path))), flush=True)
