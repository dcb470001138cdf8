"""The names of this package as editors and type checkers see them; a test holds them to those of `__init__.py`."""

from alberta_data.store.checking import Report
from alberta_data.store.copying import (
    annotate,
    copy_rows,
    kept_blocks,
)
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
