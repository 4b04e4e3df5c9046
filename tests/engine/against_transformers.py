"""What transformers says of the same tokens, and the engine's own decoding of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from quantgate_engine.executor.base import SampledToken, ScheduledSequence
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.sampling_params import SamplingParams

GREEDY = SamplingParams(logprobs=5)


def random_tokens(count: int, seed: int = 1) -> list[int]:
    return torch.randint(3, 257, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def expected_logits(model: Any, tokens: list[int]) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(torch.tensor([tokens])).logits[0]
    return logits


def largest_difference(left: Tensor, right: Tensor) -> float:
    return float((left - right).abs().max())


def relative_difference(found: Tensor, expected: Tensor) -> float:
    """Largest difference over the largest expected logit."""
    return largest_difference(found, expected) / float(expected.abs().max())


def divergence(expected: Tensor, logits: Tensor) -> float:
    """Mean KL divergence over rows, in nats."""
    p, q = expected.double().log_softmax(-1), logits.double().log_softmax(-1)
    return float((p.exp() * (p - q)).sum(-1).mean())


def decode_greedily(
    executor: TorchExecutor, prompts: list[list[int]], steps: int, chunk: int
) -> list[list[SampledToken]]:
    """Chunked prefill of all prompts side by side, then `steps` decode steps in one batch; returns sampled tokens."""
    blocks = executor.num_blocks // len(prompts)
    tables = [tuple(range(index * blocks, (index + 1) * blocks)) for index in range(len(prompts))]
    known = [list(prompt) for prompt in prompts]
    computed = [0] * len(prompts)
    drawn: list[list[SampledToken]] = [[] for _ in prompts]
    while min(map(len, drawn)) < steps:
        step, members = [], []
        for index, tokens in enumerate(known):
            if len(drawn[index]) == steps:
                continue
            # Unlike chunk sizes keep prefills and decodes of several sequences in the same steps.
            part = tuple(tokens[computed[index] : computed[index] + chunk + 3 * index])
            last = computed[index] + len(part) == len(tokens)
            step.append(ScheduledSequence(str(index), part, computed[index], tables[index], sample=last, params=GREEDY))
            members.append(index)
            computed[index] += len(part)
        for index, sampled in zip(members, executor.execute(tuple(step)), strict=True):
            if sampled is not None:
                drawn[index].append(sampled)
                known[index].append(sampled.token_id)
    return drawn


def decoding_error(model: Any, prompt: list[int], drawn: list[SampledToken]) -> float:
    """The largest difference of log-probabilities, drawn tokens and alternatives, over the largest expected one.

    Infinite where a token is not the one that transformers finds likeliest.
    """
    tokens = [sampled.token_id for sampled in drawn]
    expected = expected_logits(model, prompt + tokens)[len(prompt) - 1 : -1].log_softmax(-1)
    if tokens != expected.argmax(-1).tolist():
        return float("inf")
    found = torch.tensor([[value for _, value in sampled.top_logprobs] for sampled in drawn])
    return relative_difference(found, expected.topk(found.shape[1]).values)
