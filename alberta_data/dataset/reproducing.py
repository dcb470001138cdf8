"""Makes a dataset again from its spec and says how far the numbers are from those that are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data.blocks import CHECKPOINT_STEPS, Block
from alberta_data.dataset.child import pinned
from alberta_data.dataset.recording import State, made_from_spec, recording
from alberta_data.errors import ArgumentError, UnavailableError
from alberta_data.store.reader import open_store

Progress = Callable[[int, int], None]
_WORKERS = 2


@dataclass
class Comparison:
    """How two makings of the same rows compare.

    Attributes:
        first_step: the first step with a difference, or None.
        differing: numbers that differ, in all arrays.
        max_ulp: the largest distance of two finite floats, in units in the last place.
        array: the array of the first difference.
        forms: in what the arrays themselves differ, as text; empty where they do not.
    """

    first_step: int | None = None
    differing: int = 0
    max_ulp: int = 0
    array: str | None = None
    forms: str = ""

    def add(self, name: str, start: int, stored: np.ndarray, made: np.ndarray) -> None:
        """Compare rows from `start` on of one array, bit by bit."""
        if stored.dtype != made.dtype or stored.shape != made.shape:
            made = made.astype(stored.dtype).reshape(stored.shape)
        unequal = _words(stored) != _words(made)
        if not unequal.any():
            return
        rows = np.flatnonzero(unequal.reshape(len(stored), -1).any(axis=1))
        first = start + int(rows[0])
        if self.first_step is None or first < self.first_step:
            self.first_step, self.array = first, name
        self.differing += int(unequal.sum())
        self.max_ulp = max(self.max_ulp, _distance(stored[rows], made[rows]))

    def join(self, other: Comparison) -> None:
        """Take in what another range of steps gave."""
        if other.first_step is not None and (self.first_step is None or other.first_step < self.first_step):
            self.first_step, self.array = other.first_step, other.array
        self.differing += other.differing
        self.max_ulp = max(self.max_ulp, other.max_ulp)


@dataclass(frozen=True)
class Reproduction:
    """What making a dataset again has shown.

    Attributes:
        identical: every bit is the same.
        first_step: the first step that differs, or None.
        array: the array in which it does.
        differing: how many numbers differ.
        max_ulp: the largest distance of two finite floats, in units in the last place.
        made_with: entry → (then, now), of the versions and settings that differ.
        id: the id of what is stored or named by the recipe.
        path: where a recipe's dataset was made, or None.
        note: anything else that there is to say.
    """

    identical: bool
    first_step: int | None = None
    array: str | None = None
    differing: int = 0
    max_ulp: int = 0
    made_with: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    id: str = ""
    path: Path | str | None = None
    note: str = ""


def _words(array: np.ndarray) -> np.ndarray:
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "f":
        return array.view(np.dtype(f"u{array.dtype.itemsize}"))
    return array


def _distance(a: np.ndarray, b: np.ndarray) -> int:
    """Return the largest distance of two floats counted in floats between them; 0 for other dtypes."""
    if a.dtype.kind != "f":
        return 0
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.any():
        return 0
    signed = np.dtype(f"i{a.dtype.itemsize}")

    def place(x: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(x[finite]).view(signed).astype(object)
        lowest = -(2 ** (8 * x.dtype.itemsize - 1))
        return np.where(bits < 0, lowest - bits, bits)

    return int(np.abs(place(a) - place(b)).max())


def changed_settings(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the entries in which two `made_with` differ, entry → (then, now)."""
    return {name: (then.get(name), now.get(name)) for name in {**then, **now} if then.get(name) != now.get(name)}


