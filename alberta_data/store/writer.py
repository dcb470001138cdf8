"""Writes a dataset so that it is whole or not there, and goes on after any interruption.

    with Writer.begin(path, spec, made_with, declarations, checkpoint_state=state) as writer:
        step, state = writer.position
        ...
        writer.append(block, state_after)
        ...
        writer.finish(about={"title": "…"})

Everything is made in `NAME.zarr.partial/`, which is locked, and takes its name at the end. A block is vouched for in
the journal once its rows are written and synced; the same call on an unfinished destination goes on from there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from alberta_data.blocks import CHECKPOINT_STEPS, Block
from alberta_data.errors import ArgumentError, RefusedError, StorageError
from alberta_data.store import destination, disk, finishing
from alberta_data.store.beginning import Begun, Request, already_there, begin
from alberta_data.store.finishing import clear_journal, complete_root
from alberta_data.store.journal import JOURNAL, JournalFile, State, state_from_json, state_to_json
from alberta_data.store.layout import ArrayDeclaration, ArrayLayout
from alberta_data.store.metadata import ROOT, FileRecord, Root, check_spec
from alberta_data.store.pipeline import Pipeline
from alberta_data.store.plain import PlainRows, plain_path
from alberta_data.store.planning import Plan, checkpoint_layouts, plan
from alberta_data.store.resuming import prepare_folders, stored_rows, write_header, writer_at
from alberta_data.store.rows import check_rows


class Position(NamedTuple):
    """Where a writer stands: the first step that is not on disk for sure, and the state before it."""

    step: int
    state: dict[str, np.ndarray]


class Writer:
    """A dataset in the making; see `Writer.begin`.

    Attributes:
        path: where the finished dataset will lie.
        already_there: the dataset asked for was there, whole in its sizes; there is nothing to append.
        root: the root, once there is one.
    """

    def __init__(self, path: Path, steps: int):
        self.path = path
        self.steps = steps
        self.root: Root | None = None
        self.already_there = False
        self._lock = -1
        self._pipeline: Pipeline | None = None

    @classmethod
    def begin(
        cls,
        path: Path | str,
        spec: Mapping[str, Any],
        made_with: Mapping[str, Any],
        declarations: Sequence[ArrayDeclaration],
        *,
        checkpoint_state: State | None = None,
        chunk_steps: int | None = None,
        codec: str | None = None,
        decisive: Collection[str] = (),
        overwrite: bool = False,
        force: bool = False,
    ) -> Writer:
        """Begin a dataset, or go on with the unfinished one at the same path.

        Args:
            path: of the finished dataset; `path.partial` is the folder it is made in.
            spec: the seven entries that determine the numbers; `steps` is among them.
            made_with: versions and settings.
            declarations: the arrays.
            checkpoint_state: the state before step 0, path → array; checkpoints are kept of it. None for none.
            chunk_steps: rows of a chunk file in every array; None for the usual size.
            codec: `none`, `fast` or `small`; None for `none`. Where an unfinished dataset is gone on with, None for
                either means what it was begun with; anything else than that makes it begin again from step 0.
            decisive: entries of `made_with` that can change a bit: an unfinished dataset with others is refused.
            overwrite: replace one of our own datasets, finished or not, that has another spec.
            force: allow more than 20,000 files.

        Raises:
            ArgumentError: see `plan`.
            DestinationError: the destination is taken by something else, in use, or begun with other settings.
            DamagedDatasetError: the dataset, or what was written of it, is there and damaged.
            StorageError: the disk is too small or fails.
        """
        spec, state = dict(spec), state_to_json(checkpoint_state or {})
        try:
            check_spec(spec)
        except RefusedError as err:
            raise ArgumentError(str(err)) from None
        destination.check_folder_name(Path(path))
        writer = cls(Path(path), spec["steps"])
        header = {
            "journal": 1,
            "spec": spec,
            "made_with": dict(made_with),
            "arrays": [declaration.to_json() for declaration in declarations],
            "chunk_steps": chunk_steps,
            "codec": codec or "none",
            "state": state,
        }
        request = Request(writer.path, header, tuple(decisive), overwrite, chunk_steps, codec)
        try:
            writer._begin(request, declarations, checkpoint_state or {}, force)
        except OSError as err:
            raise writer._failed(err) from err
        except BaseException:
            writer._unlock()
            raise
        return writer

    @property
    def checkpoint_paths(self) -> tuple[str, ...]:
        """The paths of the state that checkpoints are kept of; none where none are kept."""
        return tuple(self._state)

    @property
    def position(self) -> Position:
        """The first step that is not on disk for sure, and the state before it."""
        if self.already_there:
            return Position(self.steps, {})
        return Position(self._progress.end, state_from_json(self._progress.state))

    def stored(self, name: str, start: int, stop: int) -> np.ndarray:
        """Return rows that are on disk for sure, for whoever goes on from them; before anything is appended.

        Args:
            name: one of the declared arrays.
            start: first row.
            stop: the row after the last one; at most `position.step`, or the rows counted so far.

        Raises:
            DamagedDatasetError: what is on disk is not what the journal vouches for.
        """
        if name in self._layouts:
            return stored_rows(self._partial, self._layouts[name], self._progress, start, stop)
        layout = next(d for d in self._declarations if d.name == name).laid_out(1, None, "none")
        data = np.fromfile(
            plain_path(self._partial, name),
            np.uint8,
            (stop - start) * layout.row_bytes,
            offset=start * layout.row_bytes,
        )
        return data.view(layout.stored_dtype).reshape(-1, *layout.shape[1:])

    def start_over(self) -> None:
        """Forget what was written and stand before step 0 again, for a source that cannot go on; before any append."""
        self._drain()
        header = self._progress.header
        self._go_on(Begun(self._lock, write_header(self._partial, header)))

    def append(
        self, block: Block, state_after: State | None = None, extra: Mapping[str, np.ndarray] | None = None
    ) -> None:
        """Take the next block; return before it is written.

        Args:
            block: an array a declaration; must not change afterwards. It starts where the last one stopped and, where
                checkpoints are kept, does not pass a multiple of 2^17.
            state_after: the state before step `block.stop`, as the checkpoint state's paths, dtypes and shapes.
            extra: new rows of the arrays whose length is not known before.

        Raises:
            ArgumentError: the block is not the next one, or not of the declared kind.
            StorageError: the disk failed, now or with an earlier block.
        """
        if self._pipeline is None:
            raise ArgumentError("a writer must be open to take a block, got one that is finished or closed")
        self._check(block, extra or {})
        state = self._checked_state(state_after or {})
        try:
            self._pipeline.put(block, state, dict(extra or {}))
        except OSError as err:
            raise self._failed(err) from err
        self._next = block.stop

    def finish(self, about: Mapping[str, Any] | None = None, extensions: Mapping[str, Any] | None = None) -> Path:
        """Make it a dataset: documents, checkpoints, root, and its name; return the path.

        Args:
            about: title, description, licence and so on.
            extensions: free entries.

        Raises:
            ArgumentError: steps are missing, or `about` cannot stand in a root.
            StorageError: the disk failed; the same command goes on.
            DestinationError: something came to lie at the destination meanwhile.
        """
        if self.already_there:
            return self.path
        try:
            self._drain()
            if self._progress.end != self.steps:
                raise ArgumentError(f"a dataset of {self.steps} steps must have them all, got {self._progress.end}")
            self.root = self._write_end(about or {}, extensions or {})
            clear_journal(self._partial, self._plain)
            destination.place(self._partial, self.path, self.root.id, overwrite=self._overwrite)
        except OSError as err:
            raise self._failed(err) from err
        finally:
            self._unlock()
        return self.path

    def close(self) -> None:
        """Stop, with all that was appended written as far as it goes; an unfinished dataset can be gone on with."""
        try:
            self._drain()
        except OSError as err:
            raise self._failed(err) from err
        finally:
            self._unlock()

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; an error on the way there gives way to the one that is under way."""
        try:
            self.close()
        except Exception:
            if kind is None:
                raise

    def _begin(self, request: Request, declarations: Sequence[ArrayDeclaration], state: State, force: bool) -> None:
        self._declarations, self._state, self._overwrite = declarations, state, request.overwrite
        self._plain = [d for d in declarations if not d.by_step]
        self._partial = destination.partial_path(self.path)
        nothing_unfinished = not os.path.lexists(self._partial) and not os.path.lexists(
            destination.aside_path(self.path)
        )
        self.root = already_there(request) if nothing_unfinished else None
        if self.root is None:
            begun_before = os.path.lexists(self._partial)
            asked = plan(
                declarations,
                self.steps,
                state,
                chunk_steps=request.chunk_steps,
                codec=request.codec or "none",
                force=force,
            )
            if not begun_before:
                asked.check_free(self.path)
            begun = begin(request)
            if isinstance(begun, Begun):
                self._go_on(begun)
                return
            self.root = begun
        self.already_there = True

    def _go_on(self, begun: Begun) -> None:
        """Stand at the end of the journal, with both threads at work."""
        self._lock, self._progress = begun.lock, begun.progress
        header, folder = begun.progress.header, self._partial
        if (root := complete_root(folder, header["spec"])) is not None:
            clear_journal(folder, self._plain)
            destination.place(folder, self.path, root.id, overwrite=self._overwrite)
            self.root, self.already_there = root, True
            self._unlock()
            return
        disk.unlink(folder / ROOT)
        self._layouts = {d.name: self._laid_out(d, self.steps) for d in self._declarations if d.by_step}
        self._plan(header).check_free(self.path, sum(x.row_bytes * begun.progress.end for x in self._layouts.values()))
        prepare_folders(folder, self._layouts, begun.progress)
        with ExitStack() as opened:
            writers, plain = {}, {}
            for name, layout in self._layouts.items():
                writers[name] = writer_at(folder, layout, begun.progress)
                opened.callback(writers[name].close)
            for declaration in self._plain:
                rows = begun.progress.rows.get(declaration.name, (0, 0))
                plain[declaration.name] = PlainRows(folder, declaration, *rows)
                opened.callback(plain[declaration.name].close)
            journal = JournalFile(folder / JOURNAL, begun.progress.journal_size)
            opened.pop_all()
        self._next = begun.progress.end
        self._pipeline = Pipeline(folder, self._next, writers, plain, journal, begun.progress.add)

    def _plan(self, header: Mapping[str, Any]) -> Plan:
        settings = {"chunk_steps": header["chunk_steps"], "codec": header["codec"]}
        return plan(self._declarations, self.steps, self._state, force=True, **settings)

    def _laid_out(self, declaration: ArrayDeclaration, rows: int) -> ArrayLayout:
        header = self._progress.header
        return declaration.laid_out(rows, header["chunk_steps"], header["codec"])

    def _check(self, block: Block, extra: Mapping[str, np.ndarray]) -> None:
        if block.start != self._next or not 0 < len(block) <= self.steps - self._next:
            raise ArgumentError(
                f"a block must start at step {self._next} and stop at {self.steps} at most, "
                f"got steps {block.start} to {block.stop}"
            )
        if self._state and block.start // CHECKPOINT_STEPS != (block.stop - 1) // CHECKPOINT_STEPS:
            raise ArgumentError(f"a block must not pass a multiple of 2^17, got steps {block.start} to {block.stop}")
        if set(block.arrays) != set(self._layouts) or any(len(rows) != len(block) for rows in block.arrays.values()):
            raise ArgumentError(f"a block must hold {', '.join(self._layouts)} of one length, got {list(block.arrays)}")
        for name, rows in block.arrays.items():
            check_rows(self._layouts[name], rows)
        known = {d.name: d for d in self._plain}
        if not set(extra) <= set(known):
            raise ArgumentError(f"extra rows must be of arrays without a row a step, got {list(extra)}")
        for name, rows in extra.items():
            check_rows(known[name].laid_out(1, None, "none"), rows)

    def _checked_state(self, state: State) -> dict[str, Any]:
        def kind(value: Any) -> tuple[str, tuple[int, ...]]:
            return np.asarray(value).dtype.name, np.asarray(value).shape

        if self._state and {path: kind(v) for path, v in state.items()} != {p: kind(v) for p, v in self._state.items()}:
            raise ArgumentError(
                "the state after a block must be of the paths, dtypes and shapes of the one before step 0"
            )
        return state_to_json(state)

    def _drain(self) -> None:
        pipeline = self._pipeline
        if pipeline is not None:
            try:
                pipeline.close()
            finally:
                # After an interrupt the threads may still be at work: then the folder stays locked.
                self._pipeline = None if pipeline.ended else pipeline

    def _write_end(self, about: Mapping[str, Any], extensions: Mapping[str, Any]) -> Root:
        folder, progress = self._partial, self._progress
        layouts, leaves, files = dict(self._layouts), dict(progress.leaves), dict(progress.files)
        for declaration in self._plain:
            rows = progress.rows.get(declaration.name, (0, 0))[0]
            if rows < 1:
                raise ArgumentError(f"{declaration.name} must have at least one row at the end, got none")
            layouts[declaration.name] = self._laid_out(declaration, rows)
            leaves[declaration.name], new = finishing.write_plain(folder, layouts[declaration.name])
            files.update(new)
        checkpoints = checkpoint_layouts(self._state, self.steps)
        files.update(finishing.write_checkpoints(folder, checkpoints.values()))
        layouts.update(checkpoints)
        for path, layout in layouts.items():
            files[f"{path}/{ROOT}"] = finishing.write_document(folder / path, layout.document())
            for key in map(layout.chunk_key, range(layout.chunks)):
                files.setdefault(key, FileRecord(layout.most_file_bytes))
        header = progress.header
        columns = {d.name: d.columns for d in self._declarations}
        root = finishing.compose(
            header["spec"], header["made_with"], about, extensions, layouts, columns, leaves, files
        )
        finishing.write_root(folder, root)
        return root

    def _unlock(self) -> None:
        if self._lock >= 0 and self._pipeline is None:
            os.close(self._lock)
            self._lock = -1

    def _failed(self, err: OSError) -> StorageError:
        self._unlock()
        return disk.failure(err, self.path)
