"""T3: power cuts. From a record of the writer's operations, whatever was not synced is dropped or reordered."""

import itertools
import os
import random
import shutil
import threading
from dataclasses import dataclass, field

import pytest

from alberta_data.store import disk, open_store
from tests.store.faults import CHANGES
from tests.store.made import LEAFY, PACKED, SMALL


@dataclass
class Change:
    """One change that a disk was asked for, and the numbers of the things whose sync makes it last."""

    kind: str
    needs: tuple[int, ...]
    what: tuple
    number: int = 0


@dataclass
class Tree:
    """A file system of numbered things: folders are dictionaries, files are bytes."""

    folders: dict = field(default_factory=lambda: {0: {}})
    files: dict = field(default_factory=dict)

    def apply(self, change):
        kind, what = change.kind, change.what
        if kind == "write":
            thing, offset, data = what
            content = self.files.setdefault(thing, bytearray())
            content.extend(b"\0" * (offset + len(data) - len(content)))
            content[offset : offset + len(data)] = data
        elif kind == "truncate":
            thing, size = what
            content = self.files.setdefault(thing, bytearray())
            del content[size:]
            content.extend(b"\0" * (size - len(content)))
        elif kind == "link":
            folder, name, thing = what
            self.folders.setdefault(folder, {})[name] = thing
        elif kind == "unlink":
            folder, name = what
            self.folders.setdefault(folder, {}).pop(name, None)
        elif kind == "rename":
            old, old_name, new, new_name, thing = what
            if self.folders.setdefault(old, {}).get(old_name) == thing:
                del self.folders[old][old_name]
                self.folders.setdefault(new, {})[new_name] = thing
        elif kind == "exchange":
            folder, one, other = what
            entries = self.folders[folder]
            if one in entries and other in entries:
                entries[one], entries[other] = entries[other], entries[one]

    def find(self, parts):
        thing = 0
        for part in parts:
            thing = self.folders[thing][part]
        return thing

    def write_to(self, path, thing=0):
        path.mkdir()
        for name, inner in self.folders.get(thing, {}).items():
            if inner in self.folders:
                self.write_to(path / name, inner)
            else:
                (path / name).write_bytes(self.files.get(inner, b""))


class Recorder:
    """Records the operations of `store.disk` below a folder, and carries them out."""

    def __init__(self, top):
        self.top, self.tree, self.log = top, Tree(), []
        self._numbers, self._open, self._lock = itertools.count(1), {}, threading.Lock()

    def below(self, path):
        return os.path.relpath(path, self.top).split("/")

    def place(self, path):
        *folder, name = self.below(path)
        return self.tree.find(folder), name

    def note(self, kind, needs, *what):
        change = Change(kind, tuple(needs), what, len(self.log))
        self.tree.apply(change)
        self.log.append(change)

    def install(self, monkeypatch):
        for name in CHANGES:
            monkeypatch.setattr(disk, name, self.recorded(name, getattr(disk, name)))

    def recorded(self, name, operation):
        def call(*arguments):
            with self._lock:
                result = operation(*arguments)
                getattr(self, name)(result, *arguments)
                return result

        return call

    def make_folder(self, result, path):
        thing = next(self._numbers)
        self.tree.folders[thing] = {}
        folder, name = self.place(path)
        self.note("link", [folder], folder, name, thing)

    def create(self, fd, path):
        thing = next(self._numbers)
        folder, name = self.place(path)
        self.tree.files[thing] = bytearray()
        self.note("link", [folder], folder, name, thing)
        self._open[fd] = thing

    def reopen(self, fd, path):
        self._open[fd] = self.tree.find(self.below(path))

    def write(self, taken, fd, data, offset):
        thing = self._open[fd]
        self.note("write", [thing], thing, offset, bytes(data[:taken]))

    def truncate(self, result, fd, size):
        thing = self._open[fd]
        self.note("truncate", [thing], thing, size)

    def protect(self, result, fd):
        pass

    def sync(self, result, fd):
        self.note("sync", (), self._open[fd])

    def sync_folder(self, result, path):
        self.note("sync", (), self.tree.find(self.below(path)) if path != self.top else 0)

    def rename(self, result, old, new):
        (a, old_name), (b, new_name) = self.place(old), self.place(new)
        self.note("rename", {a, b}, a, old_name, b, new_name, self.tree.folders[a][old_name])

    def exchange(self, result, one, other):
        (a, name), (b, other_name) = self.place(one), self.place(other)
        assert a == b
        self.note("exchange", [a], a, name, other_name)

    def unlink(self, result, path):
        folder, name = self.place(path)
        if name in self.tree.folders[folder]:
            self.note("unlink", [folder], folder, name)

    def remove_folder(self, result, path):
        self.unlink(result, path)


