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

from alberta_data.lazy import exports as _exports
from alberta_data.lazy import homes_of as _homes_of

_HOMES = _homes_of(
    {
        "alberta_data.store.checking": ("Report",),
        "alberta_data.store.copying": ("annotate", "copy_rows", "kept_blocks"),
        "alberta_data.store.destination": ("delete_dataset",),
        "alberta_data.store.layout": ("ArrayDeclaration",),
        "alberta_data.store.metadata": ("Root", "dataset_id"),
        "alberta_data.store.planning": ("Plan", "plan"),
        "alberta_data.store.reader": ("Store", "open_store"),
        "alberta_data.store.sources": ("Source",),
        "alberta_data.store.writer": ("Position", "Writer"),
    }
)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = _exports(globals(), _HOMES)
