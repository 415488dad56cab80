"""vLLM itself: the model, what it is asked, and what it says in the form of a server's answer.

Read with vLLM 0.32. Nothing of it is imported before it is used.
"""

import json
import logging
import math
import re
import time
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from resources.engines.providers import PROVIDERS
from saber_dagster.engines import Message
from saber_dagster.errors import SaberError

_FINISH = MappingProxyType({"repetition": "length"})
_log = logging.getLogger("saber_dagster.engines")


def prefix_order(prompts: Sequence[Sequence[Message]]) -> list[int]:
    """Positions of prompts in the order of their texts: common beginnings become neighbours."""
    return sorted(range(len(prompts)), key=lambda i: ([m["content"] for m in prompts[i]], i))


def completion(output: Any) -> dict[str, Any]:
    """A ``vllm.RequestOutput`` in the form of a chat completion, which is read like a server's."""
    reply = output.outputs[0]
    tokens = [
        {
            "token": place[chosen].decoded_token or "",
            "top_logprobs": [
                {"token": entry.decoded_token or "", "logprob": entry.logprob}
                for entry in place.values()
                if math.isfinite(entry.logprob)  # a forbidden token has -inf
            ],
        }
        for chosen, place in zip(reply.token_ids, reply.logprobs or (), strict=False)
    ]
    finish = _FINISH.get(reply.finish_reason, reply.finish_reason)
    message = {"role": "assistant", "content": reply.text}
    return {
        "choices": [{"finish_reason": finish, "message": message, "logprobs": {"content": tokens}}],
        "usage": {
            "prompt_tokens": len(output.prompt_token_ids or ()),
            "completion_tokens": len(reply.token_ids),
            "prompt_tokens_details": {"cached_tokens": output.num_cached_tokens or 0},
        },
    }


def sampling_params(values: Mapping[str, Any]) -> Any:
    """The ``vllm.SamplingParams`` of what :meth:`resources.engines.vllm.VLLMEngine.sampling` gives.

    Raises:
        SaberError: if an option is wrong.
    """
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    bound = values.get("structured_outputs")
    structured = StructuredOutputsParams(**bound) if bound else None
    try:
        return SamplingParams(**{**values, "structured_outputs": structured})
    except Exception as error:
        raise SaberError(
            f"vLLM does not take these options: {error}. Check temperature, max_tokens and sampling"
        ) from error


@cache
def load(arguments: str) -> Any:
    """The model, loaded once in a process.

    Args:
        arguments: those of ``vllm.LLM``, as canonical JSON.

    Raises:
        SaberError: if vLLM is not installed, or cannot load it.
    """
    options = json.loads(arguments)
    try:
        from vllm import LLM
    except ImportError as error:
        raise SaberError(
            f"engine vllm needs vLLM, which cannot be imported here ({error}). Install it by `pip install"
            " 'saber-dagster[vllm]'` in an environment of its own, as it pins torch and numba. Or start"
            f" a server, `vllm serve {options['model']}`, and use engine openai with its base_url"
        ) from error
    begin = time.perf_counter()
    try:
        llm = LLM(**options)
    except Exception as error:
        raise SaberError(
            f"vLLM cannot load {options['model']} ({type(error).__name__}: {error}); its log above says"
            " more. Check model, revision, path, dtype, max_model_len, gpu_memory_utilization,"
            " engine_args and runtime_args"
        ) from error
    _log.info("vLLM loaded %s in %.0f s", options["model"], time.perf_counter() - begin)
    return llm


def ask(
    llm: Any, questions: Sequence[tuple[Sequence[Message], Any]], template_kwargs: Mapping[str, Any]
) -> list[Any]:
    """An output for each question, or the error that says it is too long.

    vLLM refuses a batch as a whole, before it computes anything, so the one question is looked for by
    halves.

    Args:
        llm: what :func:`load` returned.
        questions: messages and ``vllm.SamplingParams``.
        template_kwargs: for the chat template.

    Raises:
        SaberError: if vLLM fails in another way.
    """
    try:
        return list(
            llm.chat(
                [messages for messages, _ in questions],
                [params for _, params in questions],
                use_tqdm=False,
                chat_template_kwargs=dict(template_kwargs) or None,
            )
        )
    except Exception as error:
        if not re.search(PROVIDERS["vllm"].too_long, str(error), re.IGNORECASE):
            raise SaberError(
                f"vLLM failed ({type(error).__name__}: {error}). Check sampling, the prompt's schema and"
                " chat_template_kwargs; then run the partition again, what came before is kept"
            ) from error
        if len(questions) == 1:
            return [error]
    half = len(questions) // 2
    return [
        *ask(llm, questions[:half], template_kwargs),
        *ask(llm, questions[half:], template_kwargs),
    ]
