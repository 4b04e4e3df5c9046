"""The `triton` kernel set for a place, whether there is a GPU or not."""

from __future__ import annotations

from unittest.mock import patch

from benchmarks.on_gpu.place import Place

from quantgate_kernels.gpu import kernels as triton_set
from quantgate_kernels.kernel_set import KernelSet


def kernels_for(place: Place) -> KernelSet:
    with patch.object(triton_set, "find_device", lambda: place.kernel_device):
        return triton_set.TritonKernels()
