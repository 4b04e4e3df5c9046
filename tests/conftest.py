from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread() -> None:
    """Tensors are tiny in tests: a second thread costs more than it brings, most of all on a busy machine.

    Test modules are imported before this runs, so that torch is there already if any of them needs it.
    """
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
