"""Quantization: what each scheme stores, what it costs, and how far it moves the model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.tiny_model import save_tiny_model
from tests.kernel_sets import kernel_set_or_skip

from quantgate_engine.config import EngineConfig, KernelSetName
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.quant.perturbation import WeightPerturbation
from quantgate_engine.quant.precision import Precision, fastest_16_bit_precision
from quantgate_engine.quant.schemes import SCHEMES, find_scheme
from quantgate_kernels.int4_packing import unpack_groups
from quantgate_kernels.panel_weight import PANEL_OUTPUTS
from quantgate_kernels.reference.linear import dequantize
from quantgate_kernels.registry import make_kernel_set
from quantgate_kernels.stacking import stack_outputs
from quantgate_kernels.types import Int4GroupWeight, Int8ChannelWeight, Int8DynamicWeight

FLOAT32 = Precision(torch.float32, torch.float32)
BFLOAT16 = Precision(torch.bfloat16, torch.bfloat16)
CHUNK = 64
ROUNDED_FURTHER = {
    "int8-w8a8": ", linear layers int8",
    "bnb-int8": ", linear layers int8 but for outliers",
}


def random_weight(outputs: int, inputs: int, seed: int) -> torch.Tensor:
    return torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(seed))


def test_int8_by_hand() -> None:
    weight = torch.tensor([[1.27, -0.5, 0.004], [0.0, 0.0, 0.0]])
    quantized = find_scheme("int8-w8a16").quantize(weight, FLOAT32)
    assert isinstance(quantized, Int8ChannelWeight)
    assert quantized.codes.tolist() == [[127, -50, 0], [0, 0, 0]]
    assert quantized.scales.tolist() == pytest.approx([0.01, 1.0])


@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16])
def test_int8_with_int8_activations_by_hand(precision: Precision) -> None:
    """Scales stay in float32 whatever the activations are; 1.27 / 127 is no number of bfloat16."""
    weight = torch.tensor([[1.27, -0.5, 0.004], [0.0, 0.0, 0.0]])
    quantized = find_scheme("int8-w8a8").quantize(weight, precision)
    assert isinstance(quantized, Int8DynamicWeight)
    assert quantized.codes.tolist() == [[127, -50, 0], [0, 0, 0]]
    assert quantized.scales.dtype == torch.float32
    assert quantized.scales.tolist() == pytest.approx([0.01, 1.0])


def test_int4_by_hand() -> None:
    weight = torch.zeros(1, 32)
    weight[0, :5] = torch.tensor([0.7, -0.7, 0.26, -0.04, 0.34])
    quantized = find_scheme("int4-g32").quantize(weight, FLOAT32)
    assert isinstance(quantized, Int4GroupWeight)
    assert unpack_groups(quantized)[0, :6].tolist() == [15, 1, 11, 8, 11, 8]
    assert quantized.scales.tolist() == [[pytest.approx(0.1)]]


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(["int8-w8a16", "int8-w8a8", "int4-g32", "int4-g64", "int4-g128"]),
    precision=st.sampled_from([FLOAT32, BFLOAT16]),
    seed=st.integers(0, 10_000),
    size=st.floats(1e-3, 1e3),
)
def test_no_weight_moves_by_more_than_half_a_step(name: str, precision: Precision, seed: int, size: float) -> None:
    """Half a scale; a scale that was rounded down may also cut the largest weight, by less than 2^-8 of it."""
    weight = random_weight(6, 256, seed) * size
    quantized = find_scheme(name).quantize(weight, precision)
    moved = (dequantize(quantized) - weight).abs()
    group = 256 if name.startswith("int8") else int(name.removeprefix("int4-g"))
    scales = quantized.tensors()[1].float().view(6, -1, 1)
    bound = torch.maximum(scales / 2, weight.view(6, -1, group).abs() * 2**-8)
    assert (moved.view(6, -1, group) <= bound * (1 + 1e-5)).all()


@pytest.mark.parametrize("name", list(SCHEMES))
def test_stacking_outputs_changes_no_value(name: str) -> None:
    """Queries, keys and values are one product."""
    scheme, upper, lower = find_scheme(name), random_weight(8, 128, 1), random_weight(4, 128, 2) * 9
    together = scheme.quantize(torch.cat((upper, lower)), BFLOAT16)
    stacked = stack_outputs([scheme.quantize(weight, BFLOAT16) for weight in (upper, lower)])
    assert type(stacked) is type(together)
    assert all(torch.equal(*pair) for pair in zip(stacked.tensors(), together.tensors(), strict=True))


def test_a_group_that_does_not_divide_a_layer_is_refused_with_the_sizes_that_do(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    with pytest.raises(ConfigurationError) as refusal:
        TorchExecutor.load(folder, "int4-g128", EngineConfig())
    assert str(refusal.value) == (
        "Scheme int4-g128 does not fit down_proj (192 inputs): inputs must be a multiple of 128; "
        "use a group size of 32 or 64."
    )


def test_a_model_that_no_group_fits_is_told_so() -> None:
    with pytest.raises(ConfigurationError, match=r"down_proj \(100 inputs\).*no group size on offer fits"):
        find_scheme("int4-g64").check_inputs({"q_proj": 64, "down_proj": 100})


def test_an_unknown_scheme_is_named_with_those_that_exist() -> None:
    with pytest.raises(ConfigurationError, match="Unknown scheme 'int3'; expected one of fp32, bf16, fp16, int8-w8a16"):
        find_scheme("int3")


def test_the_16_bit_baseline_is_never_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    bfloat16, float32 = Precision(torch.bfloat16, torch.bfloat16), Precision(torch.float16, torch.float32)
    cpu, kernels = torch.device("cpu"), make_kernel_set("reference")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_bf16": True})
    assert fastest_16_bit_precision(cpu, kernels) == bfloat16
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_bf16": False})
    assert fastest_16_bit_precision(cpu, kernels) == float32
    assert fastest_16_bit_precision(torch.device("cuda"), kernels) == Precision(torch.float16, torch.float16)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(
    ("capabilities", "expected"), [({}, False), ({"avx2": True}, True), ({"avx512_bf16": True}, True)]
)
def test_the_cpu_kernels_multiply_bfloat16_with_less_than_torch_needs(
    capabilities: dict[str, bool], expected: bool, deterministic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel_set_or_skip("cpu")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert make_kernel_set("cpu", deterministic=deterministic).multiplies_bfloat16 is expected


@pytest.mark.parametrize("scheme", ["fp16", "int8-w8a16", "int8-w8a8", "int4-g64", "bnb-int8", "bnb-nf4"])
@pytest.mark.parametrize("capabilities", [{}, {"avx2": True}], ids=["plain", "avx2"])
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("kernel_set", ["reference", "cpu"])
def test_a_cpu_without_bfloat16_serves_every_scheme(
    scheme: str,
    capabilities: dict[str, bool],
    deterministic: bool,
    kernel_set: KernelSetName,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel_set_or_skip(kernel_set)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    folder, model = save_tiny_model(tmp_path)
    executor = TorchExecutor.load(folder, scheme, EngineConfig(kernel_set=kernel_set, deterministic=deterministic))
    rounded_further = ROUNDED_FURTHER.get(scheme, "")
    dtypes = ("bfloat16", "bfloat16") if capabilities and kernel_set == "cpu" else ("float32", "float16")
    assert (executor.info.compute_dtype, executor.info.head_dtype) == (f"{dtypes[0]}{rounded_further}", dtypes[1])
    tokens = list(range(3, 40))
    with torch.no_grad():
        expected = model(torch.tensor([tokens])).logits[0].log_softmax(-1)
    divergence = (expected.exp() * (expected - executor.logits(tokens).log_softmax(-1))).sum(-1).mean()
    rounding = {"float32": 1e-4, "bfloat16": 1e-3}[dtypes[0]]
    most = {"fp16": rounding, "int8-w8a16": 0.05, "int8-w8a8": 0.5, "int4-g64": 5.0, "bnb-int8": 0.05, "bnb-nf4": 3.0}
    assert divergence < most[scheme]


def test_info_tells_what_is_really_stored(tmp_path: Path) -> None:
    folder, model = save_tiny_model(tmp_path)
    parameters = dict(model.named_parameters())  # a tied head is listed once
    everything = sum(parameter.numel() for parameter in parameters.values())
    linear = sum(parameter.numel() for name, parameter in parameters.items() if "_proj.weight" in name)
    loaded = {name: TorchExecutor.load(folder, name, EngineConfig()).info for name in SCHEMES if name != "int4-g128"}
    assert (loaded["fp32"].weight_bytes, loaded["fp32"].linear_weight_bytes) == (4 * everything, 4 * linear)
    # A vocabulary that fills no panels is stored as one that does.
    vocabulary, hidden = model.get_output_embeddings().weight.shape
    padding = -vocabulary % PANEL_OUTPUTS * hidden if make_kernel_set().name == "cpu" else 0
    assert (loaded["bf16"].weight_bytes, loaded["bf16"].linear_weight_bytes) == (2 * (everything + padding), 2 * linear)
    # A scale for each output; in panels, where codes meet codes, the sum of its codes too.
    outputs = sum(parameter.shape[0] for name, parameter in parameters.items() if "_proj.weight" in name)
    assert linear < loaded["int8-w8a16"].linear_weight_bytes <= linear + 4 * outputs
    assert linear < loaded["int8-w8a8"].linear_weight_bytes <= linear + 8 * outputs
    assert loaded["int4-g64"].linear_weight_bytes < 0.60 * loaded["int8-w8a16"].linear_weight_bytes
    assert linear + 4 * outputs == loaded["bnb-int8"].linear_weight_bytes
    # Scales of 64 codes each in bfloat16, where CPUs multiply that, or in float32.
    assert linear * 4.25 / 8 <= loaded["bnb-nf4"].linear_weight_bytes <= linear * 4.5 / 8
    for info in loaded.values():
        assert (info.head_dtype == "float32") == (info.scheme == "fp32")
        assert info.compute_dtype == info.kv_dtype + ROUNDED_FURTHER.get(info.scheme, "")
        assert (info.name, info.kernel_set) == ("tiny-llama", make_kernel_set().name)


def test_more_bits_come_closer_to_the_model(tmp_path: Path) -> None:
    folder, model = save_tiny_model(tmp_path)
    tokens = list(range(3, 3 + CHUNK))
    with torch.no_grad():
        expected = model(torch.tensor([tokens])).logits[0].log_softmax(-1)

    def divergence(scheme: str) -> float:
        logprobs = TorchExecutor.load(folder, scheme, EngineConfig()).logits(tokens).log_softmax(-1)
        return float((expected.exp() * (expected - logprobs)).sum(-1).mean())

    distances = [divergence(scheme) for scheme in ("fp32", "fp16", "int8-w8a16", "int8-w8a8", "int4-g64")]
    assert distances == sorted(distances)
    assert distances[0] < 1e-6
    assert distances[4] > 10 * distances[2]


def test_a_perturbation_is_seeded_proportional_and_reaches_every_linear_layer(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    tokens = list(range(3, 40))

    def logits(perturbation: WeightPerturbation | None) -> torch.Tensor:
        return TorchExecutor.load(folder, "fp32", EngineConfig(), perturbation=perturbation).logits(tokens)

    clean, damaged = logits(None), logits(WeightPerturbation(0.1, seed=1))
    assert torch.equal(damaged, logits(WeightPerturbation(0.1, seed=1)))
    assert not torch.equal(damaged, logits(WeightPerturbation(0.1, seed=2)))
    assert torch.equal(clean, logits(WeightPerturbation(0.0, seed=1)))
    small = (logits(WeightPerturbation(0.001, seed=1)) - clean).abs().mean()
    assert 0 < 10 * small < (damaged - clean).abs().mean()


def test_noise_has_the_size_that_was_asked_for() -> None:
    weight = random_weight(400, 300, seed=3) * 5
    noise = WeightPerturbation(0.2, seed=4).apply("layer", weight) - weight
    assert float(noise.std() / weight.std()) == pytest.approx(0.2, rel=0.02)
    other = WeightPerturbation(0.2, seed=4).apply("another layer", weight) - weight
    assert abs(float((noise * other).mean())) < 0.01 * float(noise.var())


def test_negative_noise_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"relative_sigma is -0\.1"):
        WeightPerturbation(-0.1, seed=0)
