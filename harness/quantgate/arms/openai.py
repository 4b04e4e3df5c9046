"""Opens arms that are servers: asks each what it can do before anything is measured on it."""

from __future__ import annotations

from functools import partial

from quantgate.arms.config import OpenAIArmConfig
from quantgate.arms.opened_arm import OpenedArm
from quantgate.arms.tokenizer import RunTokenizer
from quantgate.capabilities.probe import probe
from quantgate.quality.openai_model import OpenAIModel
from quantgate.replay.arms import ReplayArm
from quantgate.store.manifest import ModelManifest
from quantgate.targets.openai.endpoint import Endpoint
from quantgate.targets.openai.target import OpenAITarget
from quantgate_engine.clock import Clock
from quantgate_engine.errors import ConfigurationError


async def open_openai_arm(arm: OpenAIArmConfig, tokenizer: RunTokenizer | None, clock: Clock) -> OpenedArm:
    """Probes the server, which must be up.

    Raises EndpointError where it cannot be used at all, ConfigurationError where the tokenizer is not its own.
    """
    async with Endpoint(arm) as endpoint:
        capabilities = await probe(endpoint, arm, tokenizer)
    if capabilities.ignore_eos is None and capabilities.continuation_logits:
        # Our own server honours it; its probe cannot tell where no answer of the model ends by itself.
        capabilities = capabilities.model_copy(update={"ignore_eos": True})
    if capabilities.tokenizer == "differs":
        raise ConfigurationError(
            f"The tokenizer given does not read text as the server of arm {arm.arm_id} at {arm.url} does; give the "
            "one of the model that is served (--tokenizer, or tokenizer in a suite), or none."
        )
    recipe = partial(
        OpenAITarget,
        arm,
        arm_id=arm.arm_id,
        role=arm.role,
        tokenizer=tokenizer,
        capabilities=capabilities,
        scheme=arm.scheme,
    )
    return OpenedArm(
        config=arm,
        replay=ReplayArm(arm.arm_id, arm.role, recipe(clock=clock), recipe),
        quality_model=OpenAIModel(arm, capabilities, tokenizer),
        tokenizer=tokenizer,
        max_context_tokens=capabilities.max_context_tokens,
        model=ModelManifest(
            name=capabilities.model,
            weights_sha256=capabilities.weights_sha256,
            tokenizer_sha256=capabilities.tokenizer_sha256,
        ),
        honours_ignore_eos=capabilities.ignore_eos,
    )
