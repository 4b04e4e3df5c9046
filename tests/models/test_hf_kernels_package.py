"""transformers imports a package named `kernels` where there is one; ours must not be taken for it, nor hide it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from transformers.utils.import_utils import KERNELS_MIN_VERSION

ROOT = Path(__file__).parents[2]

# What transformers imports of the package at its own import; the classes take any argument and do nothing.
FAKE_PACKAGE = """
class _Anything:
    def __init__(self, *arguments, **settings): pass
    def __call__(self, function=None, *arguments, **settings): return function
    def __getattr__(self, name): return _Anything()
    def __hash__(self): return 1

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Anything if name[0].isupper() else lambda *arguments, **settings: (lambda decorated: decorated)
"""

PROGRAM = """
import sys
import quantgate, quantgate_engine, quantgate_kernels
import quantgate_kernels.registry
from transformers.utils import is_kernels_available
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
import transformers.integrations.hub_kernels
shape = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, vocab_size=8)
LlamaForCausalLM(LlamaConfig(**shape))
kernels = sys.modules.get("kernels")
print(is_kernels_available(), getattr(kernels, "__file__", None))
"""


@pytest.fixture
def fake_kernels(tmp_path):
    site = tmp_path / "site"
    (site / "kernels").mkdir(parents=True)
    (site / "kernels" / "__init__.py").write_text(FAKE_PACKAGE)
    info = site / f"kernels-{KERNELS_MIN_VERSION}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: kernels\nVersion: {KERNELS_MIN_VERSION}\n")
    return site


@pytest.mark.parametrize("root_on_path", [False, True])
@pytest.mark.parametrize("installed", [False, True])
def test_transformers_takes_the_right_kernels(fake_kernels, tmp_path, root_on_path, installed):
    path = ([str(ROOT)] if root_on_path else []) + ([str(fake_kernels)] if installed else [])
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYTHONPATH"] = os.pathsep.join(path)
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    expected = f"True {fake_kernels / 'kernels' / '__init__.py'}" if installed else "False None"
    assert finished.stdout.strip() == expected
