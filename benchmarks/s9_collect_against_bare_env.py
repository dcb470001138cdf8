"""S9: collecting 1e5 CartPole steps with the random policy, against a bare loop of `env.step`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.measuring import Bench, Row, per, power
from benchmarks.s8_collect_against_loop import collect

GOAL = "S9"
STEPS = 100_000


def bare(steps: int) -> Callable[[], None]:
    import gymnasium

    from alberta_data.environments.policies import RandomPolicy

    actions = RandomPolicy(gymnasium.make("CartPole-v1").action_space, 0).take(steps).tolist()

    def run() -> None:
        env, episode = gymnasium.make("CartPole-v1"), 0
        env.reset(seed=episode)
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                episode += 1
                env.reset(seed=episode)

    return run


def rows(bench: Bench) -> Iterator[Row]:
    steps = bench.count(STEPS, 100)
    with bench.worker(collect, steps=steps) as collected, bench.worker(bare, steps=steps) as stepped:
        ours, theirs = bench.in_turn(collected, stepped)
    ours, theirs = per(ours, steps), per(theirs, steps)
    yield Row(
        GOAL,
        f"collecting {power(steps)} CartPole steps, random policy, per step",
        "a bare loop of `env.step`, actions drawn beforehand",
        ours.wall,
        theirs.wall,
        1.4,
        unit="µs",
        scale=1e6,
        cpu=(ours.cpu, theirs.cpu),
    )
