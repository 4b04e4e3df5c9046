"""The names by which settings ask for a kernel set. Imports nothing, so that settings can be checked without torch."""

from __future__ import annotations

from typing import Literal

KernelSetName = Literal["auto", "reference", "cpu", "triton"]
AUTO: KernelSetName = "auto"
"""The fastest set that runs on the device."""
