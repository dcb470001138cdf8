"""Runs a function of ours in a process of its own, where jax starts with this package's settings.

A library call may find jax already running without the pinned instruction set, or itself in a process that was forked
after jax had started. The numbers of a spec are then made in a child.
"""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from alberta_data import errors, xla

_CODE = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from alberta_data.dataset.child import main; main()"
Progress = Callable[[int, int], None]


def pinned(function: Callable[..., Any], *args: Any, progress: Progress | None = None, **kwargs: Any) -> Any:
    """Return `function(*args, progress=progress, **kwargs)`, computed with the pinned settings.

    Args:
        function: one of this package's, at the top of its module; what it takes and returns can be pickled.
        args: its arguments.
        progress: called with steps done and all steps.
        kwargs: its keyword arguments.

    Raises:
        AlbertaDataError: whatever `function` raised.
    """
    if not xla.forked() and xla.pin():
        return function(*args, progress=progress, **kwargs)
    logging.getLogger("alberta_data").warning(
        "jax runs here without the pinned settings; the numbers are made in a child process"
    )
    command = [sys.executable, "-P", "-c", _CODE, json.dumps(sys.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            return _talk(process, (function, args, kwargs), progress)
        except BaseException:
            process.terminate()
            raise


def _talk(process: subprocess.Popen[bytes], request: Any, progress: Progress | None) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    pickle.dump(request, process.stdin)
    process.stdin.close()
    while True:
        try:
            kind, *said = pickle.load(process.stdout)  # our own child's words
        except EOFError:
            raise errors.UnavailableError(
                f"the child process that makes the numbers ended with status {process.wait()}: "
                "call alberta_data.xla.pin() before jax starts instead"
            ) from None
        if kind == "progress" and progress is not None:
            progress(*said)
        elif kind == "done":
            return said[0]
        elif kind == "error":
            raise _rebuilt(*said)


def _rebuilt(name: str, args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    known = getattr(errors, name, None)
    found = known.__new__(known, *args) if known else errors.AlbertaDataError(f"{name}: {args}")
    found.args = args
    found.__dict__.update(attributes)
    return found


def main() -> None:
    """Answer one request on standard input."""
    out = sys.stdout.buffer
    sys.stdout = sys.stderr

    def say(*words: Any) -> None:
        pickle.dump(words, out)
        out.flush()

    xla.pin()
    function, args, kwargs = pickle.load(sys.stdin.buffer)
    try:
        say("done", function(*args, progress=lambda done, of: say("progress", done, of), **kwargs))
    except Exception as err:
        say("error", type(err).__name__, tuple(map(str, err.args)), dict(err.__dict__))
