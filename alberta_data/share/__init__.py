"""Datasets between people: packed, fetched, pushed, described, and to and from other formats.

    packing, unpacking    one file, and back; archives behind them
    fetching              from elsewhere; landing, transfer, mending, whole_file behind it
    pushing               to elsewhere
    recipes               the few lines that make a dataset again
    describing            title, licence and so on; cards, croissant_form: for people and for machines
    exporting             to other formats; tables, minari_form behind it
    freezing              from a file of one's own; recorded behind it

Nothing here imports jax; each library that only one function needs is imported by it.
"""

from alberta_data.share.cards import card
from alberta_data.share.croissant_form import croissant
from alberta_data.share.describing import annotate
from alberta_data.share.exporting import export
from alberta_data.share.fetching import Fetched, fetch
from alberta_data.share.freezing import freeze
from alberta_data.share.packing import pack
from alberta_data.share.pushing import Pushed, push
from alberta_data.share.recipes import read_recipe, recipe
from alberta_data.share.unpacking import Unpacked, unpack

__all__ = [
    "Fetched",
    "Pushed",
    "Unpacked",
    "annotate",
    "card",
    "croissant",
    "export",
    "fetch",
    "freeze",
    "pack",
    "push",
    "read_recipe",
    "recipe",
    "unpack",
]
