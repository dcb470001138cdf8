"""A thread that works off a short queue: memory stays flat, and its error is raised in whoever feeds it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Stage(Generic[T]):
    """A thread that works off a queue, in order.

    Args:
        name: of the thread.
        work: called with each item.
        depth: items that may wait before `put` does.
        most: items taken off the queue at once.
        settle: called after each lot of items taken.
        drop: called with each item that is not worked on any more, after an error.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[T], None],
        *,
        depth: int,
        most: int = 1,
        settle: Callable[[], None] = lambda: None,
        drop: Callable[[T], None] = lambda item: None,
    ):
        self._work, self._settle, self._drop = work, settle, drop
        self._depth, self._most = depth, most
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether the thread is done."""
        return not self._thread.is_alive()

    def put(self, item: T) -> None:
        """Queue an item, waiting for room; raise the thread's error if it has met one, the item not queued."""
        with self._changed:
            self._changed.wait_for(lambda: self._error or len(self._items) < self._depth)
            self._raise()
            self._items.append(item)
            self._changed.notify_all()

    def close(self) -> None:
        """Wait until everything queued is done; raise the thread's error if it has met one."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        taken: deque[T] = deque()
        try:
            while self._take(taken):
                while taken:
                    self._work(taken.popleft())
                self._settle()
        except BaseException as err:
            with self._changed:
                self._error = err
                taken.extend(self._items)
                self._items.clear()
                self._changed.notify_all()
            for item in taken:
                self._drop(item)

    def _take(self, into: deque[T]) -> bool:
        """Wait for items and take some; return False where none will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closing)
            while self._items and len(into) < self._most:
                into.append(self._items.popleft())
            self._changed.notify_all()
        return bool(into)
