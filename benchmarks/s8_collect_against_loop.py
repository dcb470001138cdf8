"""S8: collecting CartPole steps with the random policy, against a loop that asks JAX at every step.

The loop does what the order of draws says, one step at a time: split a key, draw an action, make a `jnp` array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.measuring import Bench, Row, per

GOAL = "S8"
OURS, THEIRS = 40_000, 1_000


def collect(steps: int) -> Callable[[], None]:
    from alberta_data.environments.collection import collect_blocks
    from alberta_data.environments.parameters import EnvironmentStream

    def run() -> None:
        for _ in collect_blocks(EnvironmentStream("CartPole-v1"), 0, steps):
            pass

    return run


def loop(steps: int) -> Callable[[], None]:
    import gymnasium
    import jax
    import jax.numpy as jnp

    def run() -> None:
        env, episode, rng = gymnasium.make("CartPole-v1"), 0, jax.random.key(0, impl="threefry2x32")
        seen, _ = env.reset(seed=episode)
        rows = []
        for _ in range(steps):
            rng, k = jax.random.split(rng, 2)
            action = int(jax.random.randint(k, (), 0, 2))
            observation = jnp.array([*seen, action], jnp.float32)
            seen, reward, terminated, truncated, _ = env.step(action)
            rows.append((observation, jnp.array([reward], jnp.float32)))
            if terminated or truncated:
                episode += 1
                seen, _ = env.reset(seed=episode)

    return run


def rows(bench: Bench) -> Iterator[Row]:
    mine, other = bench.count(OURS, 100), bench.count(THEIRS, 10)
    with bench.worker(collect, steps=mine) as fast, bench.worker(loop, steps=other) as slow:
        ours, theirs = bench.in_turn(fast, slow)
    ours, theirs = per(ours, mine), per(theirs, other)
    yield Row(
        GOAL,
        "collecting CartPole, random policy, per step",
        "a loop that splits a key, draws, and makes a `jnp` array a step",
        ours.wall,
        theirs.wall,
        40,
        faster=True,
        unit="µs",
        scale=1e6,
        cpu=(ours.cpu, theirs.cpu),
    )
