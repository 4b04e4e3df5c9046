"""Errors whose message is meant for the user as it stands: what, where, what was expected, what to do."""

from __future__ import annotations


class QuantgateError(Exception):
    """Base of every error that ends a command in one clear sentence instead of a traceback."""

    exit_code = 3


class ConfigurationError(QuantgateError):
    """A setting, a file or an argument of the user's is wrong (exit code 2)."""

    exit_code = 2


class ModelError(ConfigurationError):
    """A model is missing, damaged or of a kind that the engine does not serve (exit code 2)."""


class RunError(QuantgateError):
    """The run itself failed or its load was not delivered (exit code 3)."""


class BaselineError(QuantgateError):
    """A baseline is missing or not comparable (exit code 5)."""

    exit_code = 5
