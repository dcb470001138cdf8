"""Every benchmark runs, at sizes at which its numbers mean nothing; what is compared does the same work. No times."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from alberta_data import generation
from alberta_data.learners import IDBD, LMS, Autostep, LinearLearner
from alberta_data.replay import learn_from_trajectory
from alberta_data.streams.registry import STREAMS
from benchmarks import (
    breakdown,
    growth,
    measuring,
    page,
    published_learners,
    published_streams,
    s2_generate_against_scan,
)
from benchmarks.__main__ import goals, main, measured
from benchmarks.learning import Ticks
from benchmarks.measuring import COLUMNS, Bench, Row

GOALS = [f"S{number}" for number in range(1, 11)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, tiny=True)


def test_every_goal_has_a_file() -> None:
    assert list(goals()) == GOALS


def test_every_goal_but_those_of_whole_streams_is_measured_in_rows_of_its_own(bench: Bench) -> None:
    quick = [goal for goal in GOALS if goal != "S2"]
    rows = list(measured(quick, bench))
    assert {row.goal_id for row in rows} == set(quick)
    assert all(row.ours > 0 and row.theirs > 0 and len(row.cells()) == len(COLUMNS) for row in rows)
    assert not list(bench.folder.glob("s*"))  # what was measured is removed again


def test_every_stream_has_a_row(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(s2_generate_against_scan.GOALS) == set(STREAMS) == set(published_streams.STREAMS)
    monkeypatch.setattr(s2_generate_against_scan, "GOALS", {"cyclic": 30})
    assert [row.work for row in measured(["S2"], bench)] == ["cyclic in memory, per step"]


@pytest.mark.parametrize("name", published_streams.STREAMS)
def test_the_published_formulas_draw_the_same_numbers(name: str) -> None:
    observations, targets = published_streams.scanned(name, 300)()
    stream = STREAMS[name]() if name == "sutton1" else STREAMS[name](feature_dim=20)
    ((block, _),) = generation.blocks(stream, 0, 300)
    tolerance = {"rtol": 5e-6} if name == "scale-drift" else {"rtol": 0, "atol": 0}
    np.testing.assert_allclose(observations, block.observations, **tolerance)
    np.testing.assert_allclose(targets, block.targets, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "optimizer"), [("lms", LMS()), ("idbd", IDBD(meta_step_size=0.001)), ("autostep", Autostep())]
)
def test_the_published_updates_learn_the_same(name: str, optimizer: LMS | IDBD | Autostep) -> None:
    ((block, _),) = generation.blocks(STREAMS["abrupt"](feature_dim=20), 0, 500)
    theirs = published_learners.scanned(name, block.observations, block.targets)()
    _, ours = learn_from_trajectory(LinearLearner(optimizer), block.observations, block.targets)
    np.testing.assert_allclose(theirs, ours, rtol=1e-3, atol=1e-3)


def test_a_row_holds_its_goal_in_the_right_direction() -> None:
    assert Row("S1", "", "", 7.0, 10.0, 0.7).met
    assert Row("S1", "", "", 7.1, 10.0, 0.7).met is False
    assert Row("S2", "", "", 1.0, 30.0, 30, faster=True).met
    assert Row("S2", "", "", 1.0, 29.0, 30, faster=True).met is False
    assert Row("S6", "", "", 1.2, 1.2, 1.1, limit=1.0).met is False
    assert Row("S4", "", "", 1.0, 1.0, None).met is None


def test_steady_state_is_from_the_first_block_to_the_last() -> None:
    ticks = Ticks()
    for done in (100, 200, 300):
        ticks(done, 300)
    assert 0 <= ticks.per_step().wall < 1e-3


def test_a_function_is_timed_in_a_process_of_its_own(tmp_path: Path) -> None:
    with Bench(tmp_path).worker(s2_generate_against_scan.ours, name="cyclic", steps=50) as worker:
        first, second = worker(), worker()
    assert min(first.wall, second.wall) > 0


def test_the_table_is_printed_and_kept_beside_the_rows_of_other_goals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = "<!-- goals -->\n\n### jax 0.1\n\nold\n\n<!-- /goals -->\nend\n"
    monkeypatch.setattr(page, "PAGE", tmp_path / "docs" / "performance.md")
    monkeypatch.setattr(page, "ROOT", tmp_path)
    page.PAGE.parent.mkdir()
    page.PAGE.write_text(there)
    page.put("goals", page.table(COLUMNS, [["S1", *["–"] * 7], ["S9", *["–"] * 7]]))
    assert main(["S9", "--tiny", "--write"]) == 0
    text = page.PAGE.read_text()
    assert "| S9 | collecting 1e2 CartPole steps" in capsys.readouterr().out
    assert text.index(f"### jax {page.RELEASE}") < text.index("| S1 | –") < text.index("| S9 | collecting")
    assert text.endswith("### jax 0.1\n\nold\n\n<!-- /goals -->\nend\n")


def test_a_goal_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["S99"])
    assert ended.value.code == 2
    assert "S99" in capsys.readouterr().err


def test_the_page_has_a_place_for_all_that_is_measured_and_a_row_for_every_goal() -> None:
    text = page.PAGE.read_text()
    for kind in ("goals", "breakdown", "growth"):
        assert f"<!-- {kind} -->\n" in text
        assert f"<!-- /{kind} -->\n" in text
    tables = page.read(text.split("<!-- goals -->\n")[1].split("<!-- /goals -->")[0])
    for release, table in tables.items():
        missing = [goal for goal in GOALS if f"| {goal} |" not in table]
        assert not missing, f"jax {release}"


def test_another_process_finds_a_function_of_the_module_that_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measuring.place_of(growth.generate) == "benchmarks.growth:generate"
    run = SimpleNamespace(__module__="__main__", __name__="generate")
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__spec__=SimpleNamespace(name="benchmarks.growth")))
    assert measuring.place_of(run) == "benchmarks.growth:generate"  # type: ignore[arg-type]


def test_growth_is_measured_and_drawn(bench: Bench) -> None:
    wide, long = growth.measured(bench)
    assert "| features |" in growth.tables(wide, long)
    assert growth.plot(wide, long).count("<circle") == len(wide) + len(long)


def test_the_breakdown_names_every_part(bench: Bench) -> None:
    dataset = bench.dataset("abrupt", 40_000)
    for name, shown, argument in (
        ("generate", breakdown.GENERATE, "40000"),
        ("learn", breakdown.LEARN, str(dataset)),
    ):
        spans = breakdown.in_child(bench, name, argument)
        assert set(shown) - set(spans) <= {"checkpoint"}  # so short a run keeps none
        lines = list(breakdown.lines({**spans, "process": [1.0, 1.0]}, shown, name))
        assert len(lines) == len(shown) + 3
