"""The limits of this device, measured once per process and number of threads, before anything else computes."""

from __future__ import annotations

from functools import cache

from quantgate_engine.device_name import DeviceName
from quantgate_engine.executor.compute_thread import on_compute_thread
from quantgate_kernels.roofline import DeviceLimits


def device_limits(device: DeviceName = "auto", threads: int | None = None) -> DeviceLimits | None:
    """Of what the engine computes on; None for a GPU, which is not measured. threads: None takes the library's default.

    Raises ConfigurationError for a device that is not there, and for more threads than the engine would accept.
    """
    # Here, not at the top: torch takes seconds to import, and who only reads stored runs has no use for it.
    import torch

    from quantgate_engine.executor.device.choice import chosen_device
    from quantgate_engine.executor.machine_limits import require_threads

    if threads is not None:
        require_threads(threads)
    if chosen_device(device).type != "cpu":
        return None
    return _measured(torch.get_num_threads() if threads is None else threads)


@cache
def _measured(threads: int) -> DeviceLimits:
    from quantgate_kernels.device_limits import measure_device_limits

    return on_compute_thread(lambda: measure_device_limits(threads))
