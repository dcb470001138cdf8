"""Steps done, steps a second, time left: a bar on a terminal, else a plain line every ten seconds; on stderr."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from alberta_data.cli import numbers, output

INTERVAL = 10.0


class Progress:
    """A callback `(done, total)` for the library's functions, used as a context.

    Args:
        what: the word in front: what is being done.
        unit: what is counted: `steps` or `bytes`.
        quiet: show nothing.
        announcement: a line for the moment at which the work begins, when nothing can be refused any more.
    """

    def __init__(self, what: str, *, unit: str = "steps", quiet: bool = False, announcement: str | None = None):
        self._what, self._unit, self._quiet, self._announcement = what, unit, quiet, announcement
        self._bar: Any = None
        self._began = self._told = time.monotonic()
        self._first: int | None = None
        self.done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            with contextlib.suppress(OSError, ValueError):
                self._bar.close()

    def __call__(self, done: int, total: int) -> None:
        """Take note of the steps done; what cannot be shown changes nothing."""
        now = time.monotonic()
        if self._first is None:
            self._first, self._began = done, now
            if self._announcement and not self._quiet:
                output.say(self._announcement)
        self.done = done
        if self._quiet:
            return
        if self._on_terminal():
            with contextlib.suppress(OSError, ValueError):
                self._draw(done, total)
        elif now - self._told >= INTERVAL:
            self._told = now
            output.say(self.line(done, total))

    @property
    def rate(self) -> float | None:
        """Steps a second since the first call, where there were any."""
        passed = time.monotonic() - self._began
        fresh = self.done - (self._first or 0)
        return fresh / passed if fresh and passed > 0 else None

    def line(self, done: int, total: int) -> str:
        """Return the plain line."""
        words = f"{self._what}: {self._amount(done).removesuffix(' steps')} of {self._amount(total)}"
        if self.rate:
            left = numbers.duration((total - done) / self.rate)
            words += f", {self._amount(self.rate, numbers.short)}/s, {left} left"
        return words

    def _amount(self, number: float, shown: Callable[[int], str] = numbers.with_commas) -> str:
        return numbers.bytes_text(int(number)) if self._unit == "bytes" else f"{shown(int(number))} {self._unit}"

    @staticmethod
    def _on_terminal() -> bool:
        try:
            return sys.stderr.isatty()
        except (AttributeError, ValueError):
            return False

    def _draw(self, done: int, total: int) -> None:
        if self._bar is None:
            import tqdm

            tqdm.tqdm.monitor_interval = 0  # no thread beside ours
            self._bar = tqdm.tqdm(
                total=total, initial=done, desc=self._what, unit=f" {self._unit}", unit_scale=True, leave=False,
                file=sys.stderr, dynamic_ncols=True,
            )  # fmt: skip
        self._bar.update(done - self._bar.n)
