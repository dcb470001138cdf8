"""The names of this package as editors and type checkers see them; a test holds them to those of `__init__.py`."""

from alberta_data.dataset.comparing import Difference, diff
from alberta_data.dataset.creating import (
    DatasetPlan,
    create_dataset,
    plan_dataset,
)
from alberta_data.dataset.extending import extend
from alberta_data.dataset.listing import Entry, list_datasets
from alberta_data.dataset.naming import (
    data_folder,
    dataset_name,
    find,
    spec_digest,
)
from alberta_data.dataset.opened import (
    Dataset,
    StoredArray,
    open_dataset,
)
from alberta_data.dataset.reproducing import Reproduction, reproduce
from alberta_data.store.destination import delete_dataset

__all__ = [
    "Dataset",
    "DatasetPlan",
    "Difference",
    "Entry",
    "Reproduction",
    "StoredArray",
    "create_dataset",
    "data_folder",
    "dataset_name",
    "delete_dataset",
    "diff",
    "extend",
    "find",
    "list_datasets",
    "open_dataset",
    "plan_dataset",
    "reproduce",
    "spec_digest",
]
