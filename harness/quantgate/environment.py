"""The environment of a run, as its manifest records it."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from quantgate.machine import cpu_name, instruction_sets, memory_bytes, usable_cores
from quantgate.store.manifest import Environment

RECORDED_PACKAGES = (
    "quantgate",
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "gguf",
    "numpy",
    "scipy",
    "pyarrow",
    "pydantic",
    "triton",
    "bitsandbytes",
)


def capture_environment(device: str = "cpu") -> Environment:
    """`device`: what the arms run on, in the engine's words."""
    # Most commands that record an environment have torch loaded; `quantgate --help` must not wait for it.
    import torch

    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        cpu=cpu_name(),
        cores=usable_cores(),
        threads=torch.get_num_threads(),
        memory_bytes=memory_bytes(),
        isa=instruction_sets(),
        device=device,
        versions=package_versions(RECORDED_PACKAGES),
    )


def package_versions(names: tuple[str, ...]) -> dict[str, str]:
    """The installed ones of `names`."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
