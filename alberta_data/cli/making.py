"""What `generate` does with any stream or environment: say what it would take, or make it, and print the path."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alberta_data.cli import numbers, output
from alberta_data.cli.computing import prepare_to_generate
from alberta_data.cli.progress import Progress
from alberta_data.cli.stopping import resumable

PACKED = ".zip"


@dataclass(frozen=True)
class Destination:
    """The arguments of `create_dataset` beside the stream, and how to tell of it."""

    steps: int
    seed: int = 0
    output: Path | None = None
    data_dir: Path | None = None
    chunk_steps: int | None = None
    codec: str | None = None
    overwrite: bool = False
    force: bool = False
    dry_run: bool = False
    as_json: bool = False
    quiet: bool = False


def make(stream: Any, to: Destination, allow_import: tuple[str, ...] = ()) -> int:
    """Create the dataset and print its path to stdout, or print the plan where that was asked for."""
    prepare_to_generate()
    from alberta_data.dataset.creating import create_dataset, plan_dataset

    plan = plan_dataset(
        stream, steps=to.steps, seed=to.seed, path=to.output, data_dir=to.data_dir, chunk_steps=to.chunk_steps,
        codec=to.codec, force=to.force, allow_import=allow_import,
    )  # fmt: skip
    if to.dry_run:
        _tell_plan(plan, as_json=to.as_json)
        return 0
    packed = plan.path.suffix == PACKED
    there = _there(plan, packed) and not to.overwrite
    size = numbers.bytes_text(plan.size)
    line = f"{_named(plan.spec)}, {numbers.with_commas(to.steps)} steps, seed {to.seed}, {size}"
    began = time.monotonic()
    with Progress("generate", quiet=to.quiet, announcement=line) as progress, resumable():
        if packed and there:
            dataset = _same(plan)
        else:
            dataset = create_dataset(
                stream, steps=to.steps, seed=to.seed, path=_unpacked(plan.path) if packed else to.output,
                data_dir=to.data_dir, chunk_steps=to.chunk_steps, codec=to.codec, overwrite=to.overwrite,
                force=to.force, allow_import=allow_import, progress=progress,
            )  # fmt: skip
            dataset = _packed(dataset, plan.path, overwrite=to.overwrite) if packed else dataset
    with dataset:
        if not to.quiet:
            done = "already there" if there else _pace(progress, time.monotonic() - began)
            output.say(f"{done}, seed {to.seed}, id {dataset.id}")
        if to.as_json:
            output.put_json(described(dataset))
        else:
            output.put(dataset.path)
    return 0


def _there(plan: Any, packed: bool) -> bool:
    """Say whether something lies at the destination that is, or may be, the dataset."""
    return bool(plan.path.exists() if packed else (plan.path / "zarr.json").exists())


def _same(plan: Any) -> Any:
    """Return the packed dataset at the destination.

    Raises:
        DestinationError: it is another one, or something else.
    """
    from alberta_data.dataset.opened import open_dataset
    from alberta_data.errors import AlbertaDataError, DestinationError

    taken = f"destination must be free or this dataset, got something else at {plan.path}: take another name"
    try:
        found = open_dataset(plan.path)
    except AlbertaDataError:
        raise DestinationError(taken) from None
    if dict(found.spec) != plan.spec:
        found.close()
        raise DestinationError(f"{taken}, or --overwrite")
    return found


def _unpacked(path: Path) -> Path:
    """Return the folder in which what will be packed is made; the same command goes on with it."""
    return path.with_name(f"{path.name}.unpacked")


def _packed(dataset: Any, path: Path, *, overwrite: bool) -> Any:
    """Pack a dataset that was made to be packed, remove its folder, and return it opened where it is now."""
    from alberta_data.dataset.opened import open_dataset
    from alberta_data.share import pack
    from alberta_data.store.destination import delete_dataset

    with dataset:
        pack(dataset, path, overwrite=overwrite)
        folder = dataset.path
    delete_dataset(folder)
    return open_dataset(path)


def described(dataset: Any) -> dict[str, Any]:
    """Return what programs want to know of a dataset."""
    arrays = {
        name: {"dtype": str(array.dtype), "shape": list(array.shape), "columns": array.columns}
        for name, array in dataset.arrays.items()
    }
    return {
        "id": dataset.id,
        "path": dataset.store.name,
        "spec": dataset.spec,
        "arrays": arrays,
        "made_with": dataset.made_with,
        "about": dataset.about,
        "size": dataset.size,
    }


def _named(spec: Any) -> str:
    parameters = spec["parameters"]
    if "inner" in parameters:
        return f"{_named(parameters['inner'])}, scaled"
    features = f", {parameters['feature_dim']} features" if "feature_dim" in parameters else ""
    return f"{spec['stream']}{features}"


def _pace(progress: Progress, seconds: float) -> str:
    rate = f", {numbers.short(progress.rate)} steps/s" if progress.rate else ""
    return f"done in {numbers.duration(seconds)}{rate}"


def _tell_plan(plan: Any, *, as_json: bool) -> None:
    if as_json:
        output.put_json(
            {
                "path": str(plan.path), "spec": plan.spec, "spec_digest": plan.spec_digest, "size": plan.size,
                "size_on_disk": plan.size_on_disk, "files": plan.files, "free": plan.free,
            }
        )  # fmt: skip
        return
    import json

    rows = [
        ("path", str(plan.path)),
        ("size on disk", f"{numbers.bytes_text(plan.size_on_disk)} ({plan.size_on_disk} bytes)"),
        ("files", numbers.with_commas(plan.files)),
        ("free there", f"{numbers.bytes_text(plan.free)} ({plan.free} bytes)"),
        ("spec", json.dumps(plan.spec)),
        ("spec's digest", f"{plan.spec_digest} (not the id, which the numbers decide)"),
    ]
    for line in output.table(rows):
        output.put(line)
