"""What is collected, and that it does not depend on the way."""

import copy
import tracemalloc

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from alberta_data.environments import collection as collection_module
from alberta_data.environments.collection import Collection, Collector, collect_blocks
from alberta_data.environments.parameters import EnvironmentStream
from alberta_data.errors import ArgumentError, UnavailableError

from .small import Counting


def gathered(parameters, seed, steps, block_steps=2**14):
    """All blocks in one: name → rows."""
    got = list(collect_blocks(parameters, seed, steps, block_steps))
    rows = {name: np.concatenate([c.block.arrays[name] for c in got]) for name in got[0].block.arrays}
    return {**rows, "final_observations": np.concatenate([c.final_observations for c in got])}


def by_hand(parameters, actions, seed):
    """The same rows from a plain loop over the environment."""
    env, episode = gymnasium.make(parameters.env_id, **parameters.env_args), 0
    keys = ("observations", "rewards", "terminated", "truncated", "episode_start", "final_observations")
    rows = {key: [] for key in keys}
    seen = None
    for action in actions:
        rows["episode_start"].append(seen is None)
        if seen is None:
            seen, _ = env.reset(seed=seed + episode)
        rows["observations"].append(copy.copy(seen))
        seen, reward, terminated, truncated, _ = env.step(action)
        for key, value in zip(keys[1:4], (reward, terminated, truncated), strict=True):
            rows[key].append(value)
        if terminated or truncated:
            rows["final_observations"].append(copy.copy(seen))
            seen, episode = None, episode + 1
    if seen is not None:
        rows["final_observations"].append(seen)
    return rows


CASES = [
    EnvironmentStream("CartPole-v1"),
    EnvironmentStream("MountainCarContinuous-v0"),
    EnvironmentStream("Pendulum-v1", {"g": 9.81}),
    EnvironmentStream("Acrobot-v1"),
    EnvironmentStream("FrozenLake-v1", {"is_slippery": True, "map_name": "8x8"}),
    EnvironmentStream("Taxi-v4"),
    EnvironmentStream("CliffWalking-v1", {"max_episode_steps": 40}),
    EnvironmentStream("Blackjack-v1", flatten="one-hot"),
    EnvironmentStream("alberta-test/Image-v0"),
    EnvironmentStream("alberta-test/Reusing-v0"),
    EnvironmentStream("alberta-test/Spaces-v0", {"sees": "dict", "does": "components"}, flatten="one-hot"),
    EnvironmentStream("alberta-test/Spaces-v0", {"sees": "multi", "does": "shifted"}, mode="next_state"),
    EnvironmentStream("alberta-test/Spaces-v0", {"sees": "discrete", "does": "unbounded"}, action_scale=2),
    EnvironmentStream("CartPole-v1", {"max_episode_steps": 12}, policy="epsilon:0.3:1"),
    EnvironmentStream("CartPole-v1", {"max_episode_steps": 15}, wrappers=("RecordEpisodeStatistics",)),
    EnvironmentStream("alberta-test/Counting-v0", {"max_episode_steps": 3, "length": 3}),
    EnvironmentStream("Pendulum-v1", policy="constant:0.5", mode="value"),
]


@pytest.mark.parametrize("parameters", CASES, ids=lambda p: f"{p.env_id}-{p.policy}")
def test_what_is_stored_is_what_the_environment_gave(parameters):
    opened = Collection(parameters, 3)
    rows = gathered(parameters, 3, 230)
    assert {name: (array.dtype, array.shape[1:]) for name, array in rows.items()} == {
        name: (form.dtype, () if form.columns is None else (len(form.columns),)) for name, form in opened.arrays.items()
    }
    codec = opened.collector().codec
    actions = [codec.from_row(row, parameters.flatten) for row in rows["actions"]]
    space = gymnasium.make(parameters.env_id, **parameters.env_args).observation_space
    for name, expected in by_hand(parameters, actions, 3).items():
        if name.endswith("observations"):
            flat = spaces.flatten if parameters.flatten == "one-hot" else lambda _, x: np.reshape(x, -1)
            expected = [flat(space, value) for value in expected]
        assert np.array_equal(rows[name], expected), name


@pytest.mark.parametrize("parameters", CASES, ids=lambda p: f"{p.env_id}-{p.policy}")
def test_the_block_length_does_not_show(parameters):
    whole = gathered(parameters, 1, 100)
    for block_steps in (1, 7):
        pieces = gathered(parameters, 1, 100, block_steps)
        assert {k: v.tobytes() for k, v in pieces.items()} == {k: v.tobytes() for k, v in whole.items()}


def test_twice_is_the_same_and_another_seed_is_another():
    before = np.random.get_state()[1].copy()
    first, again, other = (gathered(CASES[0], seed, 200)["observations"].tobytes() for seed in (4, 4, 5))
    assert first == again != other
    assert np.array_equal(np.random.get_state()[1], before)


def test_no_row_is_made_by_a_reset():
    rows = gathered(EnvironmentStream("alberta-test/Counting-v0", {"width": 1}, mode="next_state"), 0, 30)
    assert rows["observations"][:, 0].tolist() == [0, 1, 2] * 10
    assert rows["targets"][:, 0].tolist() == [1, 2, 3] * 10
    assert rows["episode_start"].tolist() == [True, False, False] * 10
    assert rows["terminated"].tolist() == [False, False, True] * 10
    assert not rows["truncated"].any()
    assert rows["final_observations"][:, 0].tolist() == [3] * 10


