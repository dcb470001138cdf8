"""What a run amounts to: each member's figures, the receipt, the files beside it."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data import xla
from alberta_data.errors import NonFiniteError, RefusedError, UnavailableError
from alberta_data.learners.linear import COLUMNS
from alberta_data.replay import Curves
from alberta_data.replay.fold import lost_message
from alberta_data.runs.folder import load_npz, npz, read_receipt
from alberta_data.runs.passing import Pass
from alberta_data.runs.request import Request
from alberta_data.store import canonical
from alberta_data.store.tables import write_file, write_group
from alberta_data.streams.registry import from_spec

TENTHS = 10


@dataclass
class Run:
    """What learning left.

    Attributes:
        path: the folder; of a run that was only repeated, that of the run it was compared with, or None.
        receipt: the receipt.
        curves: windows of every metric of every member, `(windows, members, columns)`: 1,000, or of `every` steps.
        states: the members' final states; None of those that were lost.
        seconds: how long it took.
    """

    path: Path | None
    receipt: dict[str, Any]
    curves: Curves
    states: list[Any] = field(repr=False)
    seconds: float

    @property
    def digest(self) -> str:
        """The digest of the metrics."""
        return str(self.receipt["digest"])

    @property
    def members(self) -> list[dict[str, Any]]:
        """The members in the grid's order: `learner` (place), `target`, `digest`, `stopped_at`, `results`."""
        return list(self.receipt["members"])

    @property
    def ranked(self) -> list[int]:
        """The members' places, the smallest mean squared error first, the lost last."""
        found = [(member["results"] or {}).get("mean_squared_error") for member in self.members]
        errors = [math.inf if error is None else float(error) for error in found]
        return sorted(range(len(errors)), key=errors.__getitem__)


@dataclass(frozen=True)
class Before:
    """A run as another one goes on from it; see `read_run`.

    Attributes:
        digest: of its metrics.
        states: its members' final states; None of those that were lost.
    """

    digest: str
    states: list[Any] = field(repr=False)


def read_run(path: Path | str) -> Before:
    """Return what another run needs to go on from the one at `path`.

    Args:
        path: the run's folder, or its `receipt.json`.

    Raises:
        DestinationError: there is none.
        RefusedError: what lies there is no run, or its states are not those that its receipt vouches for.
    """
    receipt, folder = read_receipt(path), Path(path)
    folder = folder if folder.is_dir() else folder.parent
    request = Request.from_json(receipt.get("run"))
    try:
        digest, vouched = str(receipt["digest"]), receipt["files"]["states.npz"]["sha256"]
        found = hashlib.sha256((folder / "states.npz").read_bytes()).hexdigest()
    except (KeyError, TypeError, OSError):
        raise RefusedError(
            f"a run to go on from must have its states beside its receipt, got none in {folder}"
        ) from None
    if found != vouched:
        raise RefusedError(f"states.npz of {folder} must be what its receipt vouches for, got another: refused")
    arrays = load_npz(folder / "states.npz")
    widths = [len(rows) for name, rows in arrays.items() if name.endswith("/weights") and rows.ndim == 1]
    if not widths:
        raise RefusedError(f"a run to go on from must have states of its members, got none in {folder}: refused")
    learners = [request.learners[place] for place, _ in request.members]
    return Before(digest, final_states(folder, learners, widths[0]))


def most_columns(request: Request) -> int:
    """Return the columns of the metrics of the member that has most."""
    return max(len(learner.columns) for learner in request.learners)


def summed_up(dataset: Any, request: Request, passes: list[Pass], seconds: float) -> Run:
    """Return the run that the passes amount to.

    Raises:
        NonFiniteError: no member is left.
    """
    curves = _joined([one.curves(most_columns(request)) for one in passes])
    stopped: dict[int, int] = {}
    states: list[Any] = []
    digests: list[str | None] = []
    for one in passes:
        stopped |= {len(digests) + member: step for member, step in one.fold.stopped.items()}
        digests += one.digests()
        states += one.fold.states()
    if len(stopped) == len(digests):
        member, step = max(stopped.items(), key=lambda item: item[1])
        learner = request.learners[request.members[member][0]]
        raise NonFiniteError(lost_message(learner, step, len(stopped)), step=step)
    members = [
        {
            "learner": learner,
            "target": column,
            "digest": digests[place],
            "stopped_at": stopped.get(place),
            "results": None if place in stopped else _results(curves, place),
        }
        for place, (learner, column) in enumerate(request.members)
    ]
    receipt = {
        "alberta_data_run": 1,
        "run": request.to_json(),
        "steps": request.steps,
        "noise_floor": noise_floor(dataset.spec),
        "members": members,
        "digest": canonical.digest([[member["digest"], member["stopped_at"]] for member in members]),
        "made_with": xla.made_with(),
    }
    kept = [None if place in stopped else state for place, state in enumerate(states)]
    if request.every is not None:
        curves = _joined([one.curves(most_columns(request), "every") for one in passes])
    return Run(None, receipt, curves, kept, seconds)


