"""The Gymnasium streams under the module name of alberta_framework: a table of re-exports."""

from alberta_data.environments.gymnasium_stream import (
    GymnasiumStream,
    TDStream,
    collect_trajectory,
    make_gymnasium_stream,
)
from alberta_data.environments.parameters import PredictionMode
from alberta_data.environments.policies import make_epsilon_greedy_policy, make_random_policy
from alberta_data.replay.trajectory import learn_from_trajectory, learn_from_trajectory_normalized

__all__ = [
    "GymnasiumStream",
    "PredictionMode",
    "TDStream",
    "collect_trajectory",
    "learn_from_trajectory",
    "learn_from_trajectory_normalized",
    "make_epsilon_greedy_policy",
    "make_gymnasium_stream",
    "make_random_policy",
]
