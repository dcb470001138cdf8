"""Sutton (1992), experiment 1: five of twenty inputs matter, and one of the five flips its sign every 20 steps.

Each learner settles for 20,000 steps; what counts is its mean squared error over the next 10,000. The paper has about
3.5 for LMS at its best step-size and about 1.5 for IDBD.

    python sutton_1992_experiment_1.py [SETTLE] [MEASURE]
"""

import sys

import zarr
from commands import alberta_data, parameters, print_table

PUBLISHED = {"lms": 3.5, "idbd": 1.5}

settle, measure = int(sys.argv[1]) if sys.argv[1:] else 20_000, int(sys.argv[2]) if sys.argv[2:] else 10_000
dataset = alberta_data("generate", "sutton1", "--steps", settle + measure)
run = alberta_data(
    "learn", dataset["path"], "--optimizer", "lms", "--step-size", "0.01,0.02,0.03,0.04,0.05",
    "--optimizer", "idbd", "--initial-step-size", "0.05", "--meta-step-size", "0.001,0.01,0.02",
    "--metrics", "full", "--overwrite",
)  # fmt: skip
errors = zarr.open_group(f"{run['path']}/metrics.zarr", mode="r")["metrics"][settle:, :, 0].mean(axis=0)
learners = run["run"]["learners"]
rows = []
for kind, published in PUBLISHED.items():
    members = [place for place, learner in enumerate(learners) if learner["optimizer"]["type"] == kind]
    best = min(members, key=lambda place: errors[place])
    rows += [[parameters(learners[m]), float(errors[m]), published if m == best else ""] for m in members]
print_table(["learner", "mean squared error", "the paper, about"], rows)
