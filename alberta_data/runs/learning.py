"""Learn from a dataset and leave a run: `learn`, and what repeats one: `check_receipt`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alberta_data import xla
from alberta_data.dataset.child import pinned
from alberta_data.dataset.opened import open_dataset
from alberta_data.errors import ArgumentError, DestinationError, DifferenceFound, NonFiniteError
from alberta_data.learners import LinearLearner
from alberta_data.learners.linear import COLUMNS
from alberta_data.replay import Tracking
from alberta_data.runs.folder import RunFolder, read_receipt, receipt_at
from alberta_data.runs.passing import Pass
from alberta_data.runs.request import Request, default_path, target_columns, whole
from alberta_data.runs.results import Before, Run, most_columns, summed_up, write_beside
from alberta_data.runs.tally import FullMetrics

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LearningPlan:
    """What `learn` would do.

    Attributes:
        path: where the run would go.
        members: learners, times target columns.
        passes: how often the data is read.
        steps: of the range.
        size: bytes that the run takes on disk, about.
    """

    path: Path
    members: int
    passes: int
    steps: int
    size: int


def plan_learning(
    dataset: Any,
    learners: Sequence[LinearLearner] | LinearLearner,
    *,
    path: Path | str | None = None,
    metrics: str = "windows",
    **options: Any,
) -> LearningPlan:
    """Return what `learn` would do with the same arguments; nothing is written.

    Raises:
        ArgumentError: as `learn`.
    """
    request = _request(dataset, learners, metrics, **options)
    members, columns = len(request.members), most_columns(request)
    size = request.windows * members * columns * 16 + members * (dataset.arrays["observations"].shape[1] + 1) * 16
    if metrics == "full":
        size += 4 * request.steps * members * columns
    place = default_path(dataset, request) if path is None else Path(path)
    return LearningPlan(place, members, len(request.passes), request.steps, size)


def learn(
    dataset: Any,
    learners: Sequence[LinearLearner] | LinearLearner,
    *,
    path: Path | str | None = None,
    start: int = 0,
    steps: int | None = None,
    target: int | str | None = None,
    td: bool = False,
    gamma: float = 0.99,
    metrics: str = "windows",
    track_step_sizes: int = 0,
    track_normalizer: int = 0,
    after: Run | Before | None = None,
    every: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Replay a dataset into learners, in one pass, and leave a run.

    A finished run of the same is learned again and compared with its receipt, and nothing is written.

    Args:
        dataset: as `open_dataset` returns it.
        learners: one or more; with K target columns each of them is K members.
        path: the run's folder; by default `runs/<dataset>-<8 digits>`.
        start: first step.
        steps: how many; by default all that follow.
        target: one column of the targets, by number or name; by default all.
        td: learn values from transitions: the target is `r + γ V(s')`.
        gamma: γ, 0 to 1.
        metrics: `windows` keeps 1,000 windows, `full` every step's metrics as well.
        track_step_sizes: record the step-sizes every so many steps; 0 for never.
        track_normalizer: likewise the normalisers.
        after: a run of the same learners whose final states this one goes on from; see `read_run`.
        every: steps of a window of the curves, in place of 1,000 windows; the last may be short.
        resume: go on with an unfinished run, if there is one.
        overwrite: replace a run that is there.
        progress: called with steps done and all steps.

    Raises:
        ArgumentError: an argument is out of its range; see `Request.check`.
        DestinationError: the folder is taken by something else, by another run, or unfinished.
        DifferenceFound: the run that is there has another digest.
        NonFiniteError: no member is left; nothing is kept.
        DamagedDatasetError: the dataset is not what its id says.
    """
    options = {
        "start": start,
        "steps": steps,
        "target": target,
        "td": td,
        "gamma": gamma,
        "track_step_sizes": track_step_sizes,
        "track_normalizer": track_normalizer,
        "after": after,
        "every": every,
    }
    request = _request(dataset, learners, metrics, **options)
    place = default_path(dataset, request) if path is None else Path(path)
    if _elsewhere(dataset):
        keywords = {"path": place, "metrics": metrics, "resume": resume, "overwrite": overwrite, **options}
        return pinned(_learn_at, _place(dataset), learners, progress=progress, **keywords)  # type: ignore[no-any-return]
    there = receipt_at(place)
    if there is not None and not overwrite:
        if there.get("run") != request.to_json():
            raise DestinationError(f"a run's folder must be free, got another run at {place}: give --overwrite")
        return _compared(there, _repeat(dataset, request, after, progress), place)
    folder = RunFolder(place)
    folder.begin({**request.to_json(), "metrics": metrics}, resume=resume, overwrite=overwrite)
    with closing(folder):
        try:
            run = _learn(dataset, request, after, folder, metrics == "full", progress)
        except NonFiniteError:
            folder.discard()
            raise
        folder.finish(run.receipt, replaces=overwrite)
        run.path = place
        return run


