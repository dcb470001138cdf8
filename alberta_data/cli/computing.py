"""jax made ready for the commands that compute: on the CPU, with the settings that the bits are promised for."""

from __future__ import annotations

import os
import sys


def prepare() -> None:
    """Set the compiler's flags before jax starts, and keep frozen data on the CPU, whatever `JAX_*` says.

    Raises:
        ArgumentError: fast-math is switched on in `XLA_FLAGS`.
    """
    from alberta_data import xla

    if "jax" not in sys.modules:
        os.environ["JAX_PLATFORMS"] = "cpu"
    xla.pin()