@pytest.mark.parametrize(("steps", "finals"), [(1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3]), (8, [3, 3, 2])])
def test_every_episode_has_a_final_observation_the_cut_one_too(steps, finals):
    for block_steps in (1, 2, 100):
        rows = gathered(EnvironmentStream("alberta-test/Counting-v0"), 0, steps, block_steps)
        assert rows["final_observations"][:, 0].tolist() == finals


def test_both_flags_are_stored():
    for ends, flags in (("terminated", (1, 0)), ("truncated", (0, 1)), ("both", (1, 1))):
        rows = gathered(EnvironmentStream("alberta-test/Counting-v0", {"ends": ends}), 0, 3)
        assert (rows["terminated"][-1], rows["truncated"][-1]) == flags


def test_images_stay_bytes_and_shorten_the_block():
    opened = Collection(EnvironmentStream("alberta-test/Image-v0", {"size": 64}))
    assert opened.arrays["observations"].dtype == np.uint8
    assert opened.block_steps(2**17) < 4096
    first = next(opened.blocks(10))
    assert first.block.observations.shape == (10, 64 * 64 * 3)


def test_columns_name_what_is_in_a_row():
    arrays = Collection(EnvironmentStream("CartPole-v1")).arrays
    assert arrays["observations"].columns == tuple(f"observation.{i}" for i in range(4))
    assert arrays["actions"].columns == ("action",)
    assert arrays["targets"].columns == ("reward",)
    assert arrays["final_observations"] == arrays["observations"]
    assert "targets" not in Collection(EnvironmentStream("CartPole-v1", mode="next_state")).arrays
    taxi = Collection(EnvironmentStream("Taxi-v4", mode="next_state"))
    assert taxi.arrays["targets"].columns == ("next_observation",)
    assert (taxi.feature_dim, taxi.target_dim) == (2, 1)


def test_blocks_end_at_every_checkpoint(monkeypatch):
    monkeypatch.setattr(collection_module, "CHECKPOINT_STEPS", 10)
    stops = [c.block.stop for c in collect_blocks(CASES[0], 0, 34, 7)]
    assert stops == [7, 10, 17, 20, 27, 30, 34]


def test_memory_does_not_grow_with_the_steps():
    peaks = []
    for steps in (10_000, 40_000):  # both beyond the 4096 actions drawn ahead
        parameters = EnvironmentStream("alberta-test/Counting-v0", {"width": 64, "length": 1000})
        blocks = collect_blocks(parameters, 0, steps, 500)
        next(blocks)
        tracemalloc.start()
        for _ in blocks:
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_an_environment_that_fails_is_told_in_one_line_with_the_step():
    with pytest.raises(UnavailableError, match="failed in the steps from 2: RuntimeError: the robot fell over"):
        gathered(EnvironmentStream("alberta-test/Failing-v0", {"length": 9}), 0, 8, 2)


@pytest.mark.parametrize(
    ("sees", "place"),
    [
        ("text", r"Text at observation\['say'\]"),
        ("sequence", r"Sequence at observation\['in'\]\[1\]"),
        ("graph", r"Graph at observation\['net'\]"),
    ],
)
@pytest.mark.parametrize("flatten", ["published", "one-hot"])
def test_what_has_no_fixed_width_is_refused_before_the_first_step(sees, place, flatten):
    with pytest.raises(ArgumentError, match=place):
        Collection(EnvironmentStream("alberta-test/Spaces-v0", {"sees": sees}, flatten=flatten))


def test_unbounded_actions_need_a_policy_or_a_scale():
    arguments = {"does": "unbounded"}
    with pytest.raises(ArgumentError, match="action_scale"):
        Collection(EnvironmentStream("alberta-test/Spaces-v0", arguments))
    rows = gathered(EnvironmentStream("alberta-test/Spaces-v0", arguments, policy="constant:7"), 0, 5)
    assert rows["actions"].tolist() == [[7.0, 7.0]] * 5
    rows = gathered(EnvironmentStream("alberta-test/Spaces-v0", arguments, action_scale=0.5), 0, 50)
    assert 0.3 < np.abs(rows["actions"]).max() <= 0.5


def test_any_function_is_a_policy():
    seen = []
    rows = gathered(EnvironmentStream("alberta-test/Image-v0", policy=lambda x: seen.append(x) or 2), 0, 5)
    assert rows["actions"].tolist() == [[2]] * 5
    assert np.array_equal(np.array(seen), rows["observations"].astype(np.float32))
    assert seen[0].dtype == np.float32


def test_wrappers_go_around_the_environment():
    parameters = EnvironmentStream("CartPole-v1", wrappers=("TimeAwareObservation",))
    assert Collection(parameters).feature_dim == 6


def test_the_second_pass_over_a_collection_is_like_the_first():
    opened = Collection(CASES[0], 2)
    first, second = (np.concatenate([c.block.observations for c in opened.blocks(50)]) for _ in range(2))
    assert np.array_equal(first, second)


def test_seeds_follow_from_the_seed():
    env = Counting(2)
    Collector(env, None, 40).collect(6)
    assert env.seeds == [40, 41, 42]