def check_receipt(
    receipt: Path | str | Run, dataset: Any, *, after: Run | Before | None = None, progress: Progress | None = None
) -> Run:
    """Learn again what a receipt says, and compare the digest; nothing is written.

    Args:
        receipt: a run, its folder, or its `receipt.json`.
        dataset: the one it was learned from.
        after: the run whose states it went on from, if it did.
        progress: called with steps done and all steps.

    Raises:
        DifferenceFound: the digests differ; the message names the first member.
        ArgumentError: another dataset, or the run went on from one that is not given.
    """
    there = receipt.receipt if isinstance(receipt, Run) else read_receipt(receipt)
    request = Request.from_json(there.get("run"))
    if request.dataset_id != dataset.id:
        raise ArgumentError(f"the receipt is of the dataset {request.dataset_id[:16]}…, got {dataset.id[:16]}…")
    request.check(dataset)
    if request.after is None and after is not None:
        raise ArgumentError(f"the run went on from no other, got after, the run with digest {after.digest[:16]}…")
    if after is not None and request.after != after.digest:
        raise ArgumentError(f"the run went on from the one with digest {request.after}, got after {after.digest}")
    if request.after is not None and after is None:
        raise ArgumentError(
            f"the run went on from the one with digest {request.after}, which must be given as after: "
            "--after RUN on the command line"
        )
    if _elsewhere(dataset):
        return pinned(_check_at, receipt, _place(dataset), progress=progress, after=after)  # type: ignore[no-any-return]
    return _compared(there, _repeat(dataset, request, after, progress), None)


def _elsewhere(dataset: Any) -> bool:
    """Say whether a stored dataset must be learned from in a child, since jax runs here otherwise than pinned."""
    return (xla.forked() or not xla.pin()) and hasattr(dataset, "store")


_Place = tuple[str, dict[str, Any] | None]


def _place(dataset: Any) -> _Place:
    """Return where a dataset lies, and how an environment's is replayed."""
    replay = {"mode": dataset.mode, "include_action": dataset.include_action} if hasattr(dataset, "replayed") else None
    return dataset.store.name, replay


def _learn_at(place: _Place, learners: Any, progress: Progress | None = None, **keywords: Any) -> Run:
    with open_dataset(place[0]) as stored:
        dataset = stored if place[1] is None else stored.replay(**place[1])
        return learn(dataset, learners, progress=progress, **keywords)


def _check_at(receipt: Any, place: _Place, after: Run | Before | None, progress: Progress | None = None) -> Run:
    with open_dataset(place[0]) as stored:
        dataset = stored if place[1] is None else stored.replay(**place[1])
        return check_receipt(receipt, dataset, after=after, progress=progress)


