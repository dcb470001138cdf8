import dataclasses
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alberta_data.errors import ArgumentError
from alberta_data.learners import (
    IDBD,
    LMS,
    NORMALIZERS,
    OPTIMIZERS,
    Autostep,
    EMANormalizer,
    LinearLearner,
    NormalizedLinearLearner,
    OnlineNormalizer,
    WelfordNormalizer,
    find_normalizer,
    find_optimizer,
    learner_from_json,
)

RULES = [*OPTIMIZERS.values(), *(kind for kind in NORMALIZERS.values() if kind is not None)]
FIELDS = [(rule, field.name) for rule in RULES for field in dataclasses.fields(rule)]
BAD = [float("nan"), float("inf"), -float("inf"), 1e39, 1e-46, 1e-39, -1.0, "0.1", True, None, 10**400]


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize(("rule", "name"), FIELDS, ids=lambda value: getattr(value, "__name__", value))
def test_a_bad_parameter_is_refused_by_its_name_and_value(rule, name, bad):
    with pytest.raises(ArgumentError, match=name) as found:
        rule(**{name: bad})
    assert "\n" not in str(found.value)


def test_a_step_size_of_zero_is_refused_and_a_meta_step_size_of_zero_is_not():
    for rule, name in ((LMS, "step_size"), (IDBD, "initial_step_size"), (Autostep, "initial_step_size")):
        with pytest.raises(ArgumentError, match=name):
            rule(**{name: 0.0})
    assert IDBD(meta_step_size=0).meta_step_size == 0.0


def test_equal_parameters_are_equal_and_hash_alike():
    assert LMS(1) == LMS(1.0)
    assert hash(LMS(1)) == hash(LMS(1.0))
    assert LinearLearner(IDBD(), OnlineNormalizer()) == LinearLearner(IDBD(), EMANormalizer())
    assert LinearLearner(IDBD(0.1)) != LinearLearner(IDBD(0.2))
    assert len({LinearLearner(LMS()), LinearLearner(LMS()), LinearLearner(LMS(), WelfordNormalizer())}) == 2


def test_every_parameter_carries_its_help():
    assert all(field.metadata["help"] for rule in RULES for field in dataclasses.fields(rule))


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(ArgumentError, match="optimizer must be one of lms, idbd, autostep, got 'adam'"):
        find_optimizer("adam")
    with pytest.raises(ArgumentError, match="none, ema, welford"):
        find_normalizer("batch")


@given(
    st.sampled_from([*OPTIMIZERS.values()]),
    st.sampled_from([None, OnlineNormalizer(), OnlineNormalizer(1e-4, 0.5), WelfordNormalizer(1e-3)]),
    st.floats(1e-30, 1e30),
)
def test_json_gives_back_the_same_learner(optimizer, normalizer, value):
    first = dataclasses.fields(optimizer)[0].name
    learner = LinearLearner(optimizer(**{first: value}), normalizer)
    assert learner_from_json(learner.to_json()) == learner


@pytest.mark.parametrize(
    "change",
    [
        {"type": "deep"},
        {"optimizer": None},
        {"optimizer": {"type": "adam"}},
        {"optimizer": {"type": "lms"}},
        {"optimizer": {"type": "lms", "step_size": "nan"}},
        {"optimizer": {"type": "lms", "step_size": 0.1, "tau": 1}},
        {"normalizer": {"type": "none", "epsilon": 1}},
        {"surplus": 1},
    ],
    ids=repr,
)
def test_json_that_is_not_a_learner_is_refused(change):
    with pytest.raises(ArgumentError):
        learner_from_json({**LinearLearner().to_json(), **change})


def test_parts_of_another_kind_are_refused():
    with pytest.raises(ArgumentError, match="optimizer"):
        LinearLearner(OnlineNormalizer())
    with pytest.raises(ArgumentError, match="normalizer"):
        LinearLearner(LMS(), LMS())
    with pytest.raises(ArgumentError, match="normalizer"):
        NormalizedLinearLearner(LMS(), None)


def test_reading_parameters_starts_no_jax():
    code = "import sys, alberta_data.learners as l; l.LinearLearner(l.IDBD()).to_json(); print('jax' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
