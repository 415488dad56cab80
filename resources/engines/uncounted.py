"""Tokens of replies whose server does not count them: estimated, so that price and budget hold."""

import logging
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from saber_dagster.engines import Call, Reply

if TYPE_CHECKING:
    from resources.engines.openai import OpenAIEngine

_log = logging.getLogger("saber_dagster.engines")


def counted(reply: Reply, engine: "OpenAIEngine", call: Call) -> Reply:
    """The reply, its tokens estimated where the server gave no usable number of them.

    No prompt is empty, and a reply with a text has tokens: 0 there means that nothing was counted.
    A reply that is lost stays as it is.
    """
    said, usage = reply.reasoning + reply.text, reply.usage
    if reply.status == "transport_error" or (usage.prompt and (usage.completion or not said)):
        return reply
    _tell(engine.sending.url)
    count = engine.count_tokens
    prompt, completion = usage.prompt, usage.completion
    if not prompt:
        prompt = sum(count(message["content"]) for message in engine.messages(call))
    if not completion:
        completion = count(said)
        completion = min(completion, engine.params(call.task).get("max_tokens", completion))
    cached = min(usage.cached, prompt)
    return replace(reply, usage=replace(usage, prompt=prompt, completion=completion, cached=cached))


@cache
def _tell(url: str) -> None:
    """Warn of a server, once."""
    _log.warning("%s: the server sends no token counts; they are estimated", url)
