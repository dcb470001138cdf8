"""What learning leaves: receipts, curves, final states.

request    what a run is asked to do
tally      windows, digests, every step's metrics
passing    one pass over the data
folder     a run's folder, whole or resumable
learning   learn, check_receipt, plan_learning
"""

from __future__ import annotations

from alberta_data.runs.folder import read_receipt
from alberta_data.runs.learning import LearningPlan, check_receipt, learn, plan_learning
from alberta_data.runs.request import Request
from alberta_data.runs.results import Before, Run, final_states, noise_floor, read_run

__all__ = [
    "Before",
    "LearningPlan",
    "Request",
    "Run",
    "check_receipt",
    "final_states",
    "learn",
    "noise_floor",
    "plan_learning",
    "read_receipt",
    "read_run",
]
