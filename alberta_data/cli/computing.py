"""jax made ready for the commands that compute: on the CPU, with the settings that the bits are promised for."""

from __future__ import annotations

import logging
import os
import sys

from alberta_data.cli import output

# M_ARENA_MAX, M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h; the last at the largest that it takes.
_MALLOC = {-8: 1, -1: 512 * 2**20, -3: 32 * 2**20}


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


def prepare_to_generate() -> None:
    """Do what `prepare` does, and have what one block frees serve the next.

    Raises:
        ArgumentError: fast-math is switched on in `XLA_FLAGS`.
    """
    _keep_freed_memory()
    prepare()


def _keep_freed_memory() -> None:
    """Tell glibc's malloc to keep what is freed, in one arena; where there is another C library, do nothing.

    Blocks of megabytes would else go back to the system and be paged in anew, and pile up in the arenas of several
    threads: a twelfth of the time of `generate`, and a peak that grows with the steps. The process must be ours, so the
    library does not do it. Settings of the person (`MALLOC_…`, `GLIBC_TUNABLES`) stand.
    """
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for option, value in _MALLOC.items():
        mallopt(option, value)


def _say_what_is_logged() -> None:
    """Print what the library logs as lines for people."""

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            output.say(f"warning: {record.getMessage()}")

    logger = logging.getLogger("alberta_data")
    if not any(type(handler).__name__ == Said.__name__ for handler in logger.handlers):
        logger.addHandler(Said(logging.WARNING))
