"""Collected blocks on disk and back, into a learner."""

import gymnasium
import numpy as np
import pytest

from alberta_data.environments.collection import Collection
from alberta_data.environments.features import transition_block, with_next_observations
from alberta_data.environments.gymnasium_stream import TDStream
from alberta_data.environments.parameters import EnvironmentStream
from alberta_data.learners.linear import LinearLearner
from alberta_data.learners.lms import LMS
from alberta_data.replay.collect import Everything, Learned
from alberta_data.store.layout import ArrayDeclaration
from alberta_data.store.reader import open_store
from alberta_data.store.writer import Writer

from .test_collection import gathered

STEPS = 500


def stored(path, parameters, seed, block_steps=100):
    opened = Collection(parameters, seed)
    declarations = [
        ArrayDeclaration(
            name,
            str(form.dtype),
            () if form.columns is None else (len(form.columns),),
            columns=form.columns,
            by_step=name != "final_observations",
        )
        for name, form in opened.arrays.items()
    ]
    spec = parameters.spec(seed, STEPS)
    with Writer.begin(path, spec, {}, declarations, checkpoint_state=opened.initial_state) as writer:
        for block, finals, state in opened.blocks(STEPS, block_steps):
            writer.append(block, state, {"final_observations": finals})
        writer.finish()
    return open_store(path)


@pytest.mark.parametrize(
    "parameters",
    [
        EnvironmentStream("CartPole-v1"),
        EnvironmentStream("Blackjack-v1", flatten="one-hot", policy="epsilon:0.5:1"),
        EnvironmentStream("alberta-test/Image-v0", mode="next_state"),
        EnvironmentStream("alberta-test/Counting-v0", {"reward": 0}),
    ],
    ids=lambda p: p.env_id,
)
def test_what_is_collected_is_what_is_read_back(tmp_path, parameters):
    store = stored(tmp_path / "a.zarr", parameters, 4)
    rows = gathered(parameters, 4, STEPS)
    assert set(store.root.arrays) == set(rows)
    for name, expected in rows.items():
        assert store.read(name).tobytes() == expected.tobytes()
        assert store.read(name).dtype == expected.dtype
    again = stored(tmp_path / "b.zarr", parameters, 4, block_steps=7)
    other = stored(tmp_path / "c.zarr", parameters, 5)
    assert store.root.id == again.root.id != other.root.id
    assert EnvironmentStream.from_spec(store.root.spec) == parameters


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("env_id", ["CartPole-v1", "alberta-test/Counting-v0"])
def test_td_on_stored_transitions_is_a_td_stream_loop_to_rounding(tmp_path, env_id, include):
    arguments = {} if env_id == "CartPole-v1" else {"ends": "truncated"}
    store = stored(tmp_path / "a.zarr", EnvironmentStream(env_id, arguments), 4)
    learner = LinearLearner(LMS(0.01))
    blocks = with_next_observations(store.blocks(block_steps=64), lambda a, b: store.read("final_observations", a, b))
    transitions = (transition_block(block, include) for block in blocks)
    state, metrics = Learned(learner, Everything(STEPS), gamma=0.9).over(transitions)
    stream = TDStream(gymnasium.make(env_id, **arguments), None, 0.9, include, 4)
    loop, errors = learner.init(stream.feature_dim), []
    stream.update_value_function(lambda x: learner.predict(loop, x))
    for _ in range(STEPS):
        step = next(stream)
        result = learner.update(loop, step.observation, step.target)
        loop = result.state
        errors.append(float(np.ravel(result.error)[0]))
    assert np.allclose(np.asarray(metrics)[:, 1], errors, rtol=1e-3, atol=1e-4)
    assert np.allclose(state.weights, loop.weights, rtol=1e-4, atol=1e-5)
