"""Prefill and decode throughput of one loaded arm, each measured alone."""

from __future__ import annotations

import random
from statistics import median

from quantgate_engine import LLM, SamplingParams

DECODE_STEPS = 32
"""Decode steps at full batch that a measurement of decode covers at least."""


def prefill_tok_s(llm: LLM, prompt_tokens: int, repeats: int, seed: int) -> float:
    """Prompt tokens per second from admission to the first token, batch 1; median of `repeats` distinct prompts."""
    params = SamplingParams(max_tokens=1, ignore_eos=True)
    rates = []
    for repeat in range(repeats + 1):
        [output] = llm.generate([_prompt(llm, prompt_tokens, seed + repeat)], params)
        timing = output.timing
        assert timing.admitted_ns is not None
        assert timing.first_token_ns is not None
        rates.append(prompt_tokens * 1e9 / (timing.first_token_ns - timing.admitted_ns))
    return median(rates[1:])  # the first run warms caches and is not counted


def decode_output_tokens(batch: int, context_tokens: int, max_step_tokens: int) -> int:
    """Length of the answers of `batch` requests that are to decode together for `DECODE_STEPS` steps.

    The first request decodes while the last one's prompt is still computed, so answers are longer by that many steps.
    """
    return DECODE_STEPS + -(-batch * context_tokens // max(1, max_step_tokens - batch)) + batch


def decode_tok_s(llm: LLM, batch: int, context_tokens: int, repeats: int, seed: int) -> float:
    """Output tokens per second of the steps in which all `batch` requests decode and nothing prefills.

    Each request has a context of `context_tokens` when its decoding starts.
    """
    output_tokens = decode_output_tokens(batch, context_tokens, llm.config.max_step_tokens)
    params = SamplingParams(max_tokens=output_tokens, ignore_eos=True)
    rates = []
    for repeat in range(repeats + 1):
        llm.take_steps()
        llm.generate([_prompt(llm, context_tokens, seed + repeat * batch + i) for i in range(batch)], params)
        steps = [s for s in llm.take_steps() if s.batch_size_prefill == 0 and s.batch_size_decode == batch]
        rates.append(sum(s.decode_tokens for s in steps) * 1e9 / sum(s.duration_ns for s in steps))
    return median(rates[1:])


def _prompt(llm: LLM, tokens: int, seed: int) -> list[int]:
    """Seeded token ids, the tokenizer's special tokens left out."""
    special = set(llm.tokenizer.all_special_ids)
    plain = [token_id for token_id in range(len(llm.tokenizer)) if token_id not in special]
    return random.Random(seed).choices(plain, k=tokens)
