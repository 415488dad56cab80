"""A Ctrl-C takes effect where it is asked for, and none is lost.

Python raises KeyboardInterrupt wherever the program happens to be, such as inside a database driver that
then prints a traceback; and Dagster replaces the handler of SIGINT while it works, and forgets a signal
that comes between two of its steps. The wakeup file descriptor, which it leaves alone, gets every signal.
"""

import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def remembered_interrupts() -> Iterator[Callable[[], bool]]:
    """Within this context a SIGINT raises nothing, and the function tells whether one has come.

    Code that sets a handler of its own meanwhile, as Dagster does around a step, keeps it. If what that
    handler raises comes up in a finalizer, Python drops it and prints a traceback: nothing is printed
    here, as the signal is remembered anyway. Outside the main thread, which alone gets signals, the
    function always says no.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        handler = signal.signal(signal.SIGINT, lambda *_: None)
        hook = sys.unraisablehook

        def quiet(unraisable: "sys.UnraisableHookArgs") -> None:
            if "Interrupt" not in unraisable.exc_type.__name__:
                hook(unraisable)

        sys.unraisablehook = quiet

        def interrupted() -> bool:
            try:
                return signal.SIGINT in reader.recv(4096)
            except BlockingIOError:
                return False

        try:
            yield interrupted
        finally:
            sys.unraisablehook = hook
            signal.signal(signal.SIGINT, handler)
            signal.set_wakeup_fd(before)
