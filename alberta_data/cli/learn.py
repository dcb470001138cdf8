"""`alberta-data learn DATASET…`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from alberta_data.cli import numbers, options, output, places
from alberta_data.cli.command import Reads, command
from alberta_data.cli.computing import prepare
from alberta_data.cli.grid import grid
from alberta_data.cli.progress import Progress
from alberta_data.cli.results import tell
from alberta_data.cli.stopping import resumable
from alberta_data.errors import ArgumentError

Numbers = Reads(numbers.read_reals)


def _numbers(flag: str, help: str) -> Any:
    return typer.Option(flag, metavar="X,…", help=help)


@command(
    "alberta-data learn abrupt-d20-1e5-s0 --optimizer autostep",
    "alberta-data learn abrupt-d20-1e5-s0 --optimizer lms --optimizer idbd --step-size 0.001:0.1:log9",
)
def learn(
    datasets: Annotated[
        list[str], typer.Argument(metavar="DATASET", help=f"{options.NAMED}; or an address", show_default=False)
    ],
    *,
    optimizer: Annotated[
        list[str] | None, typer.Option("--optimizer", metavar="lms|idbd|autostep", help="else lms; repeatable")
    ] = None,
    step_size: Annotated[tuple[float, ...] | None, _numbers("--step-size", "of lms; else 0.01"), Numbers] = None,
    initial_step_size: Annotated[
        tuple[float, ...] | None, _numbers("--initial-step-size", "of idbd and autostep; else 0.01"), Numbers
    ] = None,
    meta_step_size: Annotated[
        tuple[float, ...] | None, _numbers("--meta-step-size", "of idbd and autostep; else 0.01"), Numbers
    ] = None,
    tau: Annotated[tuple[float, ...] | None, _numbers("--tau", "of autostep; else 10000"), Numbers] = None,
    normalizer: Annotated[
        list[str] | None, typer.Option("--normalizer", metavar="none|ema|welford", help="else none; repeatable")
    ] = None,
    decay: Annotated[tuple[float, ...] | None, _numbers("--decay", "of ema; else 0.99"), Numbers] = None,
    start: Annotated[int, typer.Option("--start", metavar="N", help="the first step"), options.Whole] = 0,
    steps: Annotated[
        int | None, typer.Option("--steps", "--num-steps", metavar="N", help="how many; else all"), options.Count
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="COLUMN", help="one column, by number or name; else all")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode", metavar="reward|next_state|value", help="what a step of an environment asks for; else its own"
        ),
    ] = None,
    include_action: Annotated[
        bool | None,
        typer.Option("--include-action/--no-include-action", help="whether an environment's features have the action"),
    ] = None,
    td: Annotated[bool, typer.Option("--td", help="learn values from transitions: r + gamma V(s')")] = False,
    gamma: Annotated[
        float | None, typer.Option("--gamma", metavar="X", help="discount of --td; else 0.99"), options.Real
    ] = None,
    metrics: Annotated[
        str, typer.Option("--metrics", metavar="windows|full", help="1,000 windows; or every step's as well")
    ] = "windows",
    every: Annotated[
        int | None, typer.Option("--every", metavar="N", help="windows of N steps; else 1,000 windows"), options.Count
    ] = None,
    track_step_sizes: Annotated[
        int, typer.Option("--track-step-sizes", metavar="N", help="record them every N steps"), options.Whole
    ] = 0,
    track_normalizer: Annotated[
        int, typer.Option("--track-normalizer", metavar="N", help="record it every N steps"), options.Whole
    ] = 0,
    in_sequence: Annotated[
        bool, typer.Option("--in-sequence", help="go on from one dataset to the next with the state")
    ] = False,
    after: Annotated[
        Path | None,
        typer.Option("--after", metavar="RUN", help="go on from a run's final states: its folder, or its receipt"),
        options.APath,
    ] = None,
    output_: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PATH", help="the run's folder; else runs/<dataset>-<8 digits>"),
        options.APath,
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with an unfinished run")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a run that is there")] = False,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="RECEIPT", help="learn what a receipt says, compare the digest"),
        options.APath,
    ] = None,
    id: places.Id = None,
    cache_dir: places.CacheDir = None,
    data_dir: options.DataDir = None,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Replay a dataset into learners, in one pass, and leave a run.

    Lists (0.01,0.03) and ranges (0.001:0.1:log9, 0:1:lin5) make a grid. Nothing is learned from a row that was not
    checked. Every dataset is learned by itself, unless --in-sequence says otherwise. A finished run of the same is
    learned again and its digest compared; exit 1 where it differs.

    The table has a row a learner, the best first: mean squared error over all steps and over the last tenth, what the
    latter is above the noise floor, mean step-size, the error in ten windows on a logarithmic scale.
    """
    prepare()
    values = {
        "step_size": step_size, "initial_step_size": initial_step_size, "meta_step_size": meta_step_size, "tau": tau,
        "decay": decay,
    }  # fmt: skip
    if gamma is not None and not td:
        raise ArgumentError(f"--gamma must go with --td, got {gamma} alone")
    for flag, value in (("--output", output_), ("--id", id)):
        if value is not None and len(datasets) > 1:
            raise ArgumentError(f"{flag} must go with one dataset, got {len(datasets)}")
    learning = {
        "start": start, "steps": steps, "target": target, "td": td, "gamma": 0.99 if gamma is None else gamma,
        "metrics": metrics, "track_step_sizes": track_step_sizes, "track_normalizer": track_normalizer,
        "path": output_, "every": every,
    }  # fmt: skip
    _refuse_beside_check(check, datasets, [optimizer, normalizer, mode, include_action, every, *values.values()])
    learners = grid(optimizer or ["lms"], normalizer or ["none"], values)
    before = given = _read_run(after)
    for place in datasets:
        with places.opened(place, data_dir, id, cache_dir, quiet) as stored:
            dataset = stored.replay(**_replayed(check, mode, include_action))
            if dry_run:
                _tell_plan(dataset, learners, {**learning, "after": before}, as_json=as_json)
                continue
            run = _run(dataset, learners, learning, before, resume, overwrite, check, quiet)
            if as_json:
                output.put_json(_described(dataset, run))
            else:
                tell(dataset, run, repeated=check is not None or _was_there(run))
            before = run if in_sequence else given


