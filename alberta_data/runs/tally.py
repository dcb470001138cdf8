"""What a run keeps of the metrics as they pass: windows, a digest, and all steps where asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.replay import Curves, GroupMetrics, WindowFold
from alberta_data.store.tables import Table, begin_group, new_layout

LEAF = 1 << 12
"""Steps under one link of a digest."""


class Tally:
    """Windows and digests of the members of one group.

    The digest of a member is a chain: `d = SHA-256(d, rows)` over its metrics, float32, little-endian, in leaves of
    4,096 steps from the run's first, beginning with 32 zero bytes. It depends on nothing but the numbers.

    Args:
        members: their places.
        edges: of the windows, from 0.
        curve_edges: of further windows over the same steps.
    """

    def __init__(self, members: list[int], edges: np.ndarray, curve_edges: np.ndarray | None = None):
        self.members = members
        self._windows = {"windows": WindowFold(edges)}
        if curve_edges is not None:
            self._windows["every"] = WindowFold(curve_edges)
        self._steps = int(edges[-1])
        self._links = [bytes(32) for _ in members]
        self._waiting: list[np.ndarray] = []
        self._count = 0
        self._taken = 0

    def add(self, metrics: np.ndarray) -> None:
        """Take the metrics of the steps that follow, `(n, columns, members)`."""
        for fold in self._windows.values():
            fold.add(metrics)
        first = 0
        while first < len(metrics):
            part = metrics[first : first + LEAF - self._count]
            self._waiting.append(part)
            self._count += len(part)
            first += len(part)
            if self._count == LEAF or self._taken + self._count == self._steps:
                self._close_leaf()

    def _close_leaf(self) -> None:
        leaf = self._waiting[0] if len(self._waiting) == 1 else np.concatenate(self._waiting)
        rows = np.ascontiguousarray(np.moveaxis(leaf, -1, 0), "<f4")
        self._links = [_linked(link, row) for link, row in zip(self._links, rows, strict=True)]
        self._taken += self._count
        self._waiting, self._count = [], 0

    def digests(self) -> dict[int, str]:
        """Return member → digest of its metrics, 64 hex digits."""
        return {member: link.hex() for member, link in zip(self.members, self._links, strict=True)}

    def curves(self, which: str = "windows") -> Curves | None:
        """Return the whole windows, trailing axes `(columns, members)`; None where there is none yet.

        Args:
            which: `windows`, or `every` for the further ones.
        """
        try:
            return self._windows[which].curves()
        except ValueError:
            return None

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Return all that is needed to go on, as named arrays."""
        arrays = {
            f"{which}/{name}": array
            for which, fold in self._windows.items()
            for name, array in fold.checkpoint().items()
        }
        arrays["links"] = np.frombuffer(b"".join(self._links), np.uint8)
        arrays["taken"] = np.array(self._taken, np.int64)
        if self._waiting:
            arrays["waiting"] = np.concatenate(self._waiting)
        return arrays

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint of the same members and windows."""
        for which, fold in self._windows.items():
            fold.restore(below(arrays, f"{which}/"))
        links = arrays["links"].tobytes()
        self._links = [links[at : at + 32] for at in range(0, len(links), 32)]
        self._taken = int(arrays["taken"])
        self._waiting = [arrays["waiting"]] if "waiting" in arrays else []
        self._count = sum(map(len, self._waiting))


def _linked(link: bytes, rows: np.ndarray) -> bytes:
    hasher = hashlib.sha256(link)
    hasher.update(rows)
    return hasher.digest()


class FullMetrics:
    """Every step's metrics of all members in a Zarr array `(step, member, column)`, NaN where a member has none.

    Args:
        folder: of the group.
        steps: of the run.
        members: how many.
        columns: the most columns of a member.
    """

    def __init__(self, folder: Path, steps: int, members: int, columns: int):
        shape, names = (steps, members, columns), ("step", "member", "column")
        self._table = Table(folder, new_layout("metrics", "float32", shape, names))
        self._folder = folder
        self._waiting = np.empty((0, members, columns), np.float32)
        self._chunk = 0

    def begin(self, attributes: Mapping[str, Any]) -> None:
        """Write the group's documents."""
        begin_group(self._folder, attributes)
        self._table.begin()

    def add(self, start: int, steps: int, found: list[GroupMetrics], stopped: Mapping[int, int]) -> None:
        """Take the metrics of a block.

        Args:
            start: its first step.
            steps: its steps.
            found: what `Fold.advance` returned.
            stopped: members that were lost → the step.
        """
        rows = np.full((steps, *self._waiting.shape[1:]), np.nan, np.float32)
        for group in found:
            rows[:, group.members, : group.metrics.shape[1]] = np.moveaxis(group.metrics, -1, 1)
        for member, step in stopped.items():
            rows[max(step + 1 - start, 0) :, member] = np.nan
        self._waiting = np.concatenate([self._waiting, rows])
        size = self._table.layout.chunk_rows
        while len(self._waiting) >= size:
            self._put(size)

    def finish(self) -> None:
        """Write the last chunk."""
        if len(self._waiting):
            self._put(len(self._waiting))

    def _put(self, rows: int) -> None:
        self._table.put(self._chunk, self._waiting[:rows])
        self._waiting = self._waiting[rows:].copy()
        self._chunk += 1

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Return all that is needed to go on, as named arrays."""
        return {"waiting": self._waiting, "chunk": np.array(self._chunk, np.int64)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint."""
        self._waiting, self._chunk = arrays["waiting"], int(arrays["chunk"])


def below(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
