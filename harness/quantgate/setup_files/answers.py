"""From flags and answers to what a project consists of: what the flags leave open is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quantgate.setup_files.bundled_arms import DEFAULT_SCHEMES, BundledArms
from quantgate.setup_files.project import ArmsSetup
from quantgate.setup_files.prompt import Prompt
from quantgate.setup_files.server_arms import DEFAULT_KEY_VARIABLE, ServerArms
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.layer_schemes import find_schemes

READY_POLICIES = ("chat", "batch", "mixed", "ci")
DEFAULT_POLICY = "mixed"
_SERVERS, _BUNDLED = "servers", "bundled"
_NONE = "none"


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line says; None or empty where it says nothing."""

    model: str | None = None
    log: Path | None = None
    baseline: str | None = None
    candidates: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    tokenizer: str | None = None
    key_variable: str | None = None
    policy: str | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    arms: ArmsSetup
    log: Path
    policy: str


def complete(flags: Flags, prompt: Prompt) -> Answers:
    """Raises ConfigurationError where flags contradict each other or name what does not exist."""
    named = flags.baseline is not None or bool(flags.candidates)
    if named and flags.schemes:
        raise ConfigurationError(
            "--schemes chooses precisions of the bundled engine, --baseline and --candidate name servers; leave one of "
            "them out."
        )
    ask_for_arms = _servers if named or (flags.model is None and _wants_servers(prompt)) else _bundled
    arms = ask_for_arms(flags, prompt)
    log = flags.log or Path(prompt.text("Request log or trace to replay (file)", flag="--log FILE"))
    policy = flags.policy or prompt.choice("Policy to start from", READY_POLICIES, default=DEFAULT_POLICY)
    if policy not in READY_POLICIES:
        raise ConfigurationError(f"--policy is {policy!r}; expected one of: {', '.join(READY_POLICIES)}.")
    return Answers(arms, log, policy)


def split_list(text: str) -> tuple[str, ...]:
    """`a, b` as ("a", "b")."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _wants_servers(prompt: Prompt) -> bool:
    question = "Compare servers of yours, or precisions of a model on the bundled engine"
    return prompt.choice(question, (_SERVERS, _BUNDLED), default=_SERVERS) == _SERVERS


def _servers(flags: Flags, prompt: Prompt) -> ArmsSetup:
    baseline = flags.baseline or prompt.text(
        "URL of the baseline, such as http://fp16:8000", flag="--baseline URL (or --model MODEL for the bundled engine)"
    )
    candidates = flags.candidates or split_list(
        prompt.text("URL of the candidate (several: separated by commas)", flag="--candidate URL")
    )
    tokenizer = flags.tokenizer or prompt.text(
        "Tokenizer of the servers: known model, folder or Hub id", flag="--tokenizer NAME", default=_NONE
    )
    return ServerArms(
        baseline=baseline,
        candidates=candidates,
        served_model=flags.model,
        tokenizer=None if tokenizer == _NONE else tokenizer,
        key_variable=flags.key_variable or DEFAULT_KEY_VARIABLE,
    )


def _bundled(flags: Flags, prompt: Prompt) -> ArmsSetup:
    model = flags.model or prompt.text(
        "Model: known name, Hugging Face folder or id, or GGUF file", flag="--model MODEL"
    )
    schemes = flags.schemes or split_list(
        prompt.text("Precisions, the baseline first", flag="--schemes A,B", default=",".join(DEFAULT_SCHEMES))
    )
    for scheme in schemes:
        find_schemes(scheme)
    return BundledArms(model, schemes)