def reproduce(
    place: Any,
    path: Path | str | None = None,
    *,
    allow_import: tuple[str, ...] = (),
    progress: Progress | None = None,
    **options: Any,
) -> Reproduction:
    """Make a dataset again from its spec, or a recipe's dataset, and compare.

    Args:
        place: a dataset, what `open_dataset` takes, or a recipe (a mapping with `spec`, `id` and `made_with`).
        path: where a recipe's dataset goes.
        allow_import: modules that may be imported for an environment's id.
        progress: called with steps done and all steps.
        options: further arguments of `create_dataset`, for a recipe.

    Raises:
        UnavailableError: it cannot be made here.
        DamagedDatasetError: what is stored is not what was written.
    """
    if isinstance(place, Mapping):
        return _from_recipe(place, path, allow_import, progress, options)
    from alberta_data.dataset.opened import Dataset, open_dataset

    if path is not None or options:
        raise ArgumentError("path and other options go with a recipe; a dataset is compared where it lies")
    dataset = place if isinstance(place, Dataset) else open_dataset(place)
    made_from_spec(dataset.spec, allow_import)  # says so here what cannot be made
    if dataset.spec["kind"] == "environment":
        found = _compared(dataset.store, allow_import=allow_import, progress=progress)
    else:
        found = pinned(_compared_at, dataset.store.name, progress=progress)
    comparison, note, now = found
    return Reproduction(
        comparison.differing == 0 and not comparison.forms,
        comparison.first_step,
        comparison.array,
        comparison.differing,
        comparison.max_ulp,
        changed_settings(dataset.made_with, now),
        dataset.id,
        note=comparison.forms or note,
    )


def _from_recipe(
    recipe: Mapping[str, Any],
    path: Path | str | None,
    allow_import: tuple[str, ...],
    progress: Progress | None,
    options: dict[str, Any],
) -> Reproduction:
    from alberta_data.dataset.creating import create_dataset

    spec = recipe["spec"]
    stream = made_from_spec(spec, allow_import)
    if not callable(getattr(stream, "spec", None)) or dict(stream.spec(spec["seed"], spec["steps"])) != dict(spec):
        raise UnavailableError("the recipe's spec is not what is written here for the same stream: it cannot be made")
    made = create_dataset(
        stream,
        steps=spec["steps"],
        seed=spec["seed"],
        path=path,
        allow_import=allow_import,
        progress=progress,
        **options,
    )
    with made:
        changed = changed_settings(recipe.get("made_with", {}), made.made_with)
        same = made.id == recipe["id"]
        note = "" if same else f"made {made.id}; only the bytes of the other dataset tell where they differ"
        return Reproduction(same, made_with=changed, id=recipe["id"], path=made.path, note=note)


def _compared_at(path: str, progress: Progress | None = None) -> tuple[Comparison, str, dict[str, Any]]:
    with open_store(path) as store:
        return _compared(store, progress=progress)


def _compared(
    store: Any, allow_import: tuple[str, ...] = (), progress: Progress | None = None
) -> tuple[Comparison, str, dict[str, Any]]:
    spec = store.root.spec
    stream = made_from_spec(spec, allow_import)
    source = recording(stream, spec["seed"], spec["steps"], allow_import=allow_import)
    if forms := _other_forms(store, source):
        return Comparison(forms=forms), "", source.made_with
    if spec["kind"] == "environment":
        return _from_the_start(store, source, progress), "", source.made_with
    found = _from_checkpoints(store, source, progress)
    note = ""
    if found is None:
        # A checkpoint that is not where the range before it ended proves nothing; the seed does.
        note = "the checkpoints do not follow from each other here: compared from the seed on"
        found = _from_the_start(store, source, progress)
    return found, note, source.made_with


def _other_forms(store: Any, source: Any) -> str:
    """Return in what the stored arrays are not those that the spec makes; their rows then need no comparison."""
    made = {d.name: (d.dtype, tuple(d.row_shape)) for d in source.declarations}
    layouts = {name: store.root.layouts[name] for name in store.root.arrays}
    stored = {name: (layout.dtype, layout.shape[1:]) for name, layout in layouts.items()}
    wrong = sorted(name for name in {*made, *stored} if made.get(name) != stored.get(name))
    if not wrong:
        return ""
    then, now = (
        "none" if form is None else f"{form[0]} {form[1]} a row" for form in (stored.get(wrong[0]), made.get(wrong[0]))
    )
    return f"the spec makes other arrays: {wrong[0]} is {then} as stored, {now} as made"


def _same_state(a: State, b: State) -> bool:
    return set(a) == set(b) and all(
        np.array_equal(_words(a[name]), _words(b[name])) and a[name].dtype == b[name].dtype for name in a
    )


