"""A function with annotated parameters → a command.

An option that needs more than its text says how it is read: `Annotated[int, typer.Option("--steps"),
Reads(read_whole)]`. Its errors, and the library's, then speak of `--steps` as the person typed it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

import typer

from alberta_data.errors import AlbertaDataError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_PYTHON_NAME = r"(?<![\w/.'\"-])[a-z]+(?:_[a-z]+)+(?![\w/.'\"(=-])"

# What the library calls by another name than the option: its whole words, and those that begin a message.
_ALIASES = {
    "path": "--output",
    "env_args": "--env-arg",
    "wrappers": "--wrapper",
    "include_action_in_features": "--include-action",
}

_debug = inspect.Parameter(
    "debug",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--debug", help="show where an error came from")],
)


class Reads:
    """How the text of an option becomes what the function is given.

    Args:
        read: `(option, text) -> value`; it raises `ArgumentError`.
    """

    def __init__(self, read: Callable[[str, str], Any]):
        self.read = read


def command(*examples: str) -> Callable[[Callable[..., int | None]], Any]:
    """Return a decorator that makes a command of a function, its help ending in the examples."""
    return lambda function: build(function, examples)


def build(
    function: Callable[..., int | None], examples: tuple[str, ...], *, name: str | None = None, help: str | None = None
) -> Any:
    """Return the command of a function.

    Args:
        function: its docstring is the help; what it returns is the exit code.
        examples: commands that work where the dataset of `generate`'s example lies in the data folder.
        name: the command's name, if not the function's.
        help: the help, if not the docstring.
    """
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    # \b keeps typer from filling the lines as a paragraph.
    epilog = "\b\n" + "\n".join([f"Example{'s' if len(examples) > 1 else ''}:", *(f"  {line}" for line in examples)])
    name = name or function.__name__.rstrip("_")
    app.command(name, help=help, epilog=epilog, context_settings=CONTEXT)(_from_text(function))
    made = typer.main.get_command(app)
    made.examples = examples  # type: ignore[attr-defined]
    return made


def _from_text(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return the function as typer sees it: every option that is read by us is a text, and `--debug` is there."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    flags = {parameter.name: _flag(parameter) for parameter in parameters}
    flags |= {word: flag for word, flag in _ALIASES.items() if flag in flags.values()}
    readers = {parameter.name: reader for parameter in parameters if (reader := _reader(parameter)) is not None}

    def run(**values: Any) -> int | None:
        values.pop("debug", None)
        try:
            for name, reader in readers.items():
                values[name] = _read(reader, flags[name], values[name])
            return function(**values)
        except AlbertaDataError as err:
            if err.args and isinstance(err.args[0], str):
                err.args = (in_options(err.args[0], flags), *err.args[1:])
            raise

    run.__doc__ = inspect.getdoc(function)
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*(_as_text(p) if p.name in readers else p for p in parameters), _debug]
    )
    return run


def in_options(message: str, flags: dict[str, str]) -> str:
    """Return a message of the library's with the names of parameters as the options that gave them."""
    first = re.match(r"\w*", message)[0]  # type: ignore[index]
    if first in flags:
        message = flags[first] + message.removeprefix(first)
    return re.sub(_PYTHON_NAME, lambda match: flags.get(match[0], match[0]), message)


def _metadata(parameter: inspect.Parameter) -> tuple[Any, ...]:
    return get_args(parameter.annotation)[1:] if get_origin(parameter.annotation) is Annotated else ()


def _flag(parameter: inspect.Parameter) -> str:
    """Return the option of a parameter, or the argument's name in capitals."""
    for info in _metadata(parameter):
        given = [info.default, *(info.param_decls or ())] if hasattr(info, "param_decls") else []
        long = [text.split("/")[0] for text in given if isinstance(text, str) and text.startswith("--")]
        if long:
            return long[0]
        if type(info).__name__ == "ArgumentInfo":
            return str(info.metavar or parameter.name.upper()).strip("[].")
    return f"--{parameter.name.replace('_', '-')}"


def _reader(parameter: inspect.Parameter) -> Reads | None:
    return next((info for info in _metadata(parameter) if isinstance(info, Reads)), None)


def _as_text(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter as typer gets it: of text, with its default as text."""
    annotation, *metadata = get_args(parameter.annotation)
    repeated = any(get_origin(part) is list for part in (annotation, *get_args(annotation)))
    kind: Any = list[str] if repeated else str
    default = parameter.default
    if default is not inspect.Parameter.empty and default is not None:
        default = default if isinstance(default, str | list) else str(default)
    else:
        kind = kind | None if default is None else kind
    return parameter.replace(annotation=Annotated[kind, *metadata], default=default)


def _read(reader: Reads, flag: str, value: Any) -> Any:
    if value is None:
        return None
    return [reader.read(flag, text) for text in value] if isinstance(value, list) else reader.read(flag, value)
