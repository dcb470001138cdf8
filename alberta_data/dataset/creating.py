"""Makes a dataset from a stream: every step generated, written, synced, and named at the end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alberta_data.dataset.child import pinned
from alberta_data.dataset.naming import data_folder, dataset_name, spec_digest
from alberta_data.dataset.opened import Dataset, open_dataset
from alberta_data.dataset.recording import Recording, recording
from alberta_data.errors import UnavailableError
from alberta_data.store import disk
from alberta_data.store.planning import plan
from alberta_data.store.writer import Writer
from alberta_data.streams.base import Stream
from alberta_data.streams.registry import is_registered
from alberta_data.xla import pin

Progress = Callable[[int, int], None]
LICENCE = "CC0-1.0"


@dataclass(frozen=True)
class DatasetPlan:
    """What making a dataset would take; nothing is written.

    Attributes:
        path: where it would lie.
        spec: all that determines its numbers.
        spec_digest: SHA-256 of the canonical spec; not the id, which the numbers decide.
        size: bytes of all files; of a compressing codec, the most it can be.
        size_on_disk: the same in whole blocks of the disk.
        files: their number.
        free: bytes free on the disk of `path`.
    """

    path: Path
    spec: dict[str, Any]
    spec_digest: str
    size: int
    size_on_disk: int
    files: int
    free: int


def create_dataset(
    stream: Any,
    *,
    steps: int,
    seed: int = 0,
    path: Path | str | None = None,
    data_dir: Path | str | None = None,
    chunk_steps: int | None = None,
    codec: str | None = None,
    overwrite: bool = False,
    force: bool = False,
    block_steps: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    about: Mapping[str, Any] | None = None,
    allow_import: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> Dataset:
    """Generate a dataset, or go on with an unfinished one, or find it finished; return it opened.

    Args:
        stream: a stream, an `EnvironmentStream`, or any object that follows `ScanStream`.
        steps: its length, 1 … 2^31 − 1.
        seed: 0 … 2^32 − 1.
        path: where it goes; by default a name that says what is in it, in the data folder.
        data_dir: the data folder; by default `ALBERTA_DATA_DIR`, else `./datasets`.
        chunk_steps: rows of a chunk file; by default the format's.
        codec: `none` (default), `fast` or `small`.
        overwrite: replace one of our own datasets at `path`.
        force: allow more than 20,000 files.
        block_steps: most steps of a block in memory; changes no bit and is not recorded.
        parameters: what the spec says of a stream of your own, as JSON.
        about: title, description, licence, creators, citation, links; by default licence CC0-1.0 for streams.
        allow_import: modules that may be imported for an environment's id.
        progress: called with steps done and all steps.

    Raises:
        ArgumentError: a number or name is out of its range.
        DestinationError: the destination is taken by something else, or in use.
        StorageError: the disk is too small, or fails.
    """
    options = {
        "path": path, "data_dir": data_dir, "chunk_steps": chunk_steps, "codec": codec, "overwrite": overwrite,
        "force": force, "block_steps": block_steps, "parameters": parameters, "about": about,
        "allow_import": allow_import,
    }  # fmt: skip
    if is_registered(stream):
        made = pinned(_create, stream, seed, steps, options, progress=progress)
    else:
        # Nothing is promised of the bits of a stream of the user's own; an environment's are not jax's.
        made = _create(stream, seed, steps, options, progress=progress)
    return open_dataset(made)


def _create(stream: Any, seed: int, steps: int, options: dict[str, Any], progress: Progress | None = None) -> Path:
    source = recording(
        stream,
        seed,
        steps,
        block_steps=options["block_steps"],
        parameters=options["parameters"],
        allow_import=options["allow_import"],
    )
    path = destination(stream, source, options["path"], options["data_dir"])
    about = options["about"]
    if about is None:
        about = {"licence": LICENCE} if source.spec["kind"] == "stream" else {}
    with Writer.begin(
        path,
        source.spec,
        source.made_with,
        source.declarations,
        checkpoint_state=dict(source.initial_state),
        chunk_steps=options["chunk_steps"],
        codec=options["codec"],
        decisive=source.decisive,
        overwrite=options["overwrite"],
        force=options["force"],
    ) as writer:
        if not writer.already_there:
            fill(writer, source, progress)
            writer.finish(about=about)
    return path


def fill(writer: Writer, source: Recording, progress: Progress | None = None) -> None:
    """Append everything from where `writer` stands.

    Args:
        writer: an open writer.
        source: what it writes.
        progress: called with steps done and all steps.
    """
    step, state = writer.position
    if progress is not None:
        progress(step, writer.steps)
    if step == writer.steps:
        return
    parts = source.parts(step, state, writer.stored)
    try:
        parts = itertools.chain([next(parts)], parts)
    except UnavailableError as err:
        # An environment that does not give again what is stored cannot be gone on with: it starts over.
        import logging

        logging.getLogger("alberta_data").warning("%s", err)
        writer.start_over()
        parts = source.parts(0, source.initial_state, None)
    for part in parts:
        writer.append(part.block, dict(part.state), dict(part.extra))
        if progress is not None:
            progress(part.block.stop, writer.steps)


def destination(stream: Any, source: Recording, path: Path | str | None, data_dir: Path | str | None) -> Path:
    """Return where a dataset goes: `path`, or a name that says what is in it, in the data folder."""
    if path is not None:
        return Path(path)
    spec = source.spec
    return data_folder(data_dir) / dataset_name(stream, spec["steps"], spec["seed"], feature_dim=source.feature_dim)


def plan_dataset(
    stream: Any,
    *,
    steps: int,
    seed: int = 0,
    path: Path | str | None = None,
    data_dir: Path | str | None = None,
    chunk_steps: int | None = None,
    codec: str | None = None,
    force: bool = False,
    allow_import: tuple[str, ...] = (),
) -> DatasetPlan:
    """Return what `create_dataset` with the same arguments would take; nothing is written.

    Raises:
        ArgumentError: a number or name is out of its range.
    """
    if isinstance(stream, Stream):
        pin()  # The state before step 0 starts jax, and what is made next wants it pinned.
    source = recording(stream, seed, steps, allow_import=allow_import)
    where = destination(stream, source, path, data_dir)
    found = plan(
        source.declarations,
        steps,
        dict(source.initial_state),
        chunk_steps=chunk_steps,
        codec=codec or "none",
        force=force,
    )
    return DatasetPlan(
        where,
        source.spec,
        spec_digest(source.spec),
        found.size,
        found.size_on_disk,
        found.files,
        disk.free_bytes(where),
    )
