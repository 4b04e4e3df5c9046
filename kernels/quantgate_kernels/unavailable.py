"""The reason why a kernel set cannot run here."""

from __future__ import annotations


class KernelSetUnavailableError(RuntimeError):
    """This machine cannot run the kernel set; the message is one sentence that says why and what to do."""
