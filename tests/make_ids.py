"""Writes tests/data/ids.json: the ids that each supported Python is held to. Run it when a stream is added."""

import json
import tempfile
from pathlib import Path

from alberta_data import xla

if __name__ == "__main__":
    xla.pin()
    from alberta_data.dataset import create_dataset
    from alberta_data.streams.registry import STREAMS
    from tests.streams.making import with_features

    ids = {}
    for features in (1, 3, 5, 20, 300):
        for name in STREAMS:
            with tempfile.TemporaryDirectory() as folder:
                stream = with_features(name, features)
                made = create_dataset(stream, steps=5000, seed=3, path=Path(folder) / "a.zarr", block_steps=501)
                ids[f"{name}-{features}"] = made.id
    Path(__file__).with_name("data").joinpath("ids.json").write_text(json.dumps(ids, indent=1) + "\n")
