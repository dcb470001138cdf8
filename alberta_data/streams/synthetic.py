"""The synthetic streams under the module name of alberta_framework: a table of re-exports."""

from alberta_data.streams.abrupt import AbruptChangeState, AbruptChangeStream
from alberta_data.streams.base import ScanStream, TimeStep
from alberta_data.streams.cyclic import CyclicState, CyclicStream
from alberta_data.streams.dynamic_scale_shift import DynamicScaleShiftState, DynamicScaleShiftStream
from alberta_data.streams.periodic import PeriodicChangeState, PeriodicChangeStream
from alberta_data.streams.random_walk import RandomWalkState, RandomWalkStream
from alberta_data.streams.scale_drift import ScaleDriftState, ScaleDriftStream
from alberta_data.streams.scaled import ScaledStreamState, ScaledStreamWrapper, make_scale_range
from alberta_data.streams.sutton1 import SuttonExperiment1State, SuttonExperiment1Stream

RandomWalkTarget = RandomWalkStream
AbruptChangeTarget = AbruptChangeStream
CyclicTarget = CyclicStream
PeriodicChangeTarget = PeriodicChangeStream

__all__ = [
    "AbruptChangeState",
    "AbruptChangeStream",
    "AbruptChangeTarget",
    "CyclicState",
    "CyclicStream",
    "CyclicTarget",
    "DynamicScaleShiftState",
    "DynamicScaleShiftStream",
    "PeriodicChangeState",
    "PeriodicChangeStream",
    "PeriodicChangeTarget",
    "RandomWalkState",
    "RandomWalkStream",
    "RandomWalkTarget",
    "ScaleDriftState",
    "ScaleDriftStream",
    "ScaledStreamState",
    "ScaledStreamWrapper",
    "ScanStream",
    "SuttonExperiment1State",
    "SuttonExperiment1Stream",
    "TimeStep",
    "make_scale_range",
]
