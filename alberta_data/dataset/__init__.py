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

from alberta_data.lazy import exports as _exports
from alberta_data.lazy import homes_of as _homes_of

_HOMES = _homes_of(
    {
        "alberta_data.dataset.comparing": ("Difference", "diff"),
        "alberta_data.dataset.creating": ("DatasetPlan", "create_dataset", "plan_dataset"),
        "alberta_data.dataset.extending": ("extend",),
        "alberta_data.dataset.listing": ("Entry", "list_datasets"),
        "alberta_data.dataset.naming": ("data_folder", "dataset_name", "find", "spec_digest"),
        "alberta_data.dataset.opened": ("Dataset", "StoredArray", "open_dataset"),
        "alberta_data.dataset.reproducing": ("Reproduction", "reproduce"),
        "alberta_data.store.destination": ("delete_dataset",),
    }
)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = _exports(globals(), _HOMES)
