"""The last act of a writer: what is known only at the end, the documents, and the root that makes it a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.blocks import CHECKPOINT_STEPS
from alberta_data.errors import AlbertaDataError
from alberta_data.store import canonical, disk
from alberta_data.store.destination import remove_tree
from alberta_data.store.journal import JOURNAL, entries, state_from_json
from alberta_data.store.layout import ArrayDeclaration, ArrayLayout
from alberta_data.store.metadata import (
    CHECKPOINTS,
    GROUP_DOCUMENT,
    ROOT,
    ArrayRecord,
    FileRecord,
    Root,
    sha256_of,
)
from alberta_data.store.plain import pieces, plain_path
from alberta_data.store.planning import parents
from alberta_data.store.rows import RowWriter, as_bytes, chunk_folders


def write_plain(folder: Path, layout: ArrayLayout) -> tuple[list[str], dict[str, FileRecord]]:
    """Write an array whose rows were kept in a plain file, and return its leaves and its files."""
    _fresh_folders(folder, layout)
    writer = RowWriter(folder, layout)
    return _write(folder, writer, pieces(plain_path(folder, layout.path), layout.row_bytes))


def write_checkpoints(folder: Path, layouts: Iterable[ArrayLayout]) -> dict[str, FileRecord]:
    """Write the states that the journal holds for every multiple of 2^17, and return the files."""
    layouts = list(layouts)
    if not layouts:
        return {}
    top = folder / CHECKPOINTS
    if top.exists():
        remove_tree(top)
    files: dict[str, FileRecord] = {}
    groups = sorted({parent for layout in layouts for parent in parents(layout.path)})
    for path in groups:
        disk.make_folder(folder / path)
    for layout in layouts:
        _fresh_folders(folder, layout)
        writer = RowWriter(folder, layout, hash_leaves=False, hash_files=True)
        files.update(_write(folder, writer, _states(folder, layout))[1])
    # A group's document comes after everything in it, as its folder is synced then.
    for path in groups:
        files[f"{path}/{ROOT}"] = write_document(folder / path, GROUP_DOCUMENT)
    return files


def _states(folder: Path, layout: ArrayLayout) -> Iterable[np.ndarray]:
    """Yield one row for each checkpoint, read from the journal."""
    name = layout.path.removeprefix(f"{CHECKPOINTS}/")
    wanted = 0
    for entry, _ in entries(folder / JOURNAL):
        if entry.get("end", 0) == wanted * CHECKPOINT_STEPS and wanted < layout.rows:
            state = state_from_json({name: entry["state"][name]})
            yield as_bytes(layout, state[name][None])
            wanted += 1


def _write(folder: Path, writer: RowWriter, data: Iterable[np.ndarray]) -> tuple[list[str], dict[str, FileRecord]]:
    files, layout = {}, writer.layout
    try:
        for part in data:
            for chunk in writer.feed(part):
                chunk.publish(folder)
                files[layout.chunk_key(chunk.index)] = chunk.record
                for parent in chunk_folders(folder, layout, chunk.index):
                    disk.sync_folder(parent)
    finally:
        writer.close()
    return writer.new_leaves, files


def _fresh_folders(folder: Path, layout: ArrayLayout) -> None:
    top = folder / layout.path
    if top.exists():
        remove_tree(top)
    disk.make_folder(top)
    disk.make_folder(top / "c")


def write_document(folder: Path, document: Mapping[str, Any]) -> FileRecord:
    """Write a `zarr.json` below the root, sync it and its folder, and return its record."""
    data = canonical.dumps(document)
    disk.unlink(folder / ROOT)
    write_file(folder / ROOT, data)
    disk.sync_folder(folder)
    return FileRecord(len(data), sha256_of(data))


def write_root(folder: Path, root: Root) -> None:
    """Write the root document beside its name, sync it, and give it its name: whole or not there.

    Raises:
        ArgumentError: it is not a root that could be read back.
    """
    data = root.to_bytes()
    writing = folder / f".{ROOT}.writing"
    disk.unlink(writing)
    write_file(writing, data)
    # All that the root names has its own name on the disk before the root has.
    disk.sync_folder(folder)
    disk.rename(writing, folder / ROOT)
    disk.sync_folder(folder)


def write_file(path: Path, data: bytes | np.ndarray) -> None:
    """Create a read-only file with the bytes given and wait until they are on the disk."""
    fd = disk.create(path)
    try:
        disk.write_all(fd, data, 0)
        disk.protect(fd)
        disk.sync(fd)
    finally:
        disk.close(fd)


def compose(
    spec: Mapping[str, Any],
    made_with: Mapping[str, Any],
    about: Mapping[str, Any],
    extensions: Mapping[str, Any],
    layouts: Mapping[str, ArrayLayout],
    columns: Mapping[str, tuple[str, ...] | None],
    leaves: Mapping[str, list[str]],
    files: Mapping[str, FileRecord],
) -> Root:
    """Return the root of a dataset whose files are all written."""
    documents: dict[str, Any] = {path: layout.document() for path, layout in layouts.items()}
    documents.update({parent: GROUP_DOCUMENT for path in layouts for parent in parents(path)})
    arrays = {
        name: ArrayRecord(layout.dtype, layout.shape, layout.leaf_rows, tuple(leaves[name]), columns[name])
        for name, layout in layouts.items()
        if name in leaves
    }
    return Root(dict(spec), arrays, dict(files), documents, dict(made_with), dict(about), dict(extensions))


def complete_root(folder: Path, spec: Mapping[str, Any]) -> Root | None:
    """Return the root of an unfinished folder, if it is whole and of this spec: all that it names is then on disk."""
    try:
        root = Root.from_bytes((folder / ROOT).read_bytes())
    except (OSError, AlbertaDataError):
        return None
    return root if root.spec == spec else None


def clear_journal(folder: Path, plain: Iterable[ArrayDeclaration]) -> None:
    """Remove what only an unfinished dataset has; the journal last."""
    for declaration in plain:
        disk.unlink(plain_path(folder, declaration.name))
    disk.sync_folder(folder)
    disk.unlink(folder / JOURNAL)
    disk.sync_folder(folder)
