"""`alberta-data extend DATASET --steps N`."""

from __future__ import annotations

from alberta_data.cli import options, output
from alberta_data.cli.command import command
from alberta_data.cli.computing import prepare_to_generate
from alberta_data.cli.making import described
from alberta_data.cli.progress import Progress
from alberta_data.cli.stopping import resumable


@command("alberta-data extend abrupt-d20-1e5-s0 --steps 2e5")
def extend(
    dataset: options.Dataset,
    *,
    steps: options.Steps,
    output_: options.Output = None,
    data_dir: options.DataDir = None,
    chunk_steps: options.ChunkSteps = None,
    codec: options.Codec = None,
    overwrite: options.Overwrite = False,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """A longer dataset that begins with this one, which stays.

    The rows there are are checked while they are copied. The result is the dataset that `generate` makes of as many
    steps. Prints its path to stdout.
    """
    prepare_to_generate()
    from alberta_data.dataset.opened import open_dataset

    with (
        open_dataset(dataset, data_dir=data_dir) as old,
        Progress("extend", quiet=quiet) as progress,
        resumable(),
    ):
        made = old.extend(
            steps, output_, data_dir=data_dir, chunk_steps=chunk_steps, codec=codec, overwrite=overwrite, force=force,
            progress=progress,
        )  # fmt: skip
    with made:
        if not quiet:
            output.say(f"id {made.id}")
        if as_json:
            output.put_json(described(made))
        else:
            output.put(made.path)
