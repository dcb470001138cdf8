"""`alberta-data generate STREAM`: a subcommand for each stream, its options made from the stream's parameters."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any

import typer

from alberta_data.cli import numbers, options, streams
from alberta_data.cli.command import CONTEXT, Reads, build
from alberta_data.cli.groups import Group
from alberta_data.cli.making import Destination, make

ENVIRONMENT = "environment"
_READERS = {"int": (int, "N", options.Whole), "float": (float, "X", options.Real)}

Seed = Annotated[int, typer.Option("--seed", metavar="N", help="0 to 4294967295", show_default=True), options.Whole]
ScaleRange = Annotated[
    tuple[float, float] | None,
    typer.Option("--scale-range", metavar="LOW:HIGH", help="multiply the features by scales from LOW to HIGH"),
    Reads(numbers.read_pair),
]
ScaleSpacing = Annotated[
    str | None, typer.Option("--scale-spacing", metavar="log|linear", help="how the scales are spaced; else log")
]


class Streams(Group):
    """The streams of the registry, and the environments of gymnasium."""

    kind = "stream"

    def rows(self) -> Mapping[str, str]:
        """Return name → one line of help."""
        from alberta_data.streams.registry import STREAMS

        found = {name: streams.first_line(stream) for name, stream in STREAMS.items()}
        return {**found, ENVIRONMENT: "An environment that gymnasium has registered, stepped by a policy."}

    def load(self, name: str) -> Any:
        """Return the command of a stream."""
        if name == ENVIRONMENT:
            from alberta_data.cli.environment import environment

            return environment
        return _command(name)


@lru_cache
def _command(name: str) -> Any:
    from alberta_data.streams.registry import STREAMS

    stream = STREAMS[name]
    text = f"{streams.first_line(stream)}\n\n{stream.formula}\n\nPrints the path of the dataset to stdout."
    return build(_function(stream), (f"alberta-data generate {name} --steps 1e5",), name=name, help=text)


def _function(stream: Any) -> Callable[..., int]:
    """Return a function whose keyword arguments are the stream's parameters and those of `create_dataset`."""
    fields = streams.parameters(stream)

    def run(scale_range: tuple[float, float] | None, scale_spacing: str | None, **values: Any) -> int:
        made = stream(**{field.name: values.pop(field.name) for field in fields})
        return make(scaled(made, scale_range, scale_spacing), Destination(**values))

    shared = inspect.signature(_shared, eval_str=True).parameters.values()
    first = [parameter for parameter in shared if parameter.name in ("steps", "seed")]
    rest = [parameter for parameter in shared if parameter.name not in ("steps", "seed")]
    run.__signature__ = inspect.Signature([*first, *map(_option, fields), *rest])  # type: ignore[attr-defined]
    return run


def _shared(
    *,
    steps: options.Steps,
    seed: Seed = 0,
    scale_range: ScaleRange = None,
    scale_spacing: ScaleSpacing = None,
    output: options.Output = None,
    data_dir: options.DataDir = None,
    chunk_steps: options.ChunkSteps = None,
    codec: options.Codec = None,
    overwrite: options.Overwrite = False,
    force: options.Force = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Hold what every stream's command has beside the stream's own parameters."""


def _option(field: dataclasses.Field[Any]) -> inspect.Parameter:
    """Return the option of a stream's parameter, its bounds in the help."""
    kind, metavar, reader = _READERS[str(field.type)]
    bounds = streams.bounds(field)
    text = field.metadata["help"] + (f" ({bounds})" if bounds else "")
    default = streams.default(field)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is None else default,
        annotation=Annotated[
            kind, typer.Option(streams.option(field), metavar=metavar, help=text, show_default=True), reader
        ],
    )


def scaled(stream: Any, scale_range: tuple[float, float] | None, spacing: str | None) -> Any:
    """Return the stream, its features multiplied by evenly spaced scales where a range is given.

    Raises:
        ArgumentError: a range or a spacing that cannot be.
    """
    from alberta_data.errors import ArgumentError

    if spacing not in (None, "log", "linear"):
        raise ArgumentError(f"--scale-spacing must be log or linear, got {spacing!r:.80}")
    if scale_range is None:
        if spacing is not None:
            raise ArgumentError(f"--scale-spacing must go with --scale-range, got {spacing} alone")
        return stream
    from alberta_data.streams.scaled import ScaledStreamWrapper, even_scales

    try:
        scales = even_scales(stream.feature_dim, *scale_range, spacing != "linear")
    except ArgumentError as err:
        raise ArgumentError(f"--scale-range: {err}") from None
    return ScaledStreamWrapper(stream, scales)


def _group() -> Any:
    app = typer.Typer(
        cls=Streams,
        name="generate",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings=CONTEXT,
        epilog="\b\nExample:\n  alberta-data generate abrupt --steps 1e5",
    )

    @app.callback()
    def generate(
        debug: Annotated[bool, typer.Option("--debug", help="show where an error came from")] = False,
    ) -> None:
        """Generate a stream or an environment into a frozen dataset.

        Each has its own parameters: `alberta-data generate abrupt --help`. The same command goes on with an
        unfinished dataset, and finds a finished one.
        """

    made = typer.main.get_command(app)
    made.examples = ("alberta-data generate abrupt --steps 1e5",)  # type: ignore[attr-defined]
    return made


generate = _group()