def _read_run(path: Path | None) -> Any:
    """Return the run to go on from, or None."""
    if path is None:
        return None
    from alberta_data.runs import read_run

    return read_run(path)


def _refuse_beside_check(check: Path | None, datasets: Sequence[str], chosen: Sequence[Any]) -> None:
    if check is None:
        return
    if len(datasets) > 1:
        raise ArgumentError(f"--check must go with one dataset, got {len(datasets)}")
    if any(value is not None for value in chosen):
        raise ArgumentError("--check must stand without options of learners, modes or windows: the receipt says all")


def _replayed(check: Path | None, mode: str | None, include_action: bool | None) -> dict[str, Any]:
    """Return how an environment's rows are replayed: as asked for, or as a receipt says."""
    if check is None:
        return {"mode": mode, "include_action": include_action}
    from alberta_data.runs import read_receipt

    run = read_receipt(check).get("run")
    replayed = run.get("replayed") if isinstance(run, dict) else None
    return replayed if isinstance(replayed, dict) and set(replayed) <= {"mode", "include_action"} else {}


def _run(
    dataset: Any, learners: Any, learning: dict[str, Any], before: Any, resume: bool, overwrite: bool,
    check: Path | None, quiet: bool,
) -> Any:  # fmt: skip
    from alberta_data.runs import check_receipt, learn

    with Progress("learn", quiet=quiet) as progress, resumable("go on with --resume"):
        if check is not None:
            return check_receipt(check, dataset, after=before, progress=progress)
        return learn(dataset, learners, after=before, resume=resume, overwrite=overwrite, progress=progress, **learning)


def _was_there(run: Any) -> bool:
    """Say whether the run was only repeated: what `learn` writes has files to vouch for."""
    return "files" not in run.receipt


def _described(dataset: Any, run: Any) -> dict[str, Any]:
    return {
        "path": None if run.path is None else str(run.path),
        "id": dataset.id,
        "spec": dataset.spec,
        "digest": run.digest,
        "seconds": run.seconds,
        "ranked": run.ranked,
        **run.receipt,
    }


def _tell_plan(dataset: Any, learners: Any, learning: dict[str, Any], *, as_json: bool) -> None:
    from alberta_data.runs import plan_learning

    plan = plan_learning(dataset, learners, **learning)
    if as_json:
        output.put_json({**vars(plan), "path": str(plan.path)})
        return
    rows = [
        ("path", str(plan.path)),
        ("members", numbers.with_commas(plan.members)),
        ("passes", f"{plan.passes} over {numbers.with_commas(plan.steps)} steps"),
        ("size on disk", f"about {numbers.bytes_text(plan.size)}"),
    ]
    for line in output.table(rows):
        output.put(line)
