"""Policies: the published order of draws, and what is refused."""

import subprocess
import sys

import jax
import numpy as np
import pytest
from gymnasium import spaces

from alberta_data.environments.ahead import chain, chain_without_jax
from alberta_data.environments.policies import (
    ConstantPolicy,
    EpsilonGreedyPolicy,
    RandomPolicy,
    make_epsilon_greedy_policy,
    make_policy,
    make_random_policy,
)
from alberta_data.environments.policy_text import parse_policy
from alberta_data.errors import ArgumentError, UnavailableError


class Env:
    def __init__(self, action_space):
        self.action_space = action_space


@pytest.fixture(autouse=True)
def _published_keys():
    with jax.threefry_partitionable(True):
        yield


def published_draw(space, k):
    """One action, as streams.md orders it, through jax.random."""
    if isinstance(space, spaces.Discrete):
        return int(jax.random.randint(k, (), 0, int(space.n))) + int(space.start)
    if isinstance(space, spaces.Box):
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
        return np.asarray(jax.random.uniform(k, space.shape, np.float32, low, high))
    draws = [
        int(jax.random.randint(jax.random.fold_in(k, i), (), 0, int(n))) for i, n in enumerate(space.nvec.reshape(-1))
    ]
    return np.array(draws).reshape(space.shape) + space.start


def published_random(space, seed, n):
    rng, actions = jax.random.key(seed, impl="threefry2x32"), []
    for _ in range(n):
        rng, k = jax.random.split(rng, 2)
        actions.append(published_draw(space, k))
    return np.array(actions)


SPACES = [
    spaces.Discrete(2),
    spaces.Discrete(6, start=-3),
    spaces.Box(-2.0, 2.0, (1,), np.float32),
    spaces.Box(np.array([-1.0, 0.1, -7.7]), np.array([1.0, 0.3, 1e6]), dtype=np.float64),
    spaces.Box(0.1, 0.7, (2, 2), np.float32),
    spaces.MultiDiscrete([2, 3, 7]),
    spaces.MultiDiscrete([[2, 3], [5, 2]], start=[[0, 1], [2, -3]]),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_random_actions_are_the_published_ones_called_or_taken(space):
    expected = published_random(space, 7, 40)
    called, taken = make_random_policy(Env(space), 7), make_random_policy(Env(space), 7)
    assert np.array_equal([called(None) for _ in range(40)], expected)
    assert np.array_equal(np.concatenate([taken.take(n) for n in (1, 0, 25, 14)]), expected)


def test_actions_have_the_type_the_environment_takes():
    assert type(RandomPolicy(spaces.Discrete(2))(None)) is int
    assert RandomPolicy(spaces.Box(-1.0, 1.0, (1,), np.float64))(None).dtype == np.float32
    assert RandomPolicy(spaces.MultiDiscrete([2, 2]))(None).dtype == np.int64


def test_what_is_drawn_ahead_never_shows():
    space = spaces.Discrete(5)
    whole = RandomPolicy(space, 3).take(10_000)
    pieces = RandomPolicy(space, 3)
    assert np.array_equal(np.concatenate([pieces.take(n) for n in (4095, 1, 2, 4097, 1805)]), whole)
    resumed = RandomPolicy(space, 99)
    halfway = RandomPolicy(space, 3)
    halfway.take(5000)
    resumed.restore(halfway.state())
    assert np.array_equal(resumed.take(5000), whole[5000:])


@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_epsilon_greedy_is_the_published_one(seed):
    space, n, epsilon = spaces.Discrete(4), 60, 0.3
    rng = jax.random.key(np.uint32(seed), impl="threefry2x32")
    inside = iter(published_random(space, (seed + 1) % 2**32, n))
    expected = []
    for _ in range(n):
        rng, k = jax.random.split(rng, 2)
        expected.append(next(inside) if jax.random.uniform(k) < epsilon else 2)
    seen = []
    policy = make_epsilon_greedy_policy(lambda x: seen.append(x) or 2, Env(space), epsilon, seed)
    assert [policy(i) for i in range(n)] == expected
    assert not hasattr(policy, "take")
    assert len(seen) < n
    from_text = make_policy("epsilon:0.3:2", space, seed)
    assert from_text.take(n).tolist() == expected


def test_epsilon_greedy_goes_on_from_its_state():
    space = spaces.MultiDiscrete([3, 4])
    whole = make_policy("epsilon:0.5:1,2", space, 5)
    expected = whole.take(300)
    first, second = make_policy("epsilon:0.5:1,2", space, 5), make_policy("epsilon:0.5:1,2", space, 8)
    assert np.array_equal(first.take(120), expected[:120])
    second.restore(first.state())
    assert np.array_equal([second(None) for _ in range(180)], expected[120:])


def test_epsilon_zero_is_the_base_and_one_is_random():
    space = spaces.Discrete(3)
    assert set(make_policy("epsilon:0:2", space, 1).take(50).tolist()) == {2}
    assert np.array_equal(make_policy("epsilon:1:2", space, 1).take(50), RandomPolicy(space, 2).take(50))


@pytest.mark.parametrize(
    ("space", "text", "action"),
    [
        (spaces.Discrete(3, start=1), "constant:3", 3),
        (spaces.Box(-2.0, 2.0, (1,)), "constant:0.5", [0.5]),
        (spaces.Box(-2.0, 2.0, (2,)), "constant:1", [1, 1]),
        (spaces.Box(-2.0, 2.0, (2,)), "constant:1,-0.5", [1, -0.5]),
        (spaces.MultiDiscrete([2, 2]), "constant:1,0", [1, 0]),
        (spaces.MultiBinary(2), "constant:1,0", [1, 0]),
    ],
    ids=str,
)
def test_a_constant_policy_repeats_its_action(space, text, action):
    policy = make_policy(text, space)
    assert np.array_equal(policy(None), action)
    assert np.array_equal(policy.take(2), [action, action])


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (spaces.Discrete(3), "constant:3"),
        (spaces.Discrete(3), "constant:0.5"),
        (spaces.Discrete(3), "constant:0,1"),
        (spaces.Box(-2.0, 2.0, (1,)), "constant:5"),
        (spaces.MultiDiscrete([2, 2]), "epsilon:0.1:2,0"),
    ],
    ids=str,
)
def test_a_constant_outside_the_action_space_is_refused(space, text):
    with pytest.raises(ArgumentError, match="action must"):
        make_policy(text, space)


