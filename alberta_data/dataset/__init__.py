"""A frozen dataset from first to last: create, open, verify, reproduce, compare, extend, list.

naming        where datasets lie and what they are called
recording     what is written: a stream or an environment, as blocks and states
creating      create_dataset, plan_dataset
opened        Dataset, open_dataset
reproducing   reproduce: made again and compared
comparing     diff
extending     extend
listing       list_datasets
recipes       what a recipe says
child         a process of its own, where jax runs otherwise than pinned
"""

from alberta_data.dataset.comparing import Difference, diff
from alberta_data.dataset.creating import DatasetPlan, create_dataset, plan_dataset
from alberta_data.dataset.extending import extend
from alberta_data.dataset.listing import Entry, list_datasets
from alberta_data.dataset.naming import data_folder, dataset_name, find, spec_digest
from alberta_data.dataset.opened import Dataset, StoredArray, open_dataset
from alberta_data.dataset.reproducing import Reproduction, reproduce
from alberta_data.store import delete_dataset

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
