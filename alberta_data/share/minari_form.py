"""The dataset of an environment as a Minari dataset: episodes with all their observations, the last one included.

Nothing that the dataset names is imported: the spaces are those of the stored rows, not of the environment.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.errors import ArgumentError, DestinationError, UnavailableError
from alberta_data.store import disk
from alberta_data.store.destination import remove_tree
from alberta_data.store.reader import Store

_NEEDED = ("observations", "actions", "rewards", "terminated", "truncated", "episode_start", "final_observations")
_AT_ONCE = 64

Progress = Callable[[int, int], None]


def write_minari(store: Store, path: Path, progress: Progress | None = None) -> None:
    """Write a dataset into a folder that Minari loads: `minari.MinariDataset(path / "data")`.

    Moved into Minari's own folder, it is loaded by its name. An episode that the dataset's end cut is neither
    terminated nor truncated.

    Raises:
        ArgumentError: the dataset has no episodes.
        UnavailableError: Minari or pyarrow is not installed.
    """
    missing = [name for name in _NEEDED if name not in store.root.arrays]
    if missing:
        raise ArgumentError(f"a dataset for Minari must be of an environment, got one without {', '.join(missing)}")
    try:
        import pyarrow  # noqa: F401 - what Minari's Arrow form stands on
        from minari.dataset.minari_storage import MinariStorage

        from alberta_data.environments.spaces import spaces
    except ImportError:
        raise UnavailableError(
            "Minari needs minari and pyarrow, which are not installed: pip install 'alberta-data[minari]'"
        ) from None
    partial = path.with_name(f"{path.name}.partial")
    if os.path.lexists(partial):
        _clear(partial)
    disk.make_parents(path)
    disk.make_folder(partial)
    lock = disk.lock(partial)
    try:
        disk.make_folder(partial / "data")
        actions, convert = _action_space(store, spaces)
        layout = store.root.layouts["observations"]
        observations = _box(spaces, np.dtype(layout.dtype), layout.shape[1:])
        storage = MinariStorage.new(partial / "data", observations, actions, data_format="arrow", jpeg_encoding=False)
        batch: list[Any] = []
        for episode in _episodes(store, convert, progress):
            batch.append(episode)
            if len(batch) == _AT_ONCE:
                storage.update_episodes(batch)
                batch.clear()
        if batch:
            storage.update_episodes(batch)
        storage.update_metadata(_metadata(store, path))
        disk.rename(partial, path)
        disk.sync_folder(path.absolute().parent)
    except BaseException:
        remove_tree(partial)
        raise
    finally:
        if lock is not None:
            disk.close(lock)


def _clear(partial: Path) -> None:
    """Remove what an export that was killed left.

    Raises:
        DestinationError: another process is at work on it, or it is something else.
    """
    if partial.is_symlink() or not partial.is_dir() or {entry.name for entry in partial.iterdir()} - {"data"}:
        raise DestinationError(f"{partial} must be free, got something else there: move it")
    lock = disk.lock(partial)
    if lock is None:
        raise DestinationError(f"{partial} must not be in use, got another process at work on it")
    try:
        remove_tree(partial)
    finally:
        disk.close(lock)


def _metadata(store: Store, path: Path) -> dict[str, Any]:
    import minari

    root = store.root
    told = {"id": root.id, "spec": dict(root.spec)}
    return {
        "dataset_id": path.name,
        "description": f"alberta-data {json.dumps(told)}",
        "algorithm_name": str(root.spec["parameters"].get("policy", "unknown")),
        "minari_version": str(minari.__version__),
    }


def _box(spaces: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Return the widest space of rows of a dtype."""
    if dtype.kind == "b":
        return spaces.MultiBinary(shape)
    if dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, shape, dtype.type)
    return spaces.Box(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype.type)


def _action_space(store: Store, spaces: Any) -> tuple[Any, Callable[[np.ndarray], np.ndarray]]:
    """Return the space of the stored actions, one whole number as `Discrete`, and what makes them of rows."""
    layout = store.root.layouts["actions"]
    dtype, shape = np.dtype(layout.dtype), layout.shape[1:]
    if dtype.kind not in "iu" or shape not in ((), (1,)):
        return _box(spaces, dtype, shape), lambda rows: rows
    least, most = 0, 0
    for block in store.blocks(names=["actions"]):
        rows = block.arrays["actions"]
        least, most = min(least, int(rows.min())), max(most, int(rows.max()))
    return spaces.Discrete(most - least + 1, start=least), lambda rows: rows.reshape(len(rows)).astype(np.int64)


def _episodes(store: Store, convert: Callable[[np.ndarray], np.ndarray], progress: Progress | None) -> Iterator[Any]:
    """Yield Minari's buffer of each episode."""
    from minari.data_collector import EpisodeBuffer

    names = [name for name in _NEEDED if name != "final_observations"]
    parts: dict[str, list[np.ndarray]] = {name: [] for name in names}
    count = 0

    def finished() -> Any:
        nonlocal count
        rows = {name: np.concatenate(pieces) for name, pieces in parts.items()}
        last = store.read("final_observations", count, count + 1)
        for pieces in parts.values():
            pieces.clear()
        count += 1
        return EpisodeBuffer(
            id=count - 1,
            seed=None,
            observations=np.concatenate([rows["observations"], last]),
            actions=convert(rows["actions"]),
            rewards=rows["rewards"],
            terminations=rows["terminated"],
            truncations=rows["truncated"],
            infos={},
        )

    for block in store.blocks(names=names):
        starts = np.flatnonzero(block.arrays["episode_start"])
        cuts = [0, *(int(at) for at in starts if at), len(block)]
        for first, stop in itertools.pairwise(cuts):
            if block.arrays["episode_start"][first] and parts["rewards"]:
                yield finished()
            for name in names:
                parts[name].append(block.arrays[name][first:stop].copy())
        if progress is not None:
            progress(block.stop, store.root.steps)
    if parts["rewards"]:
        yield finished()
