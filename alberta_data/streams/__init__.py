"""The streams: what each draws, in which order, from which key.

    base          the protocol, and the four phases that a stream is written in
    phases        the phases put together: one step, and a block of steps
    linear        what the linear streams share
    random_walk, abrupt, cyclic, periodic, scale_drift, dynamic_scale_shift, sutton1, scaled
                  a stream a file
    registry      name → class
    synthetic, gymnasium
                  tables of re-exports for code that moves over from alberta_framework

`from alberta_data.streams import AbruptChangeStream` works for every public name of these.
"""

from __future__ import annotations

from typing import Any

import alberta_data


def __getattr__(name: str) -> Any:
    """Find a public name of the streams; gymnasium is imported for its own only."""
    home = alberta_data.HOMES.get(name, "")
    if home in (f"{__name__}.synthetic", f"{__name__}.gymnasium", "alberta_data.blocks") or name.startswith(
        "learn_from_"
    ):
        return getattr(alberta_data, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
