"""Where a dataset that comes from elsewhere lands: in a folder beside its name, which it takes when it is whole.

The folder holds a mark with the id of what is landing, so that a later call goes on only with the same.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from alberta_data.errors import DestinationError
from alberta_data.store import destination, disk
from alberta_data.store.beginning import lock_folder
from alberta_data.store.destination import partial_path
from alberta_data.store.finishing import write_root
from alberta_data.store.metadata import ROOT, Root
from alberta_data.store.parts import Part, parts

MARK = ".landing"
WRITING = ".writing"
_SYNCS = 8
_OWN = {MARK, f"{MARK}{WRITING}"}


class Landing:
    """An unfinished folder of a dataset whose root is known, locked.

    Args:
        path: of the finished dataset.
        root: of the dataset.

    Attributes:
        folder: where files land.
        fresh: nothing of it had landed before.

    Raises:
        DestinationError: the folder is of something else, or another process is at work on it.
    """

    def __init__(self, path: Path, root: Root):
        self.path, self.root, self.folder = path, root, partial_path(path)
        settle(path)
        self._lock = lock_folder(self.folder)
        try:
            self.fresh = self._claim()
        except BaseException:
            self.release()
            raise

    def make_folders(self) -> None:
        """Make every folder that a file will need."""
        needed: dict[Path, None] = {}
        for part in parts(self.root):
            for parent in reversed((self.folder / part.path).parents[: part.path.count("/")]):
                needed[parent] = None
        for folder in needed:
            if not folder.is_dir() or folder.is_symlink():
                destination.remove_tree(folder) if os.path.lexists(folder) else None
                disk.make_folder(folder)

    def create(self, part: Part) -> int:
        """Return the descriptor of a new file, to be given its name by `publish`."""
        writing = self._writing(part)
        disk.unlink(writing)
        return disk.create(writing)

    def publish(self, part: Part, fd: int) -> None:
        """Sync a file and give it its name."""
        try:
            disk.protect(fd)
            disk.sync(fd)
        finally:
            disk.close(fd)
        final = self.folder / part.path
        if final.is_dir() and not final.is_symlink():
            destination.remove_tree(final)
        disk.rename(self._writing(part), final)

    def finish(self, *, overwrite: bool) -> None:
        """Sync the folders, write the root, and give the dataset its name.

        Raises:
            DestinationError: something came to lie at the name meanwhile.
        """
        self._remove_strays()
        with ThreadPoolExecutor(_SYNCS, "alberta-data sync") as pool:
            for _ in pool.map(lambda entry: disk.sync_folder(Path(entry[0])), os.walk(self.folder)):
                pass
        write_root(self.folder, self.root)
        self._place(overwrite)

    def abandon(self) -> None:
        """Remove all that has landed."""
        if self.folder.is_dir():
            destination.remove_tree(self.folder)
            disk.sync_folder(self.folder.absolute().parent)

    def release(self) -> None:
        """Unlock the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def is_complete(self) -> bool:
        """Say whether an earlier call came as far as the root, so that only the name is missing."""
        if not destination.is_finished(self.folder):
            return False
        return Root.from_bytes((self.folder / ROOT).read_bytes()).id == self.root.id

    def end(self, *, overwrite: bool) -> None:
        """Give a complete folder its name."""
        self._place(overwrite)

    def _place(self, overwrite: bool) -> None:
        for name in sorted(_OWN):
            disk.unlink(self.folder / name)
        disk.sync_folder(self.folder)
        destination.place(self.folder, self.path, self.root.id, overwrite=overwrite)

    def _claim(self) -> bool:
        """Mark the folder, or find it marked; return whether it is new."""
        names = set(os.listdir(self.folder))
        marked = _marked(self.folder)
        if marked == self.root.id or (MARK not in names and self.is_complete()):
            return False
        if names - _OWN:
            if marked is not None:
                raise DestinationError(
                    f"{self.folder} holds the beginning of another dataset, {marked[:8]}…: finish it, or delete it"
                )
            raise DestinationError(f"{self.folder} must be free, got another folder there: move it")
        writing = self.folder / f"{MARK}{WRITING}"
        disk.unlink(writing)
        fd = disk.create(writing)
        try:
            disk.write_all(fd, self.root.id.encode("ascii"), 0)
            disk.sync(fd)
        finally:
            disk.close(fd)
        disk.rename(writing, self.folder / MARK)
        disk.sync_folder(self.folder)
        return True

    def _writing(self, part: Part) -> Path:
        final = self.folder / part.path
        return final.with_name(final.name + WRITING)

    def _remove_strays(self) -> None:
        """Remove what is in the folder and not of the dataset: what an interrupted call left."""
        named = {*self.root.files, MARK}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.folder) not in named:
                    disk.unlink(Path(path))


def settle(path: Path) -> None:
    """Finish an exchange of names that was cut while a dataset took its place."""
    partial = partial_path(path)
    while os.path.lexists(partial) or os.path.lexists(destination.aside_path(path)):
        lock = lock_folder(partial)
        try:
            changed = destination.tidy(path)
            if not changed and not os.listdir(partial):
                disk.remove_folder(partial)
        finally:
            os.close(lock)
        if not changed:
            return


def _marked(folder: Path) -> str | None:
    try:
        text = (folder / MARK).read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return None
    return text if len(text) == 64 else None