def after_power_cut(recorder, rng, begin):
    """A tree that the disk may hold after a cut at some moment: what was synced, and some of the rest."""
    end = len(recorder.log)
    moment = rng.choice((rng.randint(begin, end), rng.randint(end - end // 8, end), end))
    seen = recorder.log[:moment]
    synced_at = {}
    for change in seen:
        if change.kind == "sync":
            synced_at[change.what[0]] = change.number
    kept_share = rng.choice((0.0, 0.3, 0.7, 1.0))
    tree = Tree({thing: {} for thing in recorder.tree.folders})
    for change in seen:
        if change.kind == "sync":
            continue
        lasting = all(synced_at.get(thing, -1) > change.number for thing in change.needs)
        if lasting or rng.random() < kept_share:
            tree.apply(change if lasting else torn(change, rng))
    return tree, moment


def torn(change, rng):
    """A write that was not synced may be there in part, or as zeros."""
    if change.kind != "write" or rng.random() < 0.5:
        return change
    thing, offset, data = change.what
    cut = rng.randrange(len(data) + 1)
    rest = b"\0" * (len(data) - cut) if rng.random() < 0.5 else b""
    return Change("write", change.needs, (thing, offset, data[:cut] + rest), change.number)


def cut_the_power(recipe, cuts, tmp_path, monkeypatch, record_property, seed, replaced=None):
    top = tmp_path / "recorded"
    top.mkdir()
    recorder = Recorder(top)
    with monkeypatch.context() as patched:
        recorder.install(patched)
        if replaced is not None:
            replaced.write(top / "d.zarr")
        begin = len(recorder.log)
        expected = recipe.write(top / "d.zarr", overwrite=replaced is not None).id
    for change in recorder.log[:begin]:
        change.needs = ()
    rng = random.Random(seed)
    stages = set()
    for number in range(cuts):
        tree, moment = after_power_cut(recorder, rng, begin)
        folder = tmp_path / f"cut{number}"
        tree.write_to(folder)
        path = folder / "d.zarr"
        if path.exists():
            with open_store(path) as store:
                assert store.verify().ok, f"seed {seed}, cut {number} at {moment}"
            stages.add("there")
        with recipe.begin(path, overwrite=replaced is not None) as writer:
            stages.add("begun" if writer.position.step == 0 else "whole" if writer.already_there else "half")
            recipe.append_all(writer)
            writer.finish({"title": "prepared"})
            assert writer.root.id == expected, f"seed {seed}, cut {number} at {moment}"
        with open_store(path) as store:
            report = store.verify()
            assert report.ok
            assert not report.notes
        shutil.rmtree(folder)
    record_property("T3", cuts)
    return stages


def test_a_power_cut_leaves_nothing_or_a_whole_dataset_and_the_same_command_ends_it(
    tmp_path, monkeypatch, unsynced, record_property
):
    stages = cut_the_power(SMALL.but(block=100), 100, tmp_path, monkeypatch, record_property, seed=3)
    assert {"begun", "half"} <= stages


def test_a_power_cut_while_a_dataset_is_replaced_leaves_the_old_one_or_the_new_one(
    tmp_path, monkeypatch, unsynced, record_property
):
    stages = cut_the_power(PACKED, 50, tmp_path, monkeypatch, record_property, seed=4, replaced=PACKED.but(seed=1))
    assert "there" in stages


@pytest.mark.torture
@pytest.mark.parametrize(
    "recipe", [SMALL, PACKED, LEAFY, LEAFY.but(codec="small")], ids=["small", "packed", "leafy", "x"]
)
def test_no_power_cut_of_many_harms_a_dataset(recipe, tmp_path, monkeypatch, unsynced, record_property):
    assert "half" in cut_the_power(recipe, 1250, tmp_path, monkeypatch, record_property, seed=5)
