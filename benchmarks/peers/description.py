"""What is known of an engine before it is started: how it is installed, and which builds of the model it runs.

Standard library only: the adapters, which hold these descriptions, are read in the environments of the peers too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Widths:
    """In words, what each part is stored or computed in; printed beside every figure."""

    weights: str
    activations: str
    head: str
    kv: str


@dataclass(frozen=True, slots=True)
class Precision:
    """One build of the model.

    name: what the adapter's `load` is given. bits: of the weights, the class in which it is compared.
    widths: None where the engine itself tells them once it has loaded.
    """

    name: str
    bits: int
    widths: Widths | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a set-up, run once.

    Its words may hold {python} (the environment's), {folder} (of all peers), {models} (below it), {hf} and {gguf} (the
    bundled model as a Hugging Face folder and as the file that it was made from) and {scripts} (`preparation/`).
    produces: paths below {folder}, removed before the command runs.
    """

    name: str
    command: tuple[str, ...]
    produces: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


def pip_install(*arguments: str, name: str = "install", variables: Mapping[str, str] | None = None) -> Step:
    """Installs into the peer's environment; `arguments` as the command line of `pip install` takes them."""
    return Step(name, ("{python}", "-m", "pip", "install", "--no-input", *arguments), variables=variables or {})


@dataclass(frozen=True, slots=True)
class EngineDescription:
    """An engine that `compare.py` can run.

    environment: the folder of its virtual environment; None: the one that `compare.py` itself runs in.
    distributions: the packages whose versions a comparison records.
    """

    name: str
    environment: str | None
    distributions: tuple[str, ...]
    precisions: tuple[Precision, ...]
    steps: tuple[Step, ...] = ()

    def precision(self, name: str) -> Precision:
        """Raises ValueError, with the known names, for an unknown one."""
        for precision in self.precisions:
            if precision.name == name:
                return precision
        known = ", ".join(precision.name for precision in self.precisions)
        raise ValueError(f"{self.name} has no precision {name!r}; expected one of {known}")
