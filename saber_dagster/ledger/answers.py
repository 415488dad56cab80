"""What an engine yields, checked: a reply that could not be stored is an error that names the engine."""

import sys
from collections.abc import Generator, Iterable, Sequence
from operator import index
from typing import Any, SupportsIndex, get_args

from saber_dagster.engines import Call, Engine, Reply, Status, Usage
from saber_dagster.ledger.rows import LedgerError
from saber_dagster.plugins import call_user

Answers = Generator[tuple[int, Reply], None, None]

_AGAIN = "Mend the engine and run again; the replies before it are kept"
_MUST_YIELD = (
    "an engine must yield (position in calls, saber_dagster.engines.Reply), with a status of"
    f" {', '.join(get_args(Status))}. {_AGAIN}"
)
_STATUSES = frozenset(get_args(Status))
_MOST = 2**63 - 1
_TEXTS = ("text", "reasoning", "finish_reason", "error")


def answers(engine: Engine, calls: Sequence[Call], name: str) -> Answers:
    """Each position and reply that an engine yields.

    Args:
        engine: asked once, for all calls.
        calls: what it is asked.
        name: the engine's, for messages.

    Raises:
        LedgerError: if it yields a position twice or one that there is not, leaves one out, or yields
            what is no reply. If the iterator is closed early, so is the engine's, and nothing is raised.
        SaberError: if it raises.
    """
    waiting = set(range(len(calls)))
    returned = call_user(name, "answer", engine.answer, calls, remedy=_AGAIN)
    if not isinstance(returned, Iterable):
        raise LedgerError(f"{name} returned {returned!r} from answer; {_MUST_YIELD}")
    items, end = iter(returned), object()
    try:
        while (item := call_user(name, "answer", next, items, end, remedy=_AGAIN)) is not end:
            position, reply = _checked(item, name)
            if position not in waiting:
                raise LedgerError(
                    f"{name} yielded position {position} of {len(calls)} calls, which does not exist"
                    " or was answered before"
                )
            waiting.remove(position)
            yield position, reply
    finally:
        if close := getattr(items, "close", None):
            close()


def stop(engine: Engine) -> bool:
    """Have an engine begin no further call; False if it has no way to."""
    method = getattr(engine, "stop", None)
    if not callable(method):
        return False
    method()
    return True


def _checked(item: Any, name: str) -> tuple[int, Reply]:
    """A position and a reply that can be stored."""
    match item:
        case [int() | SupportsIndex() as position, Reply() as reply]:
            if wrong := _wrong(reply):
                raise LedgerError(f"{name} yielded a Reply whose {wrong}; {_MUST_YIELD}")
            return index(position), reply
    raise LedgerError(f"{name} yielded {repr(item)[:200]}; {_MUST_YIELD}")


def _wrong(reply: Reply) -> str:
    """What keeps a reply from being stored; empty if nothing."""
    if not isinstance(reply.status, str) or reply.status not in _STATUSES:
        return f"status is {reply.status!r}"
    for name in _TEXTS:
        if not isinstance(value := getattr(reply, name), str):
            return f"{name} is a {type(value).__name__}, not a str"
    for name, number in (("price", reply.price), ("latency", reply.latency)):
        if not isinstance(number, int | float) or not abs(number) <= sys.float_info.max:
            return f"{name} is {number!r}, not a finite number"
    usage = reply.usage
    if not (
        isinstance(usage, Usage)
        and _countable(usage.prompt)
        and _countable(usage.completion)
        and _countable(usage.reasoning)
        and _countable(usage.cached)
    ):
        return f"usage is {usage!r}, not a Usage of whole numbers from 0 to {_MOST}"
    if not isinstance(reply.truncated_input, bool):
        return f"truncated_input is {reply.truncated_input!r}, not True or False"
    return ""


def _countable(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= _MOST
