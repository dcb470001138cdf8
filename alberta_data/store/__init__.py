"""Datasets on disk: format 1, its writer and its checked reader.

    layout, metadata    what lies where, and the root that says so
    canonical           the JSON of every digest
    writer              begin, append, finish; beginning, pipeline, rows, plain, journal, resuming, finishing behind it
    destination         what lies at a path, taking its place, removing it
    reader              open, blocks, read, checkpoint, verify; leaves, chunks, replaying, checking behind it
    sources, zipped     the places a dataset is read from
    copying             rows taken over into a longer dataset, another description
    disk                every change made to a disk

Nothing here imports jax or zarr.
"""

from alberta_data.store.checking import Report
from alberta_data.store.copying import annotate, copy_rows, kept_blocks
from alberta_data.store.destination import delete_dataset
from alberta_data.store.layout import ArrayDeclaration
from alberta_data.store.metadata import Root, dataset_id
from alberta_data.store.planning import Plan, plan
from alberta_data.store.reader import Store, open_store
from alberta_data.store.sources import Source
from alberta_data.store.writer import Position, Writer

__all__ = [
    "ArrayDeclaration",
    "Plan",
    "Position",
    "Report",
    "Root",
    "Source",
    "Store",
    "Writer",
    "annotate",
    "copy_rows",
    "dataset_id",
    "delete_dataset",
    "kept_blocks",
    "open_store",
    "plan",
]
