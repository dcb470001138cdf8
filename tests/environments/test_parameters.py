"""What a spec holds of an environment, and what a stranger's may not do."""

import json
import subprocess
import sys

import pytest

from alberta_data.environments.making import call_text, check_stranger, make_environment, versions
from alberta_data.environments.parameters import EnvironmentStream, PredictionMode
from alberta_data.errors import ArgumentError, RefusedError, UnavailableError

FULL = EnvironmentStream(
    "CartPole-v1",
    {"max_episode_steps": 1e2, "sutton_barto_reward": True},
    ("TimeAwareObservation",),
    "epsilon:.1:1",
    PredictionMode.VALUE,
    False,
    0.5,
    "one-hot",
    2,
)


def test_the_spec_of_an_environment():
    assert FULL.spec(3, 1000) == {
        "kind": "environment",
        "stream": "CartPole-v1",
        "version": 1,
        "parameters": {
            "env_args": {"max_episode_steps": 100, "sutton_barto_reward": True},
            "wrappers": ["TimeAwareObservation"],
            "policy": "epsilon:0.1:1",
            "mode": "value",
            "include_action_in_features": False,
            "gamma": 0.5,
            "flatten": "one-hot",
            "action_scale": 2.0,
        },
        "prng": "threefry2x32/partitionable",
        "seed": 3,
        "steps": 1000,
    }


@pytest.mark.parametrize("parameters", [FULL, *map(EnvironmentStream, ("CartPole-v1", "m:Name-v0"))], ids=str)
def test_a_spec_gives_back_its_parameters(parameters):
    spec = json.loads(json.dumps(parameters.spec(0, 10)))
    assert EnvironmentStream.from_spec(spec) == parameters
    assert hash(EnvironmentStream.from_spec(spec)) == hash(parameters)
    assert EnvironmentStream.from_spec(spec).spec(0, 10) == spec


def policy_of_ones_own(x):
    return 0


def test_a_function_is_recorded_by_name():
    parameters = EnvironmentStream("CartPole-v1", policy=policy_of_ones_own)
    spec = parameters.spec(0, 10)
    assert spec["parameters"]["policy"] == f"custom:{__name__}.policy_of_ones_own"
    recorded = EnvironmentStream.from_spec(spec)
    with pytest.raises(UnavailableError, match="policy_of_ones_own"):
        check_stranger(recorded)
    with pytest.raises(UnavailableError, match="policy_of_ones_own"):
        check_stranger(parameters)


OUT_OF_RANGE = {
    "gamma": [float("nan"), 1.5, -0.1, "x"],
    "mode": ["rewards", None],
    "policy": ["epsilon:nan:1", "epsilon:2:1", "epsilon:-0.1:1", "x", 3],
    "flatten": ["flat"],
    "action_scale": [0, float("inf"), float("nan")],
    "env_args": [{"x": [1]}, {"x": float("nan")}, {"x": 2**53}, {"a b": 1}],
    "wrappers": ["Time", ["a.b"]],
    "include_action_in_features": [1],
    "env_id": ["", "a b", "a:b:c", 3],
}


@pytest.mark.parametrize(("field", "value"), [(f, v) for f, values in OUT_OF_RANGE.items() for v in values], ids=str)
def test_a_field_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(ArgumentError, match=rf"^{field}"):
        EnvironmentStream(**{"env_id": "CartPole-v1", field: value})


@pytest.mark.parametrize(("seed", "steps"), [(-1, 5), (2**32, 5), (0, 0), (0, 1.5), (0, 2**53), (0, True)])
def test_seed_and_steps_are_checked(seed, steps):
    with pytest.raises(ArgumentError, match=r"^(seed|steps) must"):
        EnvironmentStream("CartPole-v1").spec(seed, steps)


def test_a_spec_with_other_fields_is_refused():
    spec = FULL.spec(0, 5)
    for change in (
        {"kind": "stream"},
        {"stream": {"entry_point": "os:system"}},
        {"parameters": {**spec["parameters"], "entry_point": "os:system"}},
        {"parameters": {**spec["parameters"], "policy": "epsilon:0.10:1"}},
        {"parameters": {**spec["parameters"], "env_args": {"x": {"entry_point": "os:system"}}}},
        {"parameters": None},
    ):
        with pytest.raises(ArgumentError):
            EnvironmentStream.from_spec({**spec, **change})


