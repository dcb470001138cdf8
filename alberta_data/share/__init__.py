"""Datasets between people: packed, fetched, pushed, described, and to and from other formats.

    packing, unpacking    one file, and back; archives, archive_source behind them

Nothing here imports jax; each library that only one function needs is imported by it.
"""

from alberta_data.share.packing import pack
from alberta_data.share.unpacking import Unpacked, unpack

__all__ = ["Unpacked", "pack", "unpack"]