NO_POLICY = """rand random:1 constant constant: constant:x constant:nan constant:inf constant:1:2
    epsilon epsilon:0.1 epsilon:nan:1 epsilon:2:1 epsilon:-0.1:1 epsilon:x:1 epsilon:0.1:nan"""


@pytest.mark.parametrize("text", ["", *NO_POLICY.split()])
def test_a_policy_that_is_none_is_refused_with_the_option_named(text):
    with pytest.raises(ArgumentError, match=r"^policy"):
        parse_policy(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("random", "random"),
        ("constant:01", "constant:1"),
        ("constant:1e0,-0.0", "constant:1.0,0.0"),
        ("epsilon:.10:2", "epsilon:0.1:2"),
        ("epsilon:-0:2", "epsilon:0.0:2"),
        ("epsilon:1:2", "epsilon:1.0:2"),
    ],
)
def test_one_policy_has_one_text(text, canonical):
    assert str(parse_policy(text)) == canonical
    assert str(parse_policy(canonical)) == canonical


@pytest.mark.parametrize("epsilon", [-0.1, 1.5, float("nan")])
def test_epsilon_is_a_share(epsilon):
    with pytest.raises(ArgumentError, match="epsilon must be from 0 to 1"):
        make_epsilon_greedy_policy(lambda x: 0, Env(spaces.Discrete(2)), epsilon)


UNDRAWABLE = [
    spaces.Box(-np.inf, np.inf, (2,)),
    spaces.Box(0, np.inf, (2,)),
    spaces.Box(-3e38, 3e38, (2,)),
    spaces.MultiBinary(3),
    spaces.Tuple((spaces.Discrete(2),)),
    spaces.Dict({"a": spaces.Discrete(2)}),
    spaces.Discrete(2**31),
]


@pytest.mark.parametrize("space", UNDRAWABLE, ids=str)
def test_an_action_space_without_a_random_policy_is_refused(space):
    with pytest.raises(ValueError, match=r"^Unsupported action space: "):
        make_random_policy(Env(space))


def test_action_scale_stands_in_for_an_infinite_bound():
    space = spaces.Box(np.array([-np.inf, 0.0], np.float32), np.array([np.inf, np.inf], np.float32))
    scaled = RandomPolicy(space, 4, action_scale=3.0).take(1000)
    bounded = spaces.Box(np.array([-3.0, 0.0], np.float32), np.array([3.0, 3.0], np.float32))
    assert np.array_equal(scaled, RandomPolicy(bounded, 4).take(1000))
    with pytest.raises(ArgumentError, match="action_scale must reach"):
        RandomPolicy(spaces.Box(5.0, np.inf, (1,)), action_scale=1.0)


def test_a_function_is_its_own_policy_and_a_recorded_one_cannot_be_made():
    def policy(x):
        return 0

    assert make_policy(policy, spaces.Discrete(2)) is policy
    with pytest.raises(UnavailableError, match=r"my\.module\.function"):
        make_policy("custom:my.module.function", spaces.Discrete(2))


FORKED = """
import os, signal, sys
import jax.numpy as jnp
jnp.arange(5).sum().block_until_ready()
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(30)
from gymnasium import spaces
from alberta_data.environments.ahead import chain, chain_without_jax
from alberta_data.environments.policies import RandomPolicy
print(RandomPolicy(spaces.Discrete(5), 3).take(5000).sum(), flush=True)
os._exit(0)
"""


def test_a_process_forked_after_jax_has_started_draws_the_same():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert int(done.stdout) == RandomPolicy(spaces.Discrete(5), 3).take(5000).sum()


def test_the_chain_without_jax_is_the_compiled_one():
    words = np.array([123, 2**32 - 5], np.uint32)
    assert np.array_equal(chain_without_jax(words, 50), chain(words, 50))


def test_policies_touch_no_global_random_state():
    before = np.random.get_state()[1].copy()
    make_policy("epsilon:0.5:0", spaces.Discrete(2)).take(100)
    assert np.array_equal(np.random.get_state()[1], before)


def test_the_pieces_are_public_types():
    space = spaces.Discrete(2)
    assert isinstance(make_policy(None, space), RandomPolicy)
    assert isinstance(make_policy("constant:1", space), ConstantPolicy)
    assert isinstance(make_policy("epsilon:0.1:1", space), EpsilonGreedyPolicy)
