"""A Ctrl-C that a library swallows is still a Ctrl-C.

Dagster replaces the handler of SIGINT while it works and forgets a signal that comes between two of its
steps. The wakeup file descriptor, which it leaves alone, gets every signal.
"""

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def remembered_interrupts() -> Iterator[Callable[[], bool]]:
    """Within this context the function tells whether a SIGINT has come since it was last asked.

    Outside the main thread, which alone gets signals, it always says no.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

        def interrupted() -> bool:
            try:
                return signal.SIGINT in reader.recv(4096)
            except BlockingIOError:
                return False

        try:
            yield interrupted
        finally:
            signal.set_wakeup_fd(before)
