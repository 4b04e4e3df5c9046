"""Finds out by some two dozen short requests what a server gives; the answers are read, not the documentation."""

from __future__ import annotations

from quantgate.capabilities.capabilities import Capabilities
from quantgate.capabilities.probes.asking import Asking
from quantgate.capabilities.probes.given_answers import gives_continuation_logits, gives_forced_tokens
from quantgate.capabilities.probes.logprobs import ListedLogprobs, probe_logprobs
from quantgate.capabilities.probes.models import choose_model
from quantgate.capabilities.probes.prompts import TEXT_PROMPTS, PromptForms, probe_prompts
from quantgate.capabilities.probes.sampling import honours_ignore_eos, honours_seed
from quantgate.capabilities.probes.surroundings import CHAT, answers_chat, counts_streamed_tokens, shows_metrics
from quantgate.capabilities.server_calls import ServerCalls
from quantgate.capabilities.token_texts import TokenTexts
from quantgate.capabilities.tokenizer import ProbeTokenizer
from quantgate.targets.openai.errors import EndpointError
from quantgate.targets.openai.settings import EndpointSettings

_NO_LOGPROBS = ListedLogprobs(prompt=None, echoed=None, generated=None, identified=False)


async def probe(calls: ServerCalls, settings: EndpointSettings, tokenizer: ProbeTokenizer | None) -> Capabilities:
    """`calls` is an open endpoint; `tokenizer` that of the run, where it has one.

    What a server refuses it does not give. Raises EndpointError alone where the server cannot be reached, refuses the
    key, offers no model that could be asked, or answers neither completions nor chat.
    """
    asking = Asking(calls, settings)
    offered = await choose_model(asking)
    chat = await answers_chat(asking)
    forms = await probe_prompts(asking, tokenizer)
    if not (chat or forms.completions):
        raise EndpointError(
            f"{settings.url}: the model {asking.model!r} answers neither /v1/completions "
            f"({_seen(asking, TEXT_PROMPTS)}) nor /v1/chat/completions ({_seen(asking, CHAT)}); check the URL and the "
            "model, or read the server's log.",
            "status_4xx",
        )
    listed = await _logprobs(asking, forms, tokenizer)
    return Capabilities(
        model=asking.model,
        models=offered.ids,
        weights_sha256=offered.weights_sha256,
        tokenizer_sha256=offered.tokenizer_sha256,
        max_context_tokens=offered.max_context_tokens,
        slots=offered.slots,
        completions=forms.completions,
        chat=chat,
        token_id_prompts=forms.token_id_prompts,
        prompt_logprobs=listed.prompt,
        echoed_logprobs=listed.echoed,
        generated_logprobs=listed.generated,
        vocabulary_listed=tokenizer is not None and (listed.generated or 0) >= len(tokenizer.get_vocab()),
        tokens_identified=listed.identified,
        forced_tokens=forms.token_ids_returned and await gives_forced_tokens(asking, forms.token_ids),
        continuation_logits=forms.token_id_prompts and await gives_continuation_logits(asking, forms.token_ids),
        ignore_eos=await honours_ignore_eos(asking, chat=chat),
        seed=await honours_seed(asking, completions=forms.completions),
        stream_usage=await counts_streamed_tokens(asking, completions=forms.completions),
        token_ids_returned=forms.token_ids_returned,
        metrics=await shows_metrics(asking),
        tokenize=forms.tokenize,
        tokenizer=forms.tokenizer,
        tokenizer_fingerprint=forms.tokenizer_fingerprint,
        notes=asking.notes,
        requests=asking.requests,
    )


def _seen(asking: Asking, what: str) -> str:
    failure = asking.failures.get(what)
    return failure.seen if failure else "an answer without text"


async def _logprobs(asking: Asking, forms: PromptForms, tokenizer: ProbeTokenizer | None) -> ListedLogprobs:
    if not forms.token_id_prompts:
        return _NO_LOGPROBS
    return await probe_logprobs(asking, forms.token_ids, TokenTexts(tokenizer))
