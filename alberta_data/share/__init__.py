"""Datasets between people: packed, fetched, pushed, described, and to and from other formats.

    packing, unpacking    one file, and back; archives, archive_source behind them
    fetching              from elsewhere; landing, transfer, mending, whole_file behind it

Nothing here imports jax; each library that only one function needs is imported by it.
"""

from alberta_data.share.fetching import Fetched, fetch
from alberta_data.share.packing import pack
from alberta_data.share.unpacking import Unpacked, unpack

__all__ = ["Fetched", "Unpacked", "fetch", "pack", "unpack"]
