"""T18: each guard broken on purpose is missed by a test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.broken import GUARDS

# Guard → the file, and the words of the name, of a test that must notice.
NOTICING = {
    "leaves while reading": ("test_damage.py", "from_elsewhere_in_the_dataset"),
    "leaves in verify": ("test_damage.py", "from_elsewhere_in_the_dataset"),
    "sync of chunks": ("test_power.py", "leaves_nothing_or_a_whole"),
    "sync of folders": ("test_power.py", "leaves_nothing_or_a_whole"),
    "sync of the root": ("test_power.py", "leaves_nothing_or_a_whole"),
    "root after all else": ("test_stops.py", "leaves_nothing_or_a_whole and fresh"),
    "no format 2": ("test_hostile.py", "v2_array_of_objects"),
    "seal": ("test_damage.py", "as_it_was_sealed"),
    "id": ("test_hostile.py", "text_that_nothing_imports"),
    "canonical form": ("test_damage.py", "as_it_was_sealed"),
    "no key twice": ("test_canonical.py", "no_plain_json"),
    "depth": ("test_canonical.py", "depth_is_bounded"),
    "crc": ("test_damage.py", "no_bit_of_a_chunk"),
    "padding": ("test_damage.py", "padding_that_is_not"),
    "sizes": ("test_damage.py", "cut_grown_gone"),
    "digests of files": ("test_damage.py", "arrays_document"),
    "documents of arrays": ("test_damage.py", "cut_grown_gone"),
    "header of a packed chunk": ("test_hostile.py", "whose_header_lies"),
    "lock": ("test_destinations.py", "works_in_is_in_use"),
    "torn lines": ("test_resuming.py", "torn_line"),
    "free space": ("test_destinations.py", "full_disk"),
    "dtypes": ("test_layout.py", "out_of_range"),
    "entries of an array": ("test_hostile.py", "format_1_does_not_allow"),
    "nothing of others is replaced": ("test_destinations.py", "something_of_the_users"),
    "another spec is not gone on with": ("test_resuming.py", "another_spec_or_machine"),
}


@pytest.mark.torture
@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_that_is_broken_is_missed(guard, tmp_path, record_property):
    file, words = NOTICING[guard]
    path = str(Path(__file__).with_name(file))
    options = ("-x", "-m", "not torture", "-p", "no:cacheprovider", "-p", "tests.store.broken", "-k", words)
    for broken, status in (("", 0), (guard, 1)):
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *options, f"--basetemp={tmp_path / str(status)}", path],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "BROKEN_GUARD": broken},
            capture_output=True,
            text=True,
        )
        assert ran.returncode == status, ran.stdout[-4000:] + ran.stderr[-1000:]
    # Failed, not broken at the start.
    assert " failed" in ran.stdout
    assert "error" not in ran.stdout.splitlines()[-1]
    record_property("T18", 1)
