"""The test room: the compiler's settings stand before jax starts, and shapes are never promoted silently."""

import os
import re
import signal
from collections import Counter

from alberta_data.xla import pin

os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs this in the background has it ignored, in every command that is started here too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
pin()


def pytest_terminal_summary(terminalreporter):
    """Print how many faults were tried, and survived, for each kind of fault."""
    tried, survived = Counter(), Counter()
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, count in getattr(report, "user_properties", ()):
                if report.when == "call" and re.fullmatch(r"T\d+", name):
                    tried[name] += count
                    survived[name] += count if outcome == "passed" else 0
    if tried:
        terminalreporter.section("faults")
        for name in sorted(tried, key=lambda name: int(name[1:])):
            terminalreporter.write_line(f"{name:4} tried {tried[name]:8,}  survived {survived[name]:8,}")
