"""Sutton (1992), experiment 2: IDBD finds which inputs matter, and the step-size that suits them.

On the problem of experiment 1, IDBD with θ = 0.001 runs for 250,000 steps. In the paper the step-sizes of the five
relevant inputs settle at 0.13 ± 0.015, those of the fifteen irrelevant ones below about 0.008.

    python sutton_1992_experiment_2.py [STEPS]
"""

import sys

import zarr
from commands import alberta_data, print_table

RELEVANT = 5

steps = int(sys.argv[1]) if sys.argv[1:] else 250_000
every = steps // 10
dataset = alberta_data("generate", "sutton1", "--steps", steps + 1)
run = alberta_data(
    "learn", dataset["path"], "--optimizer", "idbd", "--initial-step-size", "0.05", "--meta-step-size", "0.001",
    "--track-step-sizes", every, "--overwrite",
)  # fmt: skip
histories = zarr.open_group(f"{run['path']}/histories.zarr", mode="r")
step_sizes = histories["step_sizes"][:, 0, :-1]
rows = [
    [
        int(step),
        *(float(of(found[:RELEVANT])) for of in (min, max)),
        *(float(of(found[RELEVANT:])) for of in (min, max)),
    ]
    for step, found in zip(histories["step_size_steps"][:], step_sizes, strict=True)
]
head = ["step", "relevant: smallest", "largest", "irrelevant: smallest", "largest"]
print_table(head, [*rows, ["the paper", 0.115, 0.145, "", 0.008]])