def _joined(parts: list[Curves]) -> Curves:
    """Return the windows of the members of all passes."""
    tables = (np.concatenate([getattr(p, name) for p in parts], axis=1) for name in ("mean", "min", "max"))
    return Curves(parts[0].edges, *tables)


def _results(curves: Curves, member: int) -> dict[str, Any]:
    """Return a member's figures; None stands for one that is not finite."""
    sizes = np.diff(curves.edges)
    steps = curves.edges - curves.edges[0]
    tenths = np.searchsorted(steps, [k * steps[-1] // TENTHS for k in range(TENTHS + 1)])

    def mean(column: int, first: int = 0, last: int | None = None) -> float | None:
        window = slice(first, last)
        with np.errstate(all="ignore"):
            found = float(np.average(curves.mean[window, member, column], weights=sizes[window]))
        return found if math.isfinite(found) else None

    pieces = [(a, b) for a, b in itertools.pairwise(tenths) if b > a]
    return {
        "mean_squared_error": mean(0),
        "last_tenth": mean(0, *pieces[-1]),
        "tenths": [mean(0, *piece) for piece in pieces],
        "mean_step_size": mean(2),
    }


def noise_floor(spec: Any) -> float | None:
    """Return the mean squared error that no learner can be below, where the stream knows its own noise."""
    try:
        return from_spec(spec).noise_floor
    except (RefusedError, UnavailableError):
        return None


def write_beside(partial: Path, request: Request, passes: list[Pass], run: Run) -> dict[str, Any]:
    """Write states, curves and histories, and return the files that the receipt vouches for."""
    states = npz(_named(run.states))
    write_file(partial / "states.npz", states)
    names = ("window", "member", "column")
    write_group(
        partial / "curves.zarr",
        {
            "edges": (run.curves.edges, ("edge",)),
            "mean": (run.curves.mean, names),
            "min": (run.curves.min, names),
            "max": (run.curves.max, names),
        },
        columns=list(COLUMNS[: run.curves.mean.shape[2]]),
    )
    if any(request.tracking):
        write_group(partial / "histories.zarr", _histories(request, passes))
    return {"states.npz": {"size": len(states), "sha256": hashlib.sha256(states).hexdigest()}}


def _named(states: list[Any]) -> dict[str, np.ndarray]:
    import jax

    return {
        _leaf_name(place, keys): np.asarray(leaf)
        for place, state in enumerate(states)
        for keys, leaf in jax.tree_util.tree_flatten_with_path(state)[0]
    }


def _leaf_name(member: int, keys: Any) -> str:
    return "/".join([f"member{member}", *(key.name for key in keys)])


def _histories(request: Request, passes: list[Pass]) -> dict[str, tuple[np.ndarray, Sequence[str]]]:
    """Return what was recorded, `(recording, member, …)`; NaN of members that were lost or have no such thing."""
    found: dict[str, list[np.ndarray | None]] = {"step_sizes": [], "step_size_normalizers": [], "mean": [], "var": []}
    for one in passes:
        for place, member in enumerate(one.fold.members):
            tables = [] if place in one.fold.stopped else one.fold.histories(place)
            scaled = bool(tables) and request.tracking.scales > 0 and member.learner.normalizer is not None
            found["mean"].append(tables[-2] if scaled else None)
            found["var"].append(tables[-1] if scaled else None)
            sizes = tables[: len(tables) - 2 * scaled]
            found["step_sizes"].append(sizes[0] if sizes else None)
            found["step_size_normalizers"].append(sizes[1] if len(sizes) > 1 else None)
    arrays: dict[str, tuple[np.ndarray, Sequence[str]]] = {}
    for name, kept in found.items():
        like = next((table for table in kept if table is not None), None)
        if like is None:
            continue
        nothing = np.full_like(like, np.nan)
        stacked = np.stack([nothing if table is None else table for table in kept], axis=1)
        sized = name.startswith("step_size")
        interval = request.tracking.step_sizes if sized else request.tracking.scales
        arrays[name] = (stacked, ("recording", "member", "feature_and_bias" if sized else "feature"))
        steps = request.start + np.arange(len(like), dtype=np.int64) * interval
        arrays["step_size_steps" if sized else "normalizer_steps"] = (steps, ("recording",))
    return arrays


def final_states(path: Path | str, learners: Sequence[Any], feature_dim: int) -> list[Any]:
    """Return the final states of a run from its `states.npz`, one a member; None of those that were lost.

    Args:
        path: the run's folder.
        learners: the members' learners, one a member.
        feature_dim: features of an observation.
    """
    import jax

    arrays = load_npz(Path(path) / "states.npz")
    found: list[Any] = []
    for place, learner in enumerate(learners):
        leaves, tree = jax.tree_util.tree_flatten_with_path(learner.init(feature_dim))
        names = [_leaf_name(place, keys) for keys, _ in leaves]
        lost = not all(name in arrays for name in names)
        found.append(None if lost else jax.tree_util.tree_unflatten(tree, [arrays[name] for name in names]))
    return found
