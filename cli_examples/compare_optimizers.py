"""LMS, IDBD and Autostep on every stream: the error over the last tenth, each at its best in the same small grid.

python compare_optimizers.py [STEPS]
"""

import sys

from commands import alberta_data, parameters, print_table

OPTIMIZERS = ("lms", "idbd", "autostep")

steps = sys.argv[1] if sys.argv[1:] else "1e6"
streams = sys.argv[2:] or [stream["stream"] for stream in alberta_data("streams")]
rows = []
for stream in streams:
    dataset = alberta_data("generate", stream, "--steps", steps)
    run = alberta_data(
        "learn", dataset["path"], "--optimizer", "lms", "--optimizer", "idbd", "--optimizer", "autostep",
        "--step-size", "0.0001:0.1:log7", "--initial-step-size", "0.01", "--meta-step-size", "0.001,0.003,0.01,0.03",
        "--normalizer", "none", "--normalizer", "ema", "--overwrite",
    )  # fmt: skip
    learners = run["run"]["learners"]
    for optimizer in OPTIMIZERS:
        members = [m for m in run["members"] if learners[m["learner"]]["optimizer"]["type"] == optimizer]
        errors = [(m["results"] and m["results"]["last_tenth"], parameters(learners[m["learner"]])) for m in members]
        settled = [found for found in errors if found[0] is not None]
        error, learner = min(settled) if settled else (float("nan"), f"{optimizer}: every one was lost")
        floor = run["noise_floor"]
        rows.append([stream if optimizer == "lms" else "", learner, error, "" if floor is None else error - floor])
print_table(["stream", "best of the grid", "error, last tenth", "above the noise"], rows)
