"""S9: collecting 1e5 CartPole steps with the random policy, against a bare loop of `env.step`."""

from __future__ import annotations

import time
from statistics import median

import gymnasium

from alberta_data.environments.collection import collect_blocks
from alberta_data.environments.parameters import EnvironmentStream
from alberta_data.environments.policies import RandomPolicy

STEPS = 100_000


def collect() -> None:
    for _ in collect_blocks(EnvironmentStream("CartPole-v1"), 0, STEPS):
        pass


def bare(actions: list[int]) -> None:
    env, episode = gymnasium.make("CartPole-v1"), 0
    env.reset(seed=episode)
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            episode += 1
            env.reset(seed=episode)


def main() -> None:
    actions = RandomPolicy(gymnasium.make("CartPole-v1").action_space, 0).take(STEPS).tolist()
    times: dict[str, list[float]] = {"collect": [], "bare": []}
    for round_ in range(6):
        for name, run in (("collect", collect), ("bare", lambda: bare(actions))):
            start = time.perf_counter()
            run()
            if round_:  # the first one compiles
                times[name].append(time.perf_counter() - start)
    ours, theirs = (median(times[name]) / STEPS * 1e6 for name in ("collect", "bare"))
    print(f"S9 collect {ours:.2f} µs a step, bare {theirs:.2f}: {ours / theirs:.2f} (goal 1.4)")


if __name__ == "__main__":
    main()