def _from_checkpoints(store: Any, source: Any, progress: Progress | None) -> Comparison | None:
    """Compare in ranges between checkpoints, several at once; None where these do not follow from each other."""
    steps = store.root.steps
    starts = range(0, steps, CHECKPOINT_STEPS)
    _, first = store.checkpoint(0)
    if not _same_state(first, source.initial_state):
        return None
    done = 0

    def one(start: int) -> tuple[Comparison, bool, int]:
        stop = min(start + CHECKPOINT_STEPS, steps)
        comparison, after = _range(store, source, start, stop, store.checkpoint(start)[1])
        follows = stop == steps or _same_state(after, store.checkpoint(stop)[1])
        return comparison, follows, stop - start

    result, proved = Comparison(), True
    with ThreadPoolExecutor(_WORKERS) as pool:
        for comparison, follows, count in pool.map(one, starts):
            result.join(comparison)
            proved &= follows
            done += count
            if progress is not None:
                progress(done, steps)
    return result if proved else None


def _range(store: Any, source: Any, start: int, stop: int, state: State) -> tuple[Comparison, State]:
    from alberta_data import generation

    comparison = Comparison()
    stream = source.stream
    before = generation.state_from_arrays(stream, state)
    after: State = state
    for block, state_after in generation.blocks(stream, source.seed, stop, start=start, state=before):
        _compare(store, block, comparison)
        after = generation.state_arrays(state_after)
    return comparison, after


def _compare(store: Any, block: Block, comparison: Comparison) -> None:
    for name, made in block.arrays.items():
        comparison.add(name, block.start, store.read(name, block.start, block.stop), np.asarray(made))


def _from_the_start(store: Any, source: Any, progress: Progress | None) -> Comparison:
    comparison, steps = Comparison(), store.root.steps
    # Rows so far of the arrays that have none a step, such as one an episode.
    counted = {name: 0 for name in store.root.arrays if not store.by_step(name)}
    for part in source.parts(0, source.initial_state, None):
        _compare(store, part.block, comparison)
        for name, rows in part.extra.items():
            _compare_counted(store, name, counted[name], rows, part.block, comparison)
            counted[name] += len(rows)
        if progress is not None:
            progress(part.block.stop, steps)
    for name, rows_made in counted.items():
        if (missing := store.root.layouts[name].shape[0] - rows_made) > 0:
            comparison.join(Comparison(steps - 1, missing, 0, name))
    return comparison


def _compare_counted(store: Any, name: str, first: int, made: np.ndarray, block: Block, comparison: Comparison) -> None:
    """Compare rows that are not counted in steps; the block in which they were made stands for their step."""
    there = store.root.layouts[name].shape[0]
    stored = store.read(name, min(first, there), min(first + len(made), there))
    found = Comparison()
    found.add(name, first, stored, made[: len(stored)])
    found.differing += len(made) - len(stored)
    if found.differing:
        found.first_step, found.array = block.start, name
        comparison.join(found)


def hidden_rows(
    spec: Mapping[str, Any], first: int, state: State, start: int, stop: int, progress: Progress | None = None
) -> dict[str, np.ndarray]:
    """Return the hidden state at steps `start` to `stop`, from the state before step `first`.

    Raises:
        UnavailableError: no stream of ours.
    """
    from alberta_data import generation

    stream = made_from_spec(spec)
    if spec.get("kind") != "stream":
        raise UnavailableError(f"hidden state is known of streams, this dataset is of kind {spec.get('kind')!r}")
    before = generation.state_from_arrays(stream, state)
    rows: dict[str, list[np.ndarray]] = {}
    for block in _hidden_blocks(stream, spec["seed"], first, before, stop):
        window = slice(max(start - block.start, 0), None)
        if block.stop > start:
            for name in set(block.arrays) - {"observations", "targets"}:
                rows.setdefault(name, []).append(np.array(block.arrays[name][window]))
    return {name: np.concatenate(parts) for name, parts in sorted(rows.items())}


def _hidden_blocks(stream: Any, seed: int, first: int, state: Any, stop: int) -> Iterator[Block]:
    from alberta_data import generation

    for block, _ in generation.blocks(stream, seed, stop, start=first, state=state, hidden=True):
        yield block
