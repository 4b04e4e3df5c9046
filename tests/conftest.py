from __future__ import annotations

import os
import sys

import pytest

# What tests say of an engine they say of the CPU's, also where there is a GPU. Before torch looks for one.
os.environ |= {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread() -> None:
    """Tensors are tiny in tests: a second thread costs more than it brings, most of all on a busy machine.

    Test modules are imported before this runs, so that torch is there already if any of them needs it.
    """
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
