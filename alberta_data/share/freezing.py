"""A stream that a team has recorded, made a dataset with the same guarantees: frozen, under an id, verifiable."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError
from alberta_data.share.recorded import KINDS, Recorded
from alberta_data.store.layout import ArrayDeclaration
from alberta_data.store.writer import Writer
from alberta_data.xla import made_with

Progress = Callable[[int, int], None]
Columns = str | Sequence[str]


def freeze(
    file: Path | str,
    path: Path | str | None = None,
    *,
    name: str | None = None,
    observations: Columns,
    targets: Columns = (),
    others: Mapping[str, Columns] | None = None,
    dtype: str | None = None,
    data_dir: Path | str | None = None,
    chunk_steps: int | None = None,
    codec: str | None = None,
    about: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Make a dataset of kind `frozen` of a file, or go on with an unfinished one; return its path.

    A row of the file is a step. The dtypes are the file's own; the columns of one array must share one.

    Args:
        file: `.parquet`, `.npz` or `.csv`.
        path: where it goes; by default a name that says what is in it, in the data folder.
        name: what the stream is called; by default the file's name.
        observations: the columns (of an npz file: the arrays) that are the features, in order.
        targets: those that are to be predicted.
        others: further arrays, name → columns; a single text is a number a step, without an axis of columns.
        dtype: what the numbers of a CSV file are; by default float64.
        data_dir: the data folder; by default `ALBERTA_DATA_DIR`, else `./datasets`.
        chunk_steps: rows of a chunk file; by default the format's.
        codec: `none` (default), `fast` or `small`.
        about: title, description, licence, creators, citation, links.
        overwrite: replace one of our own datasets at `path`.
        force: allow more than 20,000 files.
        progress: called with steps done and all steps.

    Raises:
        ArgumentError: the file or a column cannot be frozen, or changed meanwhile.
        DestinationError: the destination is taken by something else, or in use.
        StorageError: the disk is too small, or fails.
        UnavailableError: pyarrow is not installed.
    """
    file = Path(file)
    kind = KINDS.get(file.suffix.lower())
    if kind is None:
        raise ArgumentError(f"file must end in one of {', '.join(KINDS)}, got {file.name!r:.100}")
    if not file.is_file():
        raise ArgumentError(f"there must be a file at the path given, got none at {file}")
    arrays = _arrays(observations, targets, others or {})
    wanted = list(dict.fromkeys(column for columns in arrays.values() for column in _listed(columns)))
    before = _stamp(file)
    recorded = kind(file, wanted, dtype)
    if recorded.rows < 1:
        raise ArgumentError(f"{file} must have at least one row, got none")
    declarations = [_declaration(recorded, array, columns) for array, columns in arrays.items()]
    spec = _spec(file, name or file.stem, arrays, recorded.rows)
    target = Path(path) if path is not None else _usual_path(spec, declarations, data_dir)
    with Writer.begin(
        target,
        spec,
        made_with(),
        declarations,
        chunk_steps=chunk_steps,
        codec=codec,
        overwrite=overwrite,
        force=force,
    ) as writer:
        if not writer.already_there:
            for block in _blocks(recorded, arrays, writer.position.step):
                writer.append(block)
                if progress is not None:
                    progress(block.stop, recorded.rows)
            if _stamp(file) != before:
                raise ArgumentError(f"{file} must stay as it is while it is frozen, got another one now: begin again")
            writer.finish(about=about or {})
    return target


def _arrays(observations: Columns, targets: Columns, others: Mapping[str, Columns]) -> dict[str, Columns]:
    """Return array → columns; the features and targets always have an axis of columns."""
    arrays: dict[str, Columns] = {"observations": _listed(observations), "targets": _listed(targets), **others}
    if len(arrays) != 2 + len(others):
        raise ArgumentError("others must have names of their own, got observations or targets among them")
    if not arrays["targets"]:
        del arrays["targets"]
    if empty := [array for array, columns in arrays.items() if not columns]:
        raise ArgumentError(f"{empty[0]} must have at least one column, got none")
    return arrays


def _listed(columns: Columns) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns)


def _declaration(recorded: Recorded, array: str, columns: Columns) -> ArrayDeclaration:
    names = _listed(columns)
    dtypes, shapes = {recorded.dtypes[name] for name in names}, [recorded.shapes[name] for name in names]
    if len(dtypes) != 1:
        told = ", ".join(f"{name} {recorded.dtypes[name]}" for name in names)
        raise ArgumentError(
            f"columns of {array} must share one dtype, got {told:.200}: put them in arrays of their own"
        )
    if isinstance(columns, str) or (len(names) == 1 and shapes[0]):
        return ArrayDeclaration(array, dtypes.pop(), shapes[0], columns=None if shapes[0] else (names[0],))
    if any(len(shape) > 1 for shape in shapes):
        raise ArgumentError(f"arrays of {array} must have one axis beside the steps to lie side by side, got more")
    widths = [shape[0] if shape else 1 for shape in shapes]
    titles = [
        name if not shape else f"{name}.{index}"
        for name, shape, width in zip(names, shapes, widths, strict=True)
        for index in range(width)
    ]
    return ArrayDeclaration(array, dtypes.pop(), (sum(widths),), columns=tuple(titles))


def _spec(file: Path, name: str, arrays: Mapping[str, Columns], rows: int) -> dict[str, Any]:
    columns = {array: columns if isinstance(columns, str) else list(columns) for array, columns in arrays.items()}
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    parameters = {"source_sha256": digest, "columns": columns}
    spec = {"kind": "frozen", "stream": name, "version": 1, "parameters": parameters}
    return {**spec, "prng": None, "seed": None, "steps": rows}


def _blocks(recorded: Recorded, arrays: Mapping[str, Columns], start: int) -> Iterator[Block]:
    step = 0
    for values in recorded.blocks():
        count = len(next(iter(values.values())))
        skip = min(max(start - step, 0), count)
        if skip < count:
            rows = {array: _rows(values, columns)[skip:] for array, columns in arrays.items()}
            yield Block(step + skip, rows)
        step += count


def _rows(values: Mapping[str, np.ndarray], columns: Columns) -> np.ndarray:
    names = _listed(columns)
    if isinstance(columns, str) or (len(names) == 1 and values[names[0]].ndim > 1):
        return np.ascontiguousarray(values[names[0]])
    return np.concatenate([values[name].reshape(len(values[name]), -1) for name in names], axis=1)


def _usual_path(spec: Mapping[str, Any], declarations: list[ArrayDeclaration], data_dir: Path | str | None) -> Path:
    import re

    from alberta_data.dataset.naming import SUFFIX, data_folder, steps_text

    head = re.sub(r"[^A-Za-z0-9._+-]+", "-", spec["stream"]).strip(".-")[:80] or "frozen"
    width = int(np.prod(declarations[0].row_shape, dtype=np.int64))
    return data_folder(data_dir) / f"{head}-d{width}-{steps_text(spec['steps'])}{SUFFIX}"


def _stamp(file: Path) -> tuple[int, int, int]:
    found = os.stat(file)
    return found.st_ino, found.st_size, found.st_mtime_ns
