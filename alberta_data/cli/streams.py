"""`alberta-data streams`."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Annotated, Any

import typer

from alberta_data.cli import output
from alberta_data.cli.command import command
from alberta_data.cli.options import Json


@command("alberta-data streams", "alberta-data streams abrupt")
def streams(
    name: Annotated[str | None, typer.Argument(metavar="STREAM", help="one of them", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """The streams there are; of one, its parameters, formula and paper."""
    from alberta_data.streams.registry import STREAMS, stream_class

    if name is None:
        found = list(STREAMS.values())
        if as_json:
            output.put_json([described(stream) for stream in found])
        else:
            for line in output.table([(stream.name, first_line(stream)) for stream in found]):
                output.put(line)
        return
    stream = stream_class(name)
    if as_json:
        output.put_json(described(stream))
        return
    output.put(f"{stream.name}: {first_line(stream)}")
    output.put(f"  {stream.formula}")
    output.put(f"  {stream.paper}")
    output.put("")
    rows = [("option", "default", "", "")]
    rows += [(option(f), str(default(f)), bounds(f), f.metadata["help"]) for f in parameters(stream)]
    for line in output.table(rows):
        output.put(line)


def described(stream: Any) -> dict[str, Any]:
    """Return what there is to know of a stream, as JSON."""
    return {
        "stream": stream.name,
        "version": stream.version,
        "class": stream.__name__,
        "summary": first_line(stream),
        "formula": stream.formula,
        "paper": stream.paper,
        "parameters": {
            field.name: {
                "type": str(field.type),
                "default": default(field),
                **{key: value for key, value in field.metadata.items() if key != "cli_default" and value is not None},
            }
            for field in parameters(stream)
        },
    }


def first_line(thing: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def parameters(stream: Any) -> list[dataclasses.Field[Any]]:
    """Return the fields that are parameters, in their order."""
    from alberta_data.parameters import is_parameter

    return [field for field in dataclasses.fields(stream) if is_parameter(field)]


def option(field: dataclasses.Field[Any]) -> str:
    """Return the option of a parameter."""
    return f"--{field.name.replace('_', '-')}"


def default(field: dataclasses.Field[Any]) -> Any:
    """Return the command line's default; None where the option must be given."""
    if field.metadata["cli_default"] is not None:
        return field.metadata["cli_default"]
    return None if field.default is dataclasses.MISSING else field.default


def bounds(field: dataclasses.Field[Any]) -> str:
    """Return the values that a parameter may have, as `0 to 1`, `at least 1`, `above 0`; empty where any."""
    low, high, above = (field.metadata[key] for key in ("minimum", "maximum", "above"))
    if low is not None and high is not None:
        return f"{low} to {high}"
    words = [f"at least {low}" if low is not None else "", f"above {above}" if above is not None else ""]
    words.append(f"at most {high}" if high is not None else "")
    return ", ".join(word for word in words if word)
