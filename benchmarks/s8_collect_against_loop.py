"""S8: collecting CartPole steps with the random policy, against a loop that asks JAX at every step.

The loop does what the order of draws says, one step at a time: split a key, draw an action, make a `jnp` array.
"""

from __future__ import annotations

import time
from statistics import median

import gymnasium
import jax
import jax.numpy as jnp

from alberta_data.environments.collection import collect_blocks
from alberta_data.environments.parameters import EnvironmentStream

OURS, THEIRS = 40_000, 1_000


def collect() -> None:
    for _ in collect_blocks(EnvironmentStream("CartPole-v1"), 0, OURS):
        pass


def loop() -> None:
    env, episode, rng = gymnasium.make("CartPole-v1"), 0, jax.random.key(0, impl="threefry2x32")
    seen, _ = env.reset(seed=episode)
    rows = []
    for _ in range(THEIRS):
        rng, k = jax.random.split(rng, 2)
        action = int(jax.random.randint(k, (), 0, 2))
        observation = jnp.array([*seen, action], jnp.float32)
        seen, reward, terminated, truncated, _ = env.step(action)
        rows.append((observation, jnp.array([reward], jnp.float32)))
        if terminated or truncated:
            episode += 1
            seen, _ = env.reset(seed=episode)


def main() -> None:
    times: dict[str, list[float]] = {"collect": [], "loop": []}
    for round_ in range(6):
        for name, run, steps in (("collect", collect, OURS), ("loop", loop, THEIRS)):
            start = time.perf_counter()
            run()
            if round_:  # the first one compiles
                times[name].append((time.perf_counter() - start) / steps)
    ours, theirs = median(times["collect"]), median(times["loop"])
    print(f"S8 collect {ours * 1e6:.2f} µs a step, loop {theirs * 1e6:.1f}: {theirs / ours:.0f} times faster (goal 40)")


if __name__ == "__main__":
    main()
