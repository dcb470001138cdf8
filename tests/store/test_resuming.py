"""Interrupted and gone on with: the same id, whatever was in between; refused where the numbers would differ."""

import json
import os
import shutil
import signal
import threading
import time

import numpy as np
import pytest

from alberta_data.blocks import Block
from alberta_data.errors import ArgumentError, DamagedDatasetError, DestinationError
from alberta_data.store import ArrayDeclaration, Writer, annotate, copy_rows, open_store
from alberta_data.store.codecs import crc32c, crc_bytes
from tests.store.damage import flip, overwrite
from tests.store.made import EVEN, LEAFY, PACKED, SMALL, TINY


def interrupted(recipe, path, at, **options):
    with recipe.begin(path, **options) as writer:
        recipe.append_all(writer, at)


@pytest.mark.parametrize("recipe", [SMALL, PACKED, LEAFY, EVEN, LEAFY.but(codec="small")], ids=lambda r: f"{r.steps}")
def test_an_interrupted_dataset_has_the_undisturbed_id(recipe, tmp_path):
    expected = recipe.write(tmp_path / "whole").id
    for tenth in range(1, 10, 2):
        path = tmp_path / f"{tenth}"
        interrupted(recipe, path, recipe.steps * tenth // 10)
        interrupted(recipe, path, recipe.steps * (tenth + 1) // 10)
        with recipe.begin(path) as writer:
            step = writer.position.step
            assert {name: list(v) for name, v in writer.position.state.items()} == {
                name: list(v) for name, v in recipe.state(step).items()
            }
            recipe.append_all(writer)
            writer.finish({"title": "prepared"})
            assert writer.root.id == expected
    one, two = ((tmp_path / name / "zarr.json").read_bytes() for name in ("whole", "5"))
    assert one == two


def test_the_id_does_not_depend_on_blocks_chunks_or_codec(tmp_path):
    ids = set()
    for number, changes in enumerate(
        [
            *({"block": block} for block in (1, 7, 1000, 4096)),
            *({"chunk_steps": chunk} for chunk in (7, 1000, 4096, None)),
            *({"codec": codec} for codec in ("none", "fast", "small")),
        ]
    ):
        ids.add(SMALL.but(episode=0, **changes).write(tmp_path / f"{number}").id)
    assert len(ids) == 1


@pytest.mark.parametrize("changes", [{"chunk_steps": 100}, {"codec": "fast"}], ids=["chunks", "codec"])
def test_an_interrupted_dataset_may_be_ended_with_other_chunks(changes, tmp_path):
    expected = SMALL.write(tmp_path / "whole").id
    interrupted(SMALL, tmp_path / "d", 1500)
    root = SMALL.but(**changes).write(tmp_path / "d")
    assert root.id == expected
    assert root.layouts["observations"].chunk_rows == changes.get("chunk_steps", 250)
    with open_store(tmp_path / "d") as store:
        assert store.verify().ok


def test_an_interrupted_dataset_keeps_its_chunks_where_none_are_asked_for(tmp_path):
    interrupted(SMALL, tmp_path / "d", 1500)
    with SMALL.but(chunk_steps=None).begin(tmp_path / "d") as writer:
        assert writer.position.step > 0
        SMALL.append_all(writer)
        writer.finish()
        assert writer.root.layouts["observations"].chunk_rows == 250


def test_another_spec_or_machine_is_refused_with_what_differs(tmp_path):
    interrupted(SMALL, tmp_path / "d", 1500)
    with pytest.raises(DestinationError, match=r"spec\.seed is 0 there, 5 asked for"):
        SMALL.but(seed=5).begin(tmp_path / "d")
    other = {"python": "4", "cpu": "arm64"}
    given = (SMALL.spec, other, SMALL.declarations)
    with pytest.raises(DestinationError, match=r"made_with\.cpu is 'x86_64' there, 'arm64' asked for"):
        Writer.begin(tmp_path / "d", *given, checkpoint_state=SMALL.state(0), decisive=["cpu"])
    with Writer.begin(tmp_path / "d", *given, checkpoint_state=SMALL.state(0), decisive=["device"]) as writer:
        assert writer.position.step > 0


def test_overwrite_begins_anew_where_an_unfinished_dataset_has_another_spec(tmp_path):
    interrupted(SMALL, tmp_path / "d", 1500)
    root = TINY.write(tmp_path / "d", overwrite=True)
    assert root.id == TINY.write(tmp_path / "other").id
    with open_store(tmp_path / "d") as store:
        assert store.verify().ok


def test_a_torn_line_is_dropped_with_what_follows(tmp_path):
    expected = SMALL.write(tmp_path / "whole").id
    interrupted(SMALL, tmp_path / "d", 2000)
    data = (tmp_path / "d.partial/journal.jsonl").read_bytes()
    ends = [n + 1 for n, byte in enumerate(data) if byte == 10]
    assert len(ends) > 3
    for size in sorted({*range(ends[0], len(data), 211), *ends}):
        path = tmp_path / f"{size}"
        shutil.copytree(tmp_path / "d.partial", tmp_path / f"{size}.partial")
        (tmp_path / f"{size}.partial/journal.jsonl").write_bytes(data[:size] + b"\0" * (size % 3))
        with SMALL.begin(path) as writer:
            whole = max(end for end in ends if end <= size)
            last = json.loads(data[:whole].splitlines()[-1])["entry"]
            assert writer.position.step == last.get("end", 0)
            SMALL.append_all(writer)
            writer.finish()
            assert writer.root.id == expected


def test_what_is_read_back_and_damaged_is_named(tmp_path):
    interrupted(SMALL, tmp_path / "d", 1500)
    flip(tmp_path / "d.partial/targets/c/0/0", 10, 3)
    # The first chunk lies in the open leaf, which is read back.
    with pytest.raises(DamagedDatasetError, match="targets/c/0/0"):
        SMALL.begin(tmp_path / "d")


def test_a_leaf_read_back_that_is_another_is_named_even_under_a_right_crc(tmp_path):
    interrupted(LEAFY, tmp_path / "d", 131_073)
    file = tmp_path / "d.partial/flags/c/2"
    body = bytearray(file.read_bytes()[:-4])
    body[7] ^= 1
    overwrite(file, bytes(body) + crc_bytes(crc32c(np.frombuffer(body, np.uint8))))
    with pytest.raises(DamagedDatasetError, match="leaves in the journal"):
        LEAFY.begin(tmp_path / "d")


def test_states_of_checkpoints_are_those_before_their_steps(tmp_path):
    LEAFY.write(tmp_path / "d")
    with open_store(tmp_path / "d") as store:
        for step, at in ((0, 0), (131_071, 0), (131_072, 131_072), (299_999, 262_144), (300_000, 262_144)):
            found, state = store.checkpoint(step)
            assert found == at
            assert {name: value.tolist() for name, value in state.items()} == {
                name: value.tolist() for name, value in LEAFY.state(at).items()
            }


def test_blocks_that_do_not_follow_are_refused(tmp_path):
    with LEAFY.begin(tmp_path / "d") as writer:
        flags = np.zeros(200_000, np.uint8)
        state = LEAFY.state(0)
        for block, said in (
            (Block(1, {"flags": flags[:10]}), "start at step 0"),
            (Block(0, {"flags": flags[:0]}), "start at step 0"),
            (Block(0, {"flags": flags}), "multiple of 2"),
            (Block(0, {"flags": flags[:10].astype(np.int64)}), "must be uint8"),
            (Block(0, {"flags": flags[:10, None]}), "shape"),
            (Block(0, {"flag": flags[:10]}), "must hold flags"),
        ):
            with pytest.raises(ArgumentError, match=said):
                writer.append(block, state)
        with pytest.raises(ArgumentError, match="state after"):
            writer.append(Block(0, {"flags": flags[:10]}), {"key": state["key"]})
        with pytest.raises(ArgumentError, match="must have them all"):
            writer.finish()


def test_a_longer_dataset_begins_with_the_rows_of_a_shorter_one(tmp_path):
    LEAFY.write(tmp_path / "short")
    longer = LEAFY.but(steps=400_000)
    expected = longer.write(tmp_path / "whole").id
    with open_store(tmp_path / "short") as store, longer.begin(tmp_path / "long") as writer:
        step = copy_rows(store, writer)
        assert step == 262_144
        for block in longer.blocks(step):
            writer.append(block, longer.state(block.stop))
        writer.finish()
        assert writer.root.id == expected


def test_a_dataset_is_described_anew_in_one_step_and_keeps_its_id(tmp_path):
    root = TINY.write(tmp_path / "d")
    again = annotate(tmp_path / "d", {"title": "another", "licence": "CC0-1.0"})
    with open_store(tmp_path / "d") as store:
        assert store.root.about == {"title": "another", "licence": "CC0-1.0"}
        assert store.root.id == root.id == again.id
        assert store.verify().ok
    for about in ({"x": float("nan")}, {"x": 2**60}, {1: 2}):
        with pytest.raises(ArgumentError):
            annotate(tmp_path / "d", about)


def test_a_ctrl_c_leaves_what_can_be_gone_on_with(tmp_path):
    expected = SMALL.write(tmp_path / "whole").id
    for number in range(5):
        path = tmp_path / f"{number}"
        timer = threading.Timer(0.002 * number, lambda: os.kill(os.getpid(), signal.SIGINT))
        try:
            with SMALL.begin(path) as writer:
                timer.start()
                for block in SMALL.blocks(writer.position.step):
                    writer.append(block, SMALL.state(block.stop), SMALL.final(block.start, block.stop))
                    time.sleep(0.002)
                writer.finish()
            timer.join()
            time.sleep(0.05)
        except KeyboardInterrupt:
            pass
        assert not [t for t in threading.enumerate() if t.name.startswith("alberta-data")]
        assert SMALL.write(path).id == expected


def test_memory_stays_flat_however_slow_the_disk(tmp_path, monkeypatch):
    from alberta_data.store import disk

    alive = []
    slow = disk.sync
    monkeypatch.setattr(disk, "sync", lambda fd: (time.sleep(0.002), slow(fd)))
    recipe = SMALL.but(steps=5000, chunk_steps=50, block=50, keeps=False)

    class Watched(np.ndarray):
        def __del__(self):
            alive.remove(1)

    with recipe.begin(tmp_path / "d") as writer:
        most = 0
        for block in recipe.blocks():
            rows = {name: value.view(Watched) if name == "rewards" else value for name, value in block.arrays.items()}
            alive.append(1)
            writer.append(Block(block.start, rows))
            del rows, block
            most = max(most, len(alive))
    assert most < 20


def test_rows_in_any_memory_order_are_written_alike(tmp_path):
    array = ArrayDeclaration("observations", "float32", (4, 3))
    recipe = TINY.but(arrays=(array,), keeps=False)
    expected = recipe.write(tmp_path / "c").id
    with recipe.begin(tmp_path / "f") as writer:
        rows = recipe.rows(array, 0, 20)
        writer.append(Block(0, {"observations": np.asfortranarray(rows)}))
        writer.finish()
        assert writer.root.id == expected
