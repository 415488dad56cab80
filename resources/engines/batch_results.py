"""What a line of a result file comes to."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from resources.engines.openai import OpenAIEngine
from resources.engines.openai_failures import Failure, failure_in
from resources.engines.openai_replies import usage_in
from saber_dagster.engines import Call, Reply, Usage
from saber_dagster.errors import SaberError


def was_paid(result: Mapping[str, Any]) -> bool:
    """Whether a result is an answer, and not a failure."""
    response = result.get("response")
    return isinstance(response, Mapping) and response.get("status_code") == 200


def reply_of(engine: OpenAIEngine, call: Call, result: Mapping[str, Any], latency: float) -> Reply:
    """The reply that a result comes to, by the rules for live requests.

    Args:
        engine: that asked.
        call: what was asked.
        result: a line of a result file.
        latency: seconds that the batch took.
    """
    cut = engine.render(call).truncated
    return replace(_read(engine, call, result), latency=latency, truncated_input=cut)


def once_paid(positions: Iterable[int], reply: Reply) -> Iterator[tuple[int, Reply]]:
    """The reply at every position of equal calls; the first one has its price."""
    for position in positions:
        yield position, reply
        reply = replace(reply, usage=Usage(), price=0.0)


def _read(engine: OpenAIEngine, call: Call, result: Mapping[str, Any]) -> Reply:
    response = result.get("response")
    if not isinstance(response, Mapping):  # the batch ended before the request was made
        return failure_in(500, result.get("error")).lost()
    status, body = response.get("status_code"), response.get("body")
    used = usage_in(body)
    try:
        if status == 200:
            return engine.completed(call, json.dumps(body))
        failure = failure_in(status if isinstance(status, int) else 500, body)
        return replace(engine.failed(call, failure), usage=used, price=engine.price(used))
    except SaberError as error:  # it would stop live requests; these have all been made
        return replace(Failure(None, str(error)).lost(), usage=used, price=engine.price(used))
