"""Arms that compute through bitsandbytes: what they compute, which layers they fit, and what they need."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch
from tests.engine.against_transformers import divergence, random_tokens
from tests.engine.kernel_sets import NAMED_SETS, runnable
from tests.engine.tiny_folder import save_tiny_folder
from tests.engine.tiny_model import save_tiny_model
from torch import Tensor

from quantgate.doctor.kernel_paths import probe_kernel_paths
from quantgate_engine import LLM, SamplingParams
from quantgate_engine.config import EngineConfig, KernelSetName
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.quant.layer_schemes import LayerSchemes, find_schemes
from quantgate_engine.quant.scheme_text import SchemeChoice
from quantgate_engine.quant.schemes import find_scheme
from quantgate_kernels.reference.linear import dequantize
from quantgate_kernels.registry import make_kernel_set

MIXED = {"default": "int4-g64", "*.k_proj": "bnb-nf4", "*.down_proj": "bnb-int8", "lm_head": "bnb-int8"}
CHOICES: dict[str, tuple[SchemeChoice, float]] = {
    "int8": ("bnb-int8", 0.01),
    "nf4": ("bnb-nf4", 0.002),
    "mixed": (MIXED, 0.002),
}
"""And how far apart, in nats, roundings of activations may take the logits."""

OFFLINE_PROGRAM = """
import sys
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        print("the network was asked")
sys.addaudithook(refuse)
import torch
import quantgate_engine
from quantgate_engine.quant.precision import Precision
from quantgate_engine.quant.schemes import SCHEMES, find_scheme
for name in SCHEMES:
    if not name.startswith("bnb-"):
        find_scheme(name).quantize(torch.eye(128), Precision(torch.bfloat16, torch.bfloat16))
find_scheme("bnb-nf4")
print("bitsandbytes" in sys.modules)
find_scheme("bnb-nf4").quantize(torch.eye(128), Precision(torch.bfloat16, torch.bfloat16))
print("bitsandbytes" in sys.modules)
import kernels
"""


def dequantized_logits(model: torch.nn.Module, schemes: LayerSchemes, tokens: list[int]) -> Tensor:
    """By transformers in float32, each weight replaced by what its scheme makes of it."""
    precision = schemes.precision(torch.device("cpu"), make_kernel_set())
    with torch.no_grad():
        for name, layer in model.named_modules():
            scheme = schemes.of_head() if name == "lm_head" else schemes.of(name)
            if isinstance(layer, torch.nn.Linear) and scheme is not None:
                layer.weight = torch.nn.Parameter(dequantize(scheme.quantize(layer.weight.float(), precision)))
        logits: Tensor = model(torch.tensor([tokens])).logits[0]
    return logits


@pytest.mark.parametrize("kernel_set", NAMED_SETS)
@pytest.mark.parametrize("choice", list(CHOICES))
def test_a_model_computes_what_its_weights_stand_for(choice: str, kernel_set: KernelSetName, tmp_path: Path) -> None:
    schemes, apart = CHOICES[choice]
    folder, model = save_tiny_model(tmp_path)
    executor = TorchExecutor.load(folder, schemes, EngineConfig(kernel_set=runnable(kernel_set)))
    tokens = random_tokens(40)
    found = executor.logits(tokens)
    right = divergence(dequantized_logits(model, find_schemes(schemes), tokens), found)
    _, untouched = save_tiny_model(tmp_path)
    plain = divergence(untouched(torch.tensor([tokens])).logits[0].detach(), found)
    assert right < min(apart, plain)
    assert any(path.startswith("bitsandbytes") for path in executor.info.kernel_paths.values())


@pytest.mark.parametrize("scheme", ["bnb-int8", "bnb-nf4"])
def test_an_llm_generates_with_them(scheme: str, tmp_path: Path) -> None:
    llm = LLM(save_tiny_folder(tmp_path), scheme=scheme, max_active_requests=4, max_step_tokens=24, block_size=4)
    prompts = [random_tokens(count, seed=count) for count in (3, 30, 7)]
    outputs = llm.generate(prompts, SamplingParams(max_tokens=8, ignore_eos=True, logprobs=1))
    assert [len(output.token_ids) for output in outputs] == [8, 8, 8]
    again = llm.generate(prompts, SamplingParams(max_tokens=8, ignore_eos=True, logprobs=1))
    assert [output.token_ids for output in again] == [output.token_ids for output in outputs]
    assert llm.info.scheme == scheme


def test_steps_with_them_are_not_recorded(tmp_path: Path) -> None:
    """Not even where one of three layers that share their inputs is theirs."""
    folder, _ = save_tiny_model(tmp_path)
    recordable = {}
    for choice in ("fp16", "int4-g64+*.k_proj=bnb-nf4", "int4-g64+lm_head=bnb-int8"):
        executor = TorchExecutor.load(folder, choice, EngineConfig(kernel_set="reference"))
        recordable[choice] = executor._decoder.weights.recordable
    assert list(recordable.values()) == [True, False, False]


def test_rows_that_are_no_whole_blocks_are_refused(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path, intermediate_size=160)
    with pytest.raises(ConfigurationError) as refusal:
        TorchExecutor.load(folder, "bnb-nf4", EngineConfig())
    assert str(refusal.value) == (
        "Scheme bnb-nf4 does not fit down_proj (160 inputs): inputs must be a multiple of 64, the block of "
        "bitsandbytes; choose another scheme."
    )


def test_a_head_whose_logits_would_be_rounded_is_refused(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    with pytest.raises(ConfigurationError, match=r"bnb-nf4 does not fit lm_head: .* logits may not be rounded"):
        TorchExecutor.load(folder, "int4-g64+lm_head=bnb-nf4", EngineConfig())


@pytest.mark.parametrize("choice", ["bnb-int8", "bnb-nf4", "int4-g64+*.k_proj=bnb-nf4"])
def test_a_missing_package_is_one_sentence_with_the_command(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("quantgate_engine.quant.bitsandbytes_schemes.version", hidden)
    with pytest.raises(ConfigurationError) as refusal:
        find_schemes(choice)
    scheme = choice.rpartition("=")[2]
    assert str(refusal.value) == f'Scheme {scheme} needs bitsandbytes; run: pip install "quantgate[bnb]".'
    assert "bnb-nf4" not in {entry.scheme for entry in probe_kernel_paths()}


def test_an_older_bitsandbytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quantgate_engine.quant.bitsandbytes_schemes.version", lambda _: "0.49.2")
    with pytest.raises(ConfigurationError, match=r"bitsandbytes 0\.50 or newer, and 0\.49\.2 is installed; run: pip"):
        find_scheme("bnb-int8")


@pytest.mark.parametrize("installed", [False, True])
def test_nothing_else_imports_bitsandbytes_and_no_hub_is_asked(installed: bool, tmp_path: Path) -> None:
    """Whether Hugging Face's package `kernels`, through which it would ask, is installed or not."""
    environment = dict(os.environ)
    if installed:
        (tmp_path / "kernels").mkdir()
        asked = "def get_kernel(*arguments, **settings): print('the hub was asked')"
        (tmp_path / "kernels" / "__init__.py").write_text(asked)
        environment["PYTHONPATH"] = os.pathsep.join((str(tmp_path), environment.get("PYTHONPATH", "")))
    finished = subprocess.run(
        [sys.executable, "-c", OFFLINE_PROGRAM], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert finished.stdout.split() == ["False", "True"]
    if installed:
        assert (finished.returncode, finished.stderr) == (0, "")
    else:
        assert finished.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'kernels'"
        assert "bitsandbytes" not in finished.stderr
