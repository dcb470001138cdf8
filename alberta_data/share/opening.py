"""What the functions here take for a dataset: a path, a packed file, an address, or one that is open already."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alberta_data.store.reader import Store, open_store


@contextmanager
def opened(dataset: Any) -> Iterator[Store]:
    """Yield the checked reader of a dataset; one that was opened here is closed here.

    Args:
        dataset: a path, a source, a `Store`, or a `Dataset`.

    Raises:
        ArgumentError: there is no dataset.
    """
    store = dataset if isinstance(dataset, Store) else getattr(dataset, "store", None)
    if isinstance(store, Store):
        yield store
        return
    with open_store(dataset) as store:
        yield store
