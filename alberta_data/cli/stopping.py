"""SIGINT and SIGTERM: the first is raised in the main thread, a second one ends the process at once.

A writer that sees the first closes what it has; one that does not is left as a cut of the power leaves it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """A signal asked this process to stop.

    Args:
        number: the signal's number.

    Attributes:
        advice: what a person can do now, put behind the message.
    """

    advice = ""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` at the first signal, leave the process at the second; outside the main thread change nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Where a shell has switched interrupts off for a job in the background, they stay off.
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    ours = [number for number in _SIGNALS if before[number] not in (signal.SIG_IGN, None)]
    for number in ours:
        signal.signal(number, _first)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])


@contextlib.contextmanager
def resumable(way: str = "the same command goes on from what is on disk") -> Iterator[None]:
    """Let a signal's message say how to go on."""
    try:
        yield
    except Stopped as stopped:
        stopped.advice = f": {way}"
        raise


def _first(number: int, frame: Any) -> None:
    for each in _SIGNALS:
        signal.signal(each, _second)
    raise Stopped(number)


def _second(number: int, frame: Any) -> None:
    os._exit(128 + number)