def _request(dataset: Any, learners: Any, metrics: str, **options: Any) -> Request:
    if metrics not in ("windows", "full"):
        raise ArgumentError(f"metrics must be windows or full, got {metrics!r:.80}")
    after = options.get("after")
    td, start = options.get("td", False), whole("start", options.get("start", 0))
    steps, every = options.get("steps"), options.get("every")
    request = Request(
        dataset.id,
        start,
        dataset.steps - start if steps is None else whole("steps", steps),
        tuple(learners) if isinstance(learners, Sequence) else (learners,),
        target_columns(dataset, options.get("target"), td),
        float(options.get("gamma", 0.99)) if td else None,
        Tracking(*(whole(name, options.get(name, 0)) for name in ("track_step_sizes", "track_normalizer"))),
        None if after is None else after.digest,
        getattr(dataset, "replayed", None),
        None if every is None else whole("every", every),
    )
    request.check(dataset)
    if after is not None and len(after.states) != len(request.members):
        raise ArgumentError(f"after must be a run of the same {len(request.members)} members, got {len(after.states)}")
    features = dataset.arrays["observations"].shape[1]
    for state in after.states if after is not None else ():
        if state is not None and len(state.weights) != features:
            raise ArgumentError(f"after must be a run over {features} features, got one over {len(state.weights)}")
    if metrics == "full" and len(request.passes) > 1:
        raise ArgumentError(f"metrics full must fit in one pass, got {len(request.members)} members: use windows")
    return request


def _repeat(dataset: Any, request: Request, after: Run | Before | None, progress: Progress | None) -> Run:
    return _learn(dataset, request, after, None, False, progress)


def _compared(there: dict[str, Any], run: Run, place: Path | None) -> Run:
    """Return a repeated run whose digest is that of the receipt.

    Raises:
        DifferenceFound: it is not.
    """
    if run.digest != there.get("digest"):
        pairs = zip(there.get("members", []), run.members, strict=False)
        which = next((at for at, (old, new) in enumerate(pairs) if old.get("digest") != new["digest"]), 0)
        raise DifferenceFound(
            f"learning again must give digest {str(there.get('digest'))[:16]}…, got {run.digest[:16]}…: "
            f"member {which} is the first that differs"
        )
    run.path = place
    return run


def _learn(
    dataset: Any,
    request: Request,
    after: Run | Before | None,
    folder: RunFolder | None,
    full: bool,
    progress: Progress | None,
) -> Run:
    began = time.perf_counter()
    features = dataset.arrays["observations"].shape[1]
    columns, members = most_columns(request), request.members
    total = request.steps * len(request.passes)
    writer = None
    if full and folder is not None:
        writer = FullMetrics(folder.partial / "metrics.zarr", request.steps, len(members), columns)
        writer.begin({"columns": list(COLUMNS[:columns]), "first_step": request.start})
    passes = []
    for number, places in enumerate(request.passes):
        states = None if after is None else _given(after, request, places, features)
        one = Pass(request, number, features, states, folder, writer)
        one.run(dataset, _after(number * request.steps, total, progress))
        passes.append(one)
    if writer is not None:
        writer.finish()
    run = summed_up(dataset, request, passes, time.perf_counter() - began)
    if folder is not None:
        run.receipt["files"] = write_beside(folder.partial, request, passes, run)
    return run


def _after(done: int, total: int, progress: Progress | None) -> Callable[[int], None]:
    """Return what tells of the steps of a pass, `done` steps having been taken in those before it."""
    return lambda steps: None if progress is None else progress(done + steps, total)


def _given(after: Run | Before, request: Request, places: range, features: int) -> list[Any]:
    """Return the states that the members of a pass begin with; one that was lost is so again from the first step on."""
    import jax

    members = [request.learners[place] for place in places for _ in request.columns]
    first = places.start * len(request.columns)
    return [
        jax.tree.map(lambda leaf: leaf * np.float32(np.nan), learner.init(features)) if state is None else state
        for learner, state in zip(members, after.states[first : first + len(members)], strict=True)
    ]