def test_parameters_are_read_without_gymnasium_and_jax():
    code = (
        "import sys; from alberta_data.environments.parameters import EnvironmentStream as E;"
        "import alberta_data.environments.features; E('CartPole-v1').spec(0, 5);"
        "print([m for m in ('gymnasium', 'jax', 'jax.numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A module beside the dataset that leaves a file when it is imported."""
    (tmp_path / "canary.py").write_text(
        "from pathlib import Path\nimport gymnasium\n"
        f"Path({str(tmp_path)!r}, 'sang').touch()\n"
        "gymnasium.register('X-v0', 'gymnasium.envs.classic_control:CartPoleEnv')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "sang"
    import gymnasium

    gymnasium.registry.pop("X-v0", None)
    sys.modules.pop("canary", None)


def test_an_id_with_a_module_imports_nothing_unless_it_is_named(canary):
    parameters = EnvironmentStream.from_spec(EnvironmentStream("canary:X-v0").spec(0, 5))
    assert call_text(parameters) == "gymnasium.make('canary:X-v0')"
    with pytest.raises(RefusedError, match="--allow-import canary"):
        check_stranger(parameters)
    with pytest.raises(RefusedError, match="canary"):
        make_environment(parameters)
    with pytest.raises(RefusedError, match="canary"):
        make_environment(parameters, allow_import=["json"])
    assert not canary.exists()
    check_stranger(parameters, ["canary"])
    make_environment(parameters, ["canary"]).close()
    assert canary.exists()


@pytest.mark.parametrize(
    ("env_id", "arguments"),
    [
        ("GymV21Environment-v0", {"env_id": "X-v0"}),
        ("GymV26Environment-v0", {"env_id": "canary:X-v0"}),
        ("Ant-v5", {"xml_file": "/etc/passwd"}),
        ("Ant-v5", {"xml_file": "..\\x.xml"}),
    ],
)
def test_a_strangers_arguments_name_no_file_and_no_module(env_id, arguments):
    with pytest.raises(RefusedError):
        check_stranger(EnvironmentStream(env_id, arguments))


def test_what_cannot_be_made_again_here_says_so():
    check_stranger(EnvironmentStream("CartPole-v1", {"max_episode_steps": 5}))
    with pytest.raises(UnavailableError, match=r"NoSuch-v0.*--allow-import"):
        check_stranger(EnvironmentStream("NoSuch-v0"))
    spec = FULL.spec(0, 5)
    for change in ({"version": 2}, {"prng": "rbg"}):
        with pytest.raises(UnavailableError, match="take the release that made it"):
            EnvironmentStream.from_spec({**spec, **change})


def test_what_gymnasium_does_not_have_is_refused_with_what_it_has():
    with pytest.raises(ArgumentError, match="did you mean CartPole-v"):
        make_environment(EnvironmentStream("CartPole"))
    with pytest.raises(ArgumentError, match="registered"):
        make_environment(EnvironmentStream("os-system-v0"))
    with pytest.raises(ArgumentError, match=r"did you mean .*TimeAwareObservation"):
        make_environment(EnvironmentStream("CartPole-v1", wrappers=("TimeAware",)))
    with pytest.raises(ArgumentError, match="Autoreset"):
        make_environment(EnvironmentStream("CartPole-v1", wrappers=("Autoreset",)))
    with pytest.raises(ArgumentError, match="RescaleObservation"):
        make_environment(EnvironmentStream("CartPole-v1", wrappers=("RescaleObservation",)))
    with pytest.raises(ArgumentError, match="no_such"):
        make_environment(EnvironmentStream("CartPole-v1", {"no_such": 1}))
    with pytest.raises(ArgumentError, match="'id'"):
        make_environment(EnvironmentStream("CartPole-v1", {"id": "Pendulum-v1"}))
    with pytest.raises(UnavailableError, match="not installed"):
        make_environment(EnvironmentStream("CarRacing-v3"))


def test_the_call_that_will_be_made_can_be_shown():
    expected = (
        "gymnasium.wrappers.TimeAwareObservation("
        "gymnasium.make('CartPole-v1', max_episode_steps=100, sutton_barto_reward=True))"
    )
    assert call_text(FULL) == expected


def test_versions_name_gymnasium():
    import gymnasium

    assert versions(EnvironmentStream("CartPole-v1"))["gymnasium"] == gymnasium.__version__
