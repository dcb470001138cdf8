"""Streams for the tests, and what every one of them is asked for."""

import numpy as np

from alberta_data import generation
from alberta_data.streams.registry import STREAMS


def with_features(name, features):
    """Return the stream of that name with `features` features, the rest at its defaults."""
    if name == "sutton1":
        relevant = min(5, features)
        return STREAMS[name](num_relevant=relevant, num_irrelevant=features - relevant)
    return STREAMS[name](feature_dim=features)


def rows(stream, seed, steps, **options):
    """Return observations, targets and the last state's arrays."""
    parts = list(generation.blocks(stream, seed, steps, **options))
    arrays = [np.concatenate([block.arrays[name] for block, _ in parts]) for name in ("observations", "targets")]
    return (*arrays, generation.state_arrays(parts[-1][1]))
