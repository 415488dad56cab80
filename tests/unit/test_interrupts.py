import signal
import sys
import threading

import pytest

from saber_dagster.interrupts import remembered_interrupts


@pytest.fixture
def deaf():
    """A handler that swallows SIGINT, as a library might."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_swallowed_interrupt_is_remembered_once(deaf):
    with remembered_interrupts() as interrupted:
        assert not interrupted()
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        assert not interrupted()


def test_an_interrupt_raises_nothing_until_it_is_asked_for():
    with remembered_interrupts() as interrupted:
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_other_signals_are_no_interrupts(deaf):
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    with remembered_interrupts() as interrupted:
        signal.raise_signal(signal.SIGUSR1)
        assert not interrupted()
    signal.signal(signal.SIGUSR1, before)


def test_the_wakeup_descriptor_is_put_back(deaf):
    with remembered_interrupts():
        pass
    assert signal.set_wakeup_fd(-1) == -1


def test_another_thread_is_never_interrupted():
    said = []

    def ask():
        with remembered_interrupts() as interrupted:
            said.append(interrupted())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert said == [False]


@pytest.mark.parametrize(("error", "printed"), [(KeyboardInterrupt, 0), (ValueError, 1)])
def test_an_interrupt_in_a_finalizer_prints_no_traceback(error, printed, monkeypatch):
    class Fragile:
        def __del__(self):
            raise error

    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with remembered_interrupts():
        thing = Fragile()
        del thing
    assert len(told) == printed
    thing = Fragile()
    del thing
    assert len(told) == printed + 1, "the old hook is back"
