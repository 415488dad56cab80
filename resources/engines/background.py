"""An event loop in a thread, so that plain code can iterate over what concurrent requests bring."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

Item = TypeVar("Item")
Put = Callable[[Item], Awaitable[None]]


def in_background(work: Callable[[Put[Item]], Coroutine[Any, Any, None]]) -> Iterator[Item]:
    """Yield what a coroutine puts, while it runs on an event loop in a thread of its own.

    It works where the caller's thread has a running loop too, as in a notebook. However the iteration
    ends, the coroutine has ended or was cancelled, and loop and thread are gone.

    Items change threads in batches, one for each turn of the loop.

    Args:
        work: called with a function ``put(item)``; items are yielded in the order they are put. Its
            result can be awaited: it is there once the caller has taken care of the item and its
            batch, and asks for the next. So whoever awaits it never runs ahead of the caller.

    Raises:
        Exception: whatever the coroutine raises, after all that was put before.
    """
    loop = asyncio.new_event_loop()
    batches: SimpleQueue[Any] = SimpleQueue()
    batch: list[Item] = []
    taken: asyncio.Future[None] = loop.create_future()

    def put(item: Item) -> Awaitable[None]:
        if not batch:
            loop.call_soon(hand_over)
        batch.append(item)
        return taken

    def hand_over() -> None:
        nonlocal batch, taken
        if batch:
            batches.put((batch, taken))
            batch, taken = [], loop.create_future()

    def end(task: "asyncio.Task[None]") -> None:
        hand_over()
        batches.put(task)  # the task itself marks the end

    task = loop.create_task(work(put))
    task.add_done_callback(end)

    async def run() -> None:
        await asyncio.wait({task})
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()

    def release(future: "asyncio.Future[None]") -> None:
        if not future.done():
            future.set_result(None)

    thread = Thread(
        target=lambda: loop.run_until_complete(run()), name="in_background", daemon=True
    )
    thread.start()
    try:
        while (found := batches.get()) is not task:
            items, future = found
            yield from items
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(release, future)
        task.result()
    finally:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        if not task.cancelled():
            task.exception()  # else asyncio reports that nobody looked at it
        loop.close()
