"""An event loop in a thread, so that plain code can iterate over what concurrent requests bring."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

Item = TypeVar("Item")


def in_background(
    work: Callable[[Callable[[Item], None]], Coroutine[Any, Any, None]],
) -> Iterator[Item]:
    """Yield what a coroutine puts, while it runs on an event loop in a thread of its own.

    It works where the caller's thread has a running loop too, as in a notebook. However the iteration
    ends, the coroutine has ended or was cancelled, and loop and thread are gone.

    Args:
        work: called with a function ``put(item)``; items are yielded in the order they are put.

    Raises:
        Exception: whatever the coroutine raises, after all that was put before.
    """
    loop = asyncio.new_event_loop()
    results: SimpleQueue[Any] = SimpleQueue()
    task = loop.create_task(work(results.put))
    task.add_done_callback(results.put)  # the task itself marks the end

    async def run() -> None:
        await asyncio.wait({task})
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()

    thread = Thread(
        target=lambda: loop.run_until_complete(run()), name="in_background", daemon=True
    )
    thread.start()
    try:
        while (item := results.get()) is not task:
            yield item
        task.result()
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        if not task.cancelled():
            task.exception()  # else asyncio reports that nobody looked at it
        loop.close()
