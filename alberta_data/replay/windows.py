"""Metrics folded into windows as they come: mean, smallest and largest, in memory that does not grow with the steps.

No bit depends on how the steps arrive: a window is summed in pieces of its own, never in those of the blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from alberta_data.errors import ArgumentError

PIECE = 1 << 12
# Bytes of windows that are folded at once: what is copied for it stays in the processor's cache.
_IN_CACHE = 1 << 19


class Curves(NamedTuple):
    """Windows of metrics, each array `(windows, …)` with the trailing axes of the metrics.

    Attributes:
        edges: first step of each window and the step after the last, `(windows + 1,)` int64, from 0.
        mean: float64.
        min: float32.
        max: float32.
    """

    edges: np.ndarray
    mean: np.ndarray
    min: np.ndarray
    max: np.ndarray


def even_edges(steps: int, windows: int) -> np.ndarray:
    """Return the edges of `windows` windows over `steps`, as even as can be; of one step each where steps are fewer."""
    windows = min(steps, windows)
    return np.array([k * steps // windows for k in range(windows + 1)], np.int64)


def edges_every(steps: int, every: int) -> np.ndarray:
    """Return the edges of windows of `every` steps over `steps`; the last may be short."""
    return np.append(np.arange(0, steps, every, dtype=np.int64), steps)


class WindowFold:
    """Fold metrics into windows.

    Args:
        edges: as `Curves.edges`.
    """

    def __init__(self, edges: np.ndarray):
        self._edges = np.asarray(edges, np.int64)
        self._done: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._waiting: list[np.ndarray] = []
        self._position = 0
        self._piece_start = 0

    def add(self, metrics: np.ndarray) -> None:
        """Take the metrics of the steps that follow, `(n, …)`."""
        taken = 0
        while taken < len(metrics):
            if not self._waiting and (many := self._whole_windows(len(metrics) - taken)):
                count, size = many
                self._add_windows(metrics[taken : taken + count * size], count)
                taken += count * size
                continue
            end = min(self._piece_start + PIECE, int(self._edges[len(self._done) + 1]))
            part = metrics[taken : taken + end - self._position]
            self._waiting.append(part)
            taken += len(part)
            self._position += len(part)
            if self._position == end:
                self._close_piece()

    def _whole_windows(self, available: int) -> tuple[int, int] | None:
        """Return how many next windows of one size, a piece or less, are here as a whole, and that size."""
        if self._pieces:
            return None
        sizes = np.diff(self._edges[len(self._done) : len(self._done) + 1 + available])
        if not len(sizes) or sizes[0] > PIECE:
            return None
        other = np.flatnonzero(sizes != sizes[0])
        count = min(int(other[0]) if len(other) else len(sizes), available // int(sizes[0]))
        return (count, int(sizes[0])) if count else None

    def _add_windows(self, metrics: np.ndarray, count: int) -> None:
        windows = metrics.reshape(count, -1, *metrics.shape[1:])
        at_once = max(1, _IN_CACHE // windows[0].nbytes)
        for first in range(0, count, at_once):
            self._done += list(zip(*_folded(windows[first : first + at_once]), strict=True))
        self._position += len(metrics)
        self._piece_start = self._position

    def _close_piece(self) -> None:
        piece = self._waiting[0] if len(self._waiting) == 1 else np.concatenate(self._waiting)
        sums, low, high = _folded(piece[None])
        self._pieces.append((sums[0], low[0], high[0]))
        self._waiting = []
        self._piece_start = self._position
        if self._position == self._edges[len(self._done) + 1]:
            sums, low, high = (np.stack(parts) for parts in zip(*self._pieces, strict=True))
            total = sums[0]
            for row in sums[1:]:
                total = total + row
            self._done.append((total, low.min(axis=0), high.max(axis=0)))
            self._pieces = []

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Return all that is needed to go on, as named arrays."""
        arrays = {"position": np.array([self._position, self._piece_start], np.int64)}
        for kind, rows in (("done", self._done), ("piece", self._pieces)):
            if rows:
                parts = (np.stack(part) for part in zip(*rows, strict=True))
                arrays |= {f"{kind}/{name}": part for name, part in zip(("sum", "min", "max"), parts, strict=True)}
        if self._waiting:
            arrays["waiting"] = np.concatenate(self._waiting)
        return arrays

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint of the same windows."""
        self._position, self._piece_start = map(int, arrays["position"])
        found = [
            list(zip(*(arrays[f"{kind}/{name}"] for name in ("sum", "min", "max")), strict=True))
            if f"{kind}/sum" in arrays
            else []
            for kind in ("done", "piece")
        ]
        self._done, self._pieces = found
        self._waiting = [arrays["waiting"]] if "waiting" in arrays else []

    def curves(self) -> Curves:
        """Return the windows that are whole."""
        count = len(self._done)
        if not count:
            raise ArgumentError("there must be a whole window, got none")
        sums, low, high = (np.stack(parts) for parts in zip(*self._done, strict=True))
        sizes = np.diff(self._edges[: count + 1]).reshape(-1, *(1,) * (sums.ndim - 1))
        return Curves(self._edges[: count + 1], sums / sizes, low, high)


def _folded(metrics: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sum (float64), smallest and largest over the steps of `(windows, steps, …)`.

    The steps are made the last axis first: NumPy then adds them in an order that depends on their number alone.
    """
    rows = np.ascontiguousarray(np.moveaxis(metrics, 1, -1))
    with np.errstate(over="ignore", invalid="ignore"):
        return rows.sum(axis=-1, dtype=np.float64), rows.min(axis=-1), rows.max(axis=-1)
