"""S4: learning from disk, steady state, against `lax.scan` over an update under default flags, on arrays in memory.

Two updates: the formulas as they read, in plain `jnp`, and the `update` of the package's own learners, whose sums have
a fixed order. The goal is held against the faster of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.learning import from_disk, learners
from benchmarks.measuring import JAX, Bench, Row, Time, per

GOAL = "S4"
OLD = JAX < (0, 11)
OURS = 5_000_000
THEIRS = 200_000
GOALS = {"lms": None, "idbd": 5, "autostep": 5}


def arrays(dataset: str, steps: int) -> Any:
    from alberta_data import open_dataset

    with open_dataset(dataset) as opened:
        return [opened.arrays[name][:steps] for name in ("observations", "targets")]


def formulas(dataset: str, steps: int, optimizer: str) -> Any:
    from benchmarks.published_learners import scanned

    return scanned(optimizer, *arrays(dataset, steps))


def own_update(dataset: str, steps: int, optimizer: str) -> Callable[[], None]:
    import jax

    (learner,) = learners(optimizer, 1)
    pairs = tuple(map(jax.numpy.asarray, arrays(dataset, steps)))
    state = learner.init(pairs[0].shape[1])

    @jax.jit
    def run(state: Any, pairs: Any) -> Any:
        def update(state: Any, pair: Any) -> Any:
            result = learner.update(state, *pair)
            return result.state, result.metrics

        return jax.lax.scan(update, state, pairs)

    return lambda: jax.block_until_ready(run(state, pairs))


def rows(bench: Bench) -> Iterator[Row]:
    dataset, steps = str(bench.dataset("abrupt", bench.count(OURS, 140_000))), bench.count(THEIRS, 500)
    for optimizer, goal in GOALS.items():
        found: dict[str, tuple[Time, Time]] = {}
        run = str(bench.folder / "run")
        with bench.worker(from_disk, dataset=dataset, run=run, optimizer=optimizer) as disk:
            for name, update in (("the formulas in `jnp`", formulas), ("`learner.update`", own_update)):
                with bench.worker(update, dataset=dataset, steps=steps, optimizer=optimizer) as scan:
                    ours, theirs = bench.in_turn(disk, scan)
                found[name] = ours, per(theirs, steps)
        fastest = min(found, key=lambda name: found[name][1].wall)
        for name, (ours, theirs) in found.items():
            yield Row(
                GOAL,
                f"`learn --optimizer {optimizer}` from disk, steady state, per step",
                f"`lax.scan` over {name}, default flags",
                ours.wall,
                theirs.wall,
                goal if OLD and name == fastest else None,
                faster=True,
                unit="µs",
                scale=1e6,
                cpu=(ours.cpu, theirs.cpu),
            )
