"""A process for one function: it prepares once, then runs and prints what that took for every line it reads.

    python -m benchmarks.worker MODULE:FUNCTION '{"argument": …}'

The function returns what is timed; what that returns, if it is a `Time`, counts in place of the time of the whole.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from benchmarks.measuring import timed


def main() -> None:
    place, arguments = sys.argv[1:]
    # What is said on standard output by anything else must not be taken for an answer.
    answers = os.dup(1)
    os.dup2(2, 1)
    module, _, name = place.partition(":")
    run = getattr(importlib.import_module(module), name)(**json.loads(arguments))
    for _ in sys.stdin:
        os.write(answers, f"{json.dumps(timed(run))}\n".encode())


if __name__ == "__main__":
    main()
