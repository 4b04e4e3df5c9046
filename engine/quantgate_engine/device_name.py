"""The names by which settings ask for a device. Imports nothing, so that settings can be checked without torch."""

from __future__ import annotations

from typing import Literal

DeviceName = Literal["auto", "cpu", "cuda"]
"""`auto`: a GPU where torch sees one, else the CPU; `cuda`: a GPU, AMD's too, which torch calls by the same name."""
