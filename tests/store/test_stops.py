"""T1 and T4: the writer stopped, or failed by the disk, at each single operation."""

import shutil

import pytest

from alberta_data.errors import AlbertaDataError, StorageError
from alberta_data.store import open_store
from tests.store.damage import in_one_line
from tests.store.faults import failing_at, stopped_at
from tests.store.made import BARE, LEAFY, PACKED, SMALL

KINDS = ("ENOSPC", "EIO", "EACCES", "short")


class Fresh:
    """A dataset made where nothing is."""

    def __init__(self, recipe):
        self.recipe = recipe

    def prepare(self, folder):
        folder.mkdir()

    def work(self, folder):
        return self.recipe.write(folder / "d.zarr", decisive=("cpu",))


class Replaced(Fresh):
    """A dataset made in the place of another one."""

    def prepare(self, folder):
        folder.mkdir()
        self.recipe.but(seed=1).write(folder / "d.zarr")

    def work(self, folder):
        return self.recipe.write(folder / "d.zarr", overwrite=True)


@pytest.fixture(scope="module")
def ids(tmp_path_factory):
    known = {}

    def of(recipe):
        if recipe not in known:
            known[recipe] = recipe.write(tmp_path_factory.mktemp("undisturbed") / "d.zarr").id
        return known[recipe]

    return of


def absent_or_whole(path):
    """Check that what lies at a path is not there, or a dataset in order."""
    if path.exists():
        with open_store(path) as store:
            assert store.verify().ok


def ends_whole(scenario, folder, ids):
    root = scenario.work(folder)
    assert root.id == ids(scenario.recipe)
    with open_store(folder / "d.zarr") as store:
        report = store.verify()
        assert report.ok
        assert not report.notes
    assert [entry.name for entry in folder.iterdir()] == ["d.zarr"]


def stop_everywhere(scenario, tmp_path, ids, record_property):
    number = 0
    while True:
        folder = tmp_path / "run"
        scenario.prepare(folder)
        stopped = stopped_at(number, lambda folder=folder: scenario.work(folder))
        absent_or_whole(folder / "d.zarr")
        ends_whole(scenario, folder, ids)
        shutil.rmtree(folder)
        if not stopped:
            record_property("T1", number)
            return number
        number += 1


@pytest.mark.parametrize("scenario", [Fresh(SMALL), Replaced(BARE)], ids=["fresh", "replaced"])
def test_a_writer_stopped_at_any_operation_leaves_nothing_or_a_whole_and_the_same_command_ends_it(
    scenario, tmp_path, ids, unsynced, record_property
):
    assert stop_everywhere(scenario, tmp_path, ids, record_property) > 50


@pytest.mark.torture
@pytest.mark.parametrize(
    "scenario",
    [Fresh(PACKED), Fresh(LEAFY), Replaced(SMALL), Replaced(PACKED.but(episode=50, keeps=False))],
    ids=["packed", "leafy", "replaced", "replaced packed"],
)
def test_a_writer_of_any_shape_stopped_at_any_operation_can_be_ended(
    scenario, tmp_path, ids, unsynced, record_property
):
    assert stop_everywhere(scenario, tmp_path, ids, record_property) > 50


def test_a_writer_without_exchange_of_names_stopped_at_any_operation_can_be_ended(
    tmp_path, ids, unsynced, monkeypatch, record_property
):
    from alberta_data.store import disk

    monkeypatch.setattr(disk, "exchange", lambda one, other: False)
    assert stop_everywhere(Replaced(BARE), tmp_path, ids, record_property) > 50


def fail_everywhere(scenario, tmp_path, ids, choices, record_property):
    """Fail at each operation, in each of the ways that `choices(number)` gives."""
    number = tried = 0
    while True:
        reached = False
        for kind, for_good in choices(number):
            folder = tmp_path / "run"
            scenario.prepare(folder)
            faults, seen = failing_at(number, kind, for_good)
            try:
                with faults:
                    scenario.work(folder)
            except StorageError as err:
                came = bool(in_one_line(err))
            else:
                came = kind == "short" and max(seen, default=0) > number
            reached = reached or came
            # Where an operation writes nothing, no write of it can be short.
            tried += came and (kind != "short" or len(seen) <= max(seen))
            absent_or_whole(folder / "d.zarr")
            ends_whole(scenario, folder, ids)
            shutil.rmtree(folder)
        if not reached:
            record_property("T4", tried)
            return number
        number += 1


def one_way(number):
    return [(KINDS[number % 4], number // 4 % 2 == 0)]


def all_ways(number):
    return [(kind, for_good) for kind in KINDS for for_good in (False, True)]


@pytest.mark.parametrize("scenario", [Fresh(SMALL), Replaced(BARE)], ids=["fresh", "replaced"])
def test_a_disk_that_fails_at_any_operation_ends_in_one_line_and_the_same_command_ends_it(
    scenario, tmp_path, ids, unsynced, record_property
):
    assert fail_everywhere(scenario, tmp_path, ids, one_way, record_property) > 50


@pytest.mark.torture
@pytest.mark.parametrize(
    "scenario",
    [Fresh(SMALL), Fresh(PACKED), Fresh(LEAFY), Replaced(SMALL)],
    ids=["small", "packed", "leafy", "replaced"],
)
def test_a_disk_that_fails_in_any_way_at_any_operation_can_be_gone_on_with(
    scenario, tmp_path, ids, unsynced, record_property
):
    assert fail_everywhere(scenario, tmp_path, ids, all_ways, record_property) > 50


def test_a_writer_that_was_failed_refuses_more(tmp_path, unsynced):
    with SMALL.begin(tmp_path / "d.zarr") as writer:
        SMALL.append_all(writer, 500)
        writer.close()
        with pytest.raises(AlbertaDataError, match="finished or closed"):
            SMALL.append_all(writer)
