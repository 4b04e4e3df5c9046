"""Every type of GGUF weights that people ship is read as ggml's own layouts say, also where types are mixed."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from tests.models.conftest import SPECIAL_TOKENS, byte_alphabet
from tests.models.gguf_blocks import BLOCK_TYPES, random_blocks, values_by_hand

from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ModelError
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.gguf_import import import_gguf

WIDTH, HEADS, KV_HEADS = 256, 4, 2
TOKENS = [*SPECIAL_TOKENS, *byte_alphabet(), "ab"]
KV_ROWS = WIDTH // HEADS * KV_HEADS
LINEAR = {
    "attn_q": ("self_attn.q_proj", WIDTH),
    "attn_k": ("self_attn.k_proj", KV_ROWS),
    "attn_v": ("self_attn.v_proj", KV_ROWS),
    "attn_output": ("self_attn.o_proj", WIDTH),
    "ffn_gate": ("mlp.gate_proj", WIDTH),
    "ffn_up": ("mlp.up_proj", WIDTH),
    "ffn_down": ("mlp.down_proj", WIDTH),
}
# What llama.cpp's files have, and the other way round: (linear layers, embedding, head of its own).
MIXTURES = [
    *[(kind, "F16", None) for kind in BLOCK_TYPES],
    ("Q4_K", "Q6_K", None),
    ("Q4_K", "Q4_K", "Q6_K"),
    ("Q4_0", "Q8_0", "Q6_K"),
    ("Q4_1", "BF16", "Q8_0"),
    ("Q6_K", "Q4_0", "F16"),
]


def write(path: Path, linear: str, embedding: str, head: str | None) -> dict[str, NDArray[np.float64]]:
    """-> Hugging Face's names and the values by hand, rows of queries and keys in the file's order."""
    random = np.random.default_rng(7)
    writer = gguf.GGUFWriter(path, "llama")
    for add, value in (
        (writer.add_context_length, 128), (writer.add_embedding_length, WIDTH), (writer.add_block_count, 1),
        (writer.add_feed_forward_length, WIDTH), (writer.add_head_count, HEADS), (writer.add_head_count_kv, KV_HEADS),
        (writer.add_bos_token_id, 1), (writer.add_eos_token_id, 2), (writer.add_pad_token_id, 2),
        (writer.add_unk_token_id, 0),
    ):  # fmt: skip
        add(value)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * len(SPECIAL_TOKENS) + [1] * (len(TOKENS) - len(SPECIAL_TOKENS)))
    writer.add_token_merges(["a b"])
    matrices = {"token_embd": ("model.embed_tokens", len(TOKENS), embedding)}
    matrices |= {f"blk.0.{part}": (f"model.layers.0.{name}", rows, linear) for part, (name, rows) in LINEAR.items()}
    if head is not None:
        matrices["output"] = ("lm_head", len(TOKENS), head)
    expected = {}
    for name, (own, rows, kind) in matrices.items():
        blocks = random_blocks(kind, (rows, WIDTH), random)
        writer.add_tensor(f"{name}.weight", blocks, raw_dtype=gguf.GGMLQuantizationType[kind])
        expected[f"{own}.weight"] = values_by_hand(kind, blocks)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return expected


def by_halves(rows: NDArray[np.float64], heads: int) -> NDArray[np.float64]:
    """llama.cpp has a head's rows as pairs, Hugging Face as two halves."""
    size = rows.shape[0] // heads
    order = [head * size + 2 * pair + half for head in range(heads) for half in range(2) for pair in range(size // 2)]
    return rows[order]


@pytest.mark.parametrize(("linear", "embedding", "head"), MIXTURES)
def test_values_are_those_of_the_blocks_by_hand(linear: str, embedding: str, head: str | None, tmp_path: Path) -> None:
    expected = write(tmp_path / "tiny.gguf", linear, embedding, head)
    (tmp_path / "out").mkdir()
    provenance = import_gguf(tmp_path / "tiny.gguf", tmp_path / "out")
    found = load_file(tmp_path / "out" / "model.safetensors")
    for name, values in expected.items():
        heads = {"q_proj": HEADS, "k_proj": KV_HEADS}.get(name.split(".")[-2])
        wanted = torch.from_numpy(values if heads is None else by_halves(values, heads))
        # Within the rounding to float16, and of the sums in float32 before it.
        torch.testing.assert_close(found[name].double(), wanted, rtol=2**-11, atol=1e-6)
    assert ("lm_head.weight" in found) == (head is not None)
    before = provenance.get("previous_quantization")
    assert (before and before["type"]) == (linear if linear.startswith("Q") else None)


@pytest.mark.parametrize(("linear", "embedding", "head"), [("Q4_K", "Q4_K", "Q6_K"), ("Q4_0", "Q6_K", None)])
def test_a_file_of_mixed_types_is_served(linear: str, embedding: str, head: str | None, tmp_path: Path) -> None:
    write(tmp_path / "tiny.gguf", linear, embedding, head)
    folder = resolve_model(tmp_path / "tiny.gguf", tmp_path / "cache")
    logits = TorchExecutor.load(folder, "fp32", EngineConfig(kernel_set="reference")).logits([5, 9, 20, 31])
    assert logits.shape == (4, len(TOKENS))
    assert bool(logits.isfinite().all())


@pytest.mark.parametrize("kind", [kind for kind, block in BLOCK_TYPES.items() if block.scales])
def test_a_scale_that_is_not_finite_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write(path, kind, "F16", None)
    reader = gguf.GGUFReader(path, "r+")
    [tensor] = [each for each in reader.tensors if each.name == "blk.0.ffn_up.weight"]
    place = BLOCK_TYPES[kind].scales[-1]
    tensor.data.view(np.uint8).reshape(-1)[place : place + 2] = np.frombuffer(np.float16("nan").tobytes(), np.uint8)
    tensor.data.flush()
    count = BLOCK_TYPES[kind].count
    with pytest.raises(ModelError, match=rf"{count} of the 65536 values of tensor blk\.0\.ffn_up\.weight are NaN"):
        import_gguf(path, tmp_path)


@pytest.mark.parametrize("kind", BLOCK_TYPES)
def test_a_file_cut_in_its_last_tensor_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write(path, kind, kind, kind)
    path.write_bytes(path.read_bytes()[:-600])
    with pytest.raises(ModelError, match="not a whole GGUF file"):
        import_gguf(path, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            b"llama.attention.head_count\x04\0\0\0\x04\0",
            b"llama.attention.head_count\x04\0\0\0\0\0",
            "head_count: a positive",
        ),
        (b"gpt2", b"gp\xff2", r"no tokenizer can be read|tokenizer\.ggml\.model: the value is damaged"),
        (b"blk.0.ffn_up.weight", b"blk.0.ffn\nup.weight", r"tensor 'blk\.0\.ffn\\nup\.weight' is none of a llama"),
        (b"tokenizer.ggml.tokens", b"tokenizer.ggml.tokenz", "no tokenizer can be read from the metadata"),
        (b"general.architecture", b"general.architectura", "the metadata key general.architecture is missing"),
    ],
)
def test_damaged_metadata_is_one_sentence(old: bytes, new: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write(path, "Q4_0", "Q4_0", None)
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))
    with pytest.raises(ModelError, match=words) as raised:
        import_gguf(path, tmp_path)
    assert "\n" not in str(raised.value)
