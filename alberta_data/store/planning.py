"""What a dataset will take before its first step: files, bytes, and whether that is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from alberta_data.blocks import CHECKPOINT_STEPS
from alberta_data.errors import ArgumentError, StorageError
from alberta_data.store import canonical, disk
from alberta_data.store.layout import CODECS, DTYPES, MAX_CHUNK_BYTES, MAX_STEPS, ArrayDeclaration, ArrayLayout, is_name
from alberta_data.store.metadata import CHECKPOINTS

MAX_FILES = 20_000
_BLOCK = 4096


@dataclass(frozen=True)
class Plan:
    """What a dataset will take.

    Attributes:
        layouts: path → layout of every array; one whose length is not known yet stands with one row.
        files: number of files, the root included.
        size: bytes of all files; for a compressing codec, the most it can be.
        size_on_disk: the same in whole blocks of 4 KiB.
        root_size: about the bytes of the root document.
    """

    layouts: Mapping[str, ArrayLayout]
    files: int
    size: int
    size_on_disk: int
    root_size: int

    def check_free(self, path: Path, there: int = 0) -> None:
        """Check that the plan fits on the disk of `path`, where `there` bytes of it lie already.

        Raises:
            StorageError: it does not; the message says what is needed and what is free.
        """
        needed, free = max(self.size_on_disk - there, 0), disk.free_bytes(path)
        if needed > free:
            raise StorageError(
                f"{path} needs {needed} bytes, got {free} bytes free on its disk; "
                "make room, take fewer steps or another place"
            )


def plan(
    declarations: Sequence[ArrayDeclaration],
    steps: int,
    state: Mapping[str, np.ndarray] | None = None,
    *,
    chunk_steps: int | None = None,
    codec: str = "none",
    force: bool = False,
) -> Plan:
    """Return what a dataset will take.

    Args:
        declarations: its arrays.
        steps: 1 to 2^53 − 1.
        state: the state before step 0, path → array, of which checkpoints are kept.
        chunk_steps: rows of a chunk file in every array; None for the usual size.
        codec: `none`, `fast` or `small`.
        force: allow more than 20,000 files.

    Raises:
        ArgumentError: an argument is out of its range, a chunk would pass 1 GiB, the root 64 MiB, the files 20,000.
    """
    if type(steps) is not int or not 1 <= steps <= MAX_STEPS:
        raise ArgumentError(f"steps must be an integer from 1 to 2^53 - 1, got {steps!r}")
    if codec not in CODECS:
        raise ArgumentError(f"codec must be one of {', '.join(CODECS)}, got {codec!r}")
    if chunk_steps is not None and (type(chunk_steps) is not int or chunk_steps < 1):
        raise ArgumentError(f"chunk_steps must be an integer of at least 1, got {chunk_steps!r}")
    _check_names(declarations)
    layouts = {d.name: d.laid_out(steps if d.by_step else 1, chunk_steps, codec) for d in declarations}
    layouts.update(checkpoint_layouts(state or {}, steps))
    _check_chunks(layouts)
    documents = [canonical.dumps(layout.document()) for layout in layouts.values()]
    groups = {parent for path in layouts for parent in parents(path)}
    chunks = sum(layout.chunks for layout in layouts.values())
    files = chunks + len(documents) + len(groups) + 1
    if files > MAX_FILES and not force:
        raise ArgumentError(_too_many(files, declarations, steps, codec, files - _chunks(layouts, declarations)))
    root = _root_size(layouts, documents, codec)
    if root > canonical.MAX_BYTES:
        raise ArgumentError(
            f"the root document must take at most {canonical.MAX_BYTES} bytes, got {root}: take larger chunks"
        )
    sizes = [(layout.chunks, layout.most_file_bytes) for layout in layouts.values()]
    size = sum(count * each for count, each in sizes) + sum(map(len, documents)) + root
    on_disk = sum(count * -(-each // _BLOCK) * _BLOCK for count, each in sizes) + (len(documents) + 2) * _BLOCK + root
    return Plan(layouts, files, size, on_disk, root)


def checkpoint_layouts(state: Mapping[str, np.ndarray], steps: int) -> dict[str, ArrayLayout]:
    """Return path → layout of the arrays that keep a state before step 0, 2^17 and so on.

    Raises:
        ArgumentError: a path is no path of names, or a dtype cannot be stored.
    """
    rows = -(-steps // CHECKPOINT_STEPS)
    layouts = {}
    for name, value in state.items():
        value = np.asarray(value)
        parts = name.split("/")
        if not all(map(is_name, parts)) or "zarr.json" in parts or any(p in state for p in parents(name)):
            raise ArgumentError(f"a state's path must be names joined by '/', none of them twice, got {name!r}")
        if value.dtype.name not in DTYPES or 0 in value.shape:
            raise ArgumentError(f"state {name} must be an array of a known dtype, got {value.dtype} {value.shape}")
        axes = ("checkpoint", *(f"axis{n}" for n in range(1, 1 + value.ndim)))
        declaration = ArrayDeclaration("state", value.dtype.name, value.shape, axes)
        layout = declaration.laid_out(rows, None, "none")
        layouts[f"{CHECKPOINTS}/{name}"] = ArrayLayout(
            f"{CHECKPOINTS}/{name}", layout.dtype, layout.shape, layout.chunk_rows, "none", axes
        )
    return layouts


def parents(path: str) -> list[str]:
    """Return the groups above a path, outermost first: `a/b/c` → `a`, `a/b`."""
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _check_names(declarations: Sequence[ArrayDeclaration]) -> None:
    names = [d.name for d in declarations]
    if len(set(names)) != len(names) or not any(d.by_step for d in declarations):
        raise ArgumentError(f"arrays must have different names and one of them a row a step, got {names}")


def _check_chunks(layouts: Mapping[str, ArrayLayout]) -> None:
    for layout in layouts.values():
        if layout.chunk_bytes > MAX_CHUNK_BYTES:
            raise ArgumentError(
                f"a chunk of {layout.path} must take at most 1 GiB, got {layout.chunk_rows} rows in "
                f"{layout.chunk_bytes} bytes: at most {MAX_CHUNK_BYTES // layout.row_bytes} rows fit"
            )


def _chunks(layouts: Mapping[str, ArrayLayout], declarations: Sequence[ArrayDeclaration]) -> int:
    return sum(layouts[d.name].chunks for d in declarations)


def _too_many(files: int, declarations: Sequence[ArrayDeclaration], steps: int, codec: str, others: int) -> str:
    """Return the message for too many files, with the smallest power of two that fits as the chunk size."""
    said = f"a dataset must have at most {MAX_FILES} files, got {files}"
    for power in range(54):
        layouts = {d.name: d.laid_out(steps if d.by_step else 1, 2**power, codec) for d in declarations}
        if others + _chunks(layouts, declarations) <= MAX_FILES:
            if any(layout.chunk_bytes > MAX_CHUNK_BYTES for layout in layouts.values()):
                break
            return f"{said}: chunks of {2**power} steps fit, or --force allows it"
    return f"{said}: take fewer steps, or --force allows it"


def _root_size(layouts: Mapping[str, ArrayLayout], documents: Sequence[bytes], codec: str) -> int:
    size = 8192
    for layout, document in zip(layouts.values(), documents, strict=True):
        bare = codec == "none" and not layout.path.startswith(f"{CHECKPOINTS}/")
        entry = len(layout.chunk_key(layout.chunks)) + len(str(layout.most_file_bytes)) + (14 if bare else 90)
        leaves = 0 if layout.path.startswith(f"{CHECKPOINTS}/") else layout.leaves * 67
        size += layout.chunks * entry + leaves + len(document) + 512
    return size
