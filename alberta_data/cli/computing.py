"""jax made ready for the commands that compute: on the CPU, with the settings that the bits are promised for."""

from __future__ import annotations

import logging
import os
import sys

from alberta_data.cli import output


def prepare() -> None:
    """Set the compiler's flags before jax starts, and keep frozen data on the CPU, whatever `JAX_*` says.

    Raises:
        ArgumentError: fast-math is switched on in `XLA_FLAGS`.
    """
    from alberta_data import xla

    _say_what_is_logged()
    if "jax" not in sys.modules:
        os.environ["JAX_PLATFORMS"] = "cpu"
    xla.pin()


def _say_what_is_logged() -> None:
    """Print what the library logs as lines for people."""

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            output.say(f"warning: {record.getMessage()}")

    logger = logging.getLogger("alberta_data")
    if not any(type(handler).__name__ == Said.__name__ for handler in logger.handlers):
        logger.addHandler(Said(logging.WARNING))
