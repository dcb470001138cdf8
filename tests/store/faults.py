"""Stops, failures and power cuts at the operations of `store.disk`."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import warnings

from alberta_data.store import disk

CHANGES = (
    *("make_folder", "create", "reopen", "write", "truncate", "protect", "sync", "sync_folder"),
    *("rename", "exchange", "unlink", "remove_folder"),
)


@contextlib.contextmanager
def around_every_change(act):
    """Call `act(number, name, operation, arguments)` in place of every operation."""
    before = {name: getattr(disk, name) for name in CHANGES}
    lock, count = threading.Lock(), [0]

    def wrapped(name):
        def call(*arguments):
            with lock:
                number, count[0] = count[0], count[0] + 1
            return act(number, name, before[name], arguments)

        return call

    for name in CHANGES:
        setattr(disk, name, wrapped(name))
    try:
        yield
    finally:
        for name, operation in before.items():
            setattr(disk, name, operation)


def stopped_at(which, work):
    """Do the work in a process of its own that ends at one operation, as by kill -9; say whether it came that far."""

    def act(number, name, operation, arguments):
        if number == which:
            if name == "write":
                fd, data, offset = arguments
                operation(fd, data[: len(data) // 2], offset)
            os._exit(9)
        return operation(*arguments)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            with around_every_change(act):
                work()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9)
    return code == 9


def failing_at(which, kind, for_good):
    """Let one operation fail, or all from it on: ENOSPC, EIO, EACCES, or a write that takes half."""

    def act(number, name, operation, arguments):
        if number == which or (for_good and number > which):
            if kind != "short":
                raise OSError(getattr(errno, kind), os.strerror(getattr(errno, kind)))
            if name == "write":
                fd, data, offset = arguments
                return operation(fd, data[: len(data) // 2], offset)
        seen.append(number)
        return operation(*arguments)

    seen: list[int] = []
    return around_every_change(act), seen
