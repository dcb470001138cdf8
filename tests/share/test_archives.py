"""T9: archives that could do harm are refused before anything is written, damaged ones leave nothing."""

import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import zipfile
import zlib

import pytest

from alberta_data.errors import AlbertaDataError, DamagedDatasetError, RefusedError
from alberta_data.share import pack, unpack
from alberta_data.store import open_store
from tests.share.conftest import is_whole


@pytest.fixture
def packed(made, tmp_path):
    return pack(made("tiny"), tmp_path / "tiny.zarr.zip")


def entries(packed):
    with zipfile.ZipFile(packed) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def info(name, mode=stat.S_IFREG | 0o644, **fields):
    found = zipfile.ZipInfo("placeholder")
    found.filename = found.orig_filename = name
    found.external_attr = mode << 16
    found.create_system = 3
    for field, value in fields.items():
        setattr(found, field, value)
    return found


def written(path, content, *more):
    """Write an archive of name → bytes, then `more` pairs of entry and bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(info(name), data)
        for entry, data in more:
            archive.writestr(entry, data)
    return path


def renamed(path, old, new):
    """Change a name of equal length in the bytes of an archive: zipfile would not write such names."""
    assert len(old) == len(new)
    path.write_bytes(path.read_bytes().replace(old, new))
    return path


def central(data):
    """Return the offset of each entry of the directory."""
    found, at = [], data.index(b"PK\1\2")
    while data[at : at + 4] == b"PK\1\2":
        found.append(at)
        n, m, k = struct.unpack("<3H", data[at + 28 : at + 34])
        at += 46 + n + m + k
    return found


def patched(path, entry, offset, form, value):
    """Change a field of a directory entry."""
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, central(data)[entry] + offset, value)
    path.write_bytes(data)
    return path


LINK, FIFO, DEVICE, SOCKET = (kind | 0o644 for kind in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK))
HOSTILE = {
    "dotdot": lambda p, c: renamed(written(p, c, (info("AA/x"), b"x")), b"AA/x", b"../x"),
    "dotdot inside": lambda p, c: renamed(written(p, c, (info("a/AA/AA/x"), b"x")), b"a/AA/AA/x", b"a/../../x"),
    "dot": lambda p, c: renamed(written(p, c, (info("a/A/x"), b"x")), b"a/A/x", b"a/./x"),
    "absolute": lambda p, c: renamed(written(p, c, (info("Aabs"), b"x")), b"Aabs", b"/abs"),
    "two slashes": lambda p, c: renamed(written(p, c, (info("aA/b"), b"x")), b"aA/b", b"a//b"),
    "backslash": lambda p, c: renamed(written(p, c, (info("aA..A..Ax"), b"x")), b"aA..A..Ax", b"a\\..\\..\\x"),
    "drive": lambda p, c: renamed(written(p, c, (info("CAAx"), b"x")), b"CAAx", b"C:\\x"),
    "drive alone": lambda p, c: renamed(written(p, c, (info("CAx"), b"x")), b"CAx", b"C:x"),
    "nul": lambda p, c: renamed(written(p, c, (info("aAb"), b"x")), b"aAb", b"a\0b"),
    "link": lambda p, c: written(p, c, (info("link", LINK), b"/etc")),
    "link and a file through it": lambda p, c: written(p, c, (info("d", LINK), b"/tmp"), (info("d/x"), b"x")),
    "chunk is a link": lambda p, c: written(
        p, {k: v for k, v in c.items() if k != "targets/c/0/0"}, (info("targets/c/0/0", LINK), c["targets/c/0/0"])
    ),
    "fifo": lambda p, c: written(p, c, (info("fifo", FIFO), b"")),
    "device": lambda p, c: written(p, c, (info("device", DEVICE), b"")),
    "socket": lambda p, c: written(p, c, (info("socket", SOCKET), b"")),
    "folder that is a file": lambda p, c: (
        written(p, c, (info("x/", stat.S_IFDIR | 0o755), b"")) and patched(p, len(c), 24, "<I", 5)
    ),
    "twice": lambda p, c: renamed(written(p, c, (info("zarr.jsoX"), c["zarr.json"])), b"zarr.jsoX", b"zarr.json"),
    "case": lambda p, c: written(p, c, (info("Zarr.json"), c["zarr.json"])),
    "case of a folder": lambda p, c: written(p, c, (info("targets/C/0/0"), b"x")),
    "file and folder": lambda p, c: written(p, c, (info("targets/c/0/0/x"), b"x")),
    "file and folder of another case": lambda p, c: written(p, c, (info("x"), b"x"), (info("X/y"), b"x")),
    "encrypted": lambda p, c: patched(written(p, c), 0, 8, "<H", 1),
    "strongly encrypted": lambda p, c: patched(written(p, c), 0, 8, "<H", 0x41),
    "bzip2": lambda p, c: written(p, c, (info("b", compress_type=zipfile.ZIP_BZIP2), b"x")),
    "lzma": lambda p, c: written(p, c, (info("b", compress_type=zipfile.ZIP_LZMA), b"x")),
    "size too large": lambda p, c: patched(written(p, c), 1, 24, "<I", 2**31),
    "two sizes": lambda p, c: patched(written(p, c), 1, 20, "<I", 5),
    "local header of another name": lambda p, c: patched(written(p, c), 1, 42, "<I", 0),
    "local header nowhere": lambda p, c: patched(written(p, c), 1, 42, "<I", 11),
    "crc other than in the local header": lambda p, c: patched(written(p, c), 2, 16, "<I", 7),
    "two datasets": lambda p, c: written(p, {f"{top}/{name}": data for top in ("a", "b") for name, data in c.items()}),
    "no dataset": lambda p, c: written(p, {"readme.txt": b"hello"}),
    "no zip": lambda p, c: p.write_bytes(b"hello") and p,
    "empty": lambda p, c: p.write_bytes(b"") or p,
    "another tool's root": lambda p, c: written(p, {**c, "zarr.json": b'{"zarr_format":3,"node_type":"group"}'}),
    "v2": lambda p, c: written(p, {**c, "zarr.json": b'{"zarr_format":2}'}),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_refused_before_anything_is_written(kind, packed, tmp_path, record_property):
    record_property("T9", 1)
    hostile = HOSTILE[kind](tmp_path / "h.zip", entries(packed))
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(RefusedError) as raised:
        unpack(hostile, tmp_path / "out.zarr")
    assert raised.value.exit_code == 5
    assert "\n" not in str(raised.value)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_not_read_in_place_as_a_dataset_in_order(kind, packed, tmp_path, record_property):
    record_property("T9", 1)
    hostile = HOSTILE[kind](tmp_path / "h.zip", entries(packed))
    code = None
    try:
        with open_store(hostile) as store:
            assert not store.verify().ok or kind == "crc other than in the local header"
    except AlbertaDataError as err:
        code = err.exit_code
    assert code in (None, 4, 5)


def overlapping(path, content):
    """Two entries of the directory that name one place."""
    written(path, {**content, "zz": b"0" * 100, "zy": b"0" * 100})
    data = bytearray(path.read_bytes())
    *_, one, other = central(data)
    data[other + 42 : other + 46] = data[one + 42 : one + 46]
    path.write_bytes(data)
    return path


def test_entries_that_lie_in_each_other_are_refused(packed, tmp_path, record_property):
    record_property("T9", 1)
    with pytest.raises(RefusedError):
        unpack(overlapping(tmp_path / "h.zip", entries(packed)), tmp_path / "out.zarr")


def test_a_root_that_unpacks_to_more_than_64_mib_is_refused_at_once(packed, tmp_path, record_property):
    record_property("T12", 1)
    with zipfile.ZipFile(tmp_path / "h.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zarr.json", b" " * (65 * 2**20))
    with pytest.raises(RefusedError, match="at most"):
        unpack(tmp_path / "h.zip", tmp_path / "out.zarr")


def test_an_entry_that_gives_more_than_it_says_leaves_nothing(packed, tmp_path, record_property):
    record_property("T9", 1)
    content = entries(packed)
    name = "observations/c/0/0"
    longer = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = longer.compress(content[name] + b"\0" * 10**6) + longer.flush()
    with zipfile.ZipFile(tmp_path / "h.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for key, data in content.items():
            archive.writestr(info(key, compress_type=zipfile.ZIP_DEFLATED), b"0" * len(body) if key == name else data)
    # The entry is written as stored bytes, then called deflated, with the size that the root expects.
    with zipfile.ZipFile(tmp_path / "h.zip", "w") as archive:
        for key, data in content.items():
            archive.writestr(info(key), body if key == name else data)
    data = bytearray((tmp_path / "h.zip").read_bytes())
    at = next(c for c in central(data) if data[c + 46 : c + 46 + len(name)] == name.encode())
    local = struct.unpack("<I", data[at + 42 : at + 46])[0]
    for base, method, size in ((at, 10, 24), (local, 8, 22)):
        struct.pack_into("<H", data, base + method, 8)
        struct.pack_into("<I", data, base + size, len(content[name]))
    (tmp_path / "h.zip").write_bytes(data)
    out = unpack(tmp_path / "h.zip", tmp_path / "out.zarr")
    assert is_whole(out.path)
    assert (out.path / name).stat().st_size == len(content[name])


@pytest.mark.parametrize("way", [
    "zip -r d.zip d/", "cd d && zip -r ../d.zip .", "zip -0 -r d.zip d/",
    f"{sys.executable} -m zipfile -c d.zip d/", f"cd d && {sys.executable} -m zipfile -c ../d.zip *",
])  # fmt: skip
def test_what_people_zip_themselves_unpacks_in_both_layouts(way, made, tmp_path):
    if "zipfile" not in way and shutil.which("zip") is None:
        pytest.skip("the program zip is not installed; Python's own stands in for it")
    shutil.copytree(made("small"), tmp_path / "d")
    subprocess.run(way, shell=True, cwd=tmp_path, check=True, capture_output=True)
    out = unpack(tmp_path / "d.zip", tmp_path / "out.zarr")
    assert is_whole(out.path)
    assert out.extra == ()


def test_files_that_are_not_of_the_dataset_are_told_and_left(packed, tmp_path):
    content = entries(packed)
    more = {"__MACOSX/tiny.zarr/._zarr.json": b"x", "readme.txt": b"y", "tiny.zarr/evil.pth": b"import os"}
    strange = written(tmp_path / "m.zip", {**{f"tiny.zarr/{name}": data for name, data in content.items()}, **more})
    out = unpack(strange, tmp_path / "out.zarr")
    assert out.extra == ("__MACOSX/tiny.zarr/._zarr.json", "evil.pth", "readme.txt")
    assert is_whole(out.path)


@pytest.mark.parametrize("what", ["missing", "short", "changed", "root"])
def test_an_archive_with_a_wrong_file_leaves_nothing(what, packed, tmp_path, record_property):
    record_property("T9", 1)
    content, name = entries(packed), "observations/c/1/0"
    if what == "missing":
        del content[name]
    elif what == "short":
        content[name] = content[name][:-1]
    elif what == "root":
        content["zarr.json"] = content["zarr.json"].replace(b'"seed":0', b'"seed":1')
    else:
        content[name] = bytes([content[name][0] ^ 1]) + content[name][1:]
    with pytest.raises(DamagedDatasetError):
        unpack(written(tmp_path / "h.zip", content), tmp_path / "out.zarr")
    assert sorted(os.listdir(tmp_path)) == ["h.zip", "tiny.zarr.zip"]


def test_a_dataset_that_does_not_fit_is_refused_with_needed_and_free_bytes(packed, tmp_path, monkeypatch):
    from alberta_data.errors import StorageError
    from alberta_data.store import disk

    monkeypatch.setattr(disk, "free_bytes", lambda path: 10)
    with pytest.raises(StorageError, match="10 bytes free"):
        unpack(packed, tmp_path / "out.zarr")
    assert os.listdir(tmp_path) == ["tiny.zarr.zip"]


def mutate(data, rng):
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        at = rng.randrange(len(data))
        if kind < 0.5:
            data[at] = rng.randrange(256)
        elif kind < 0.7:
            del data[at : at + rng.randint(1, 50)]
        elif kind < 0.85:
            data[at:at] = rng.randbytes(rng.randint(1, 50))
        else:
            ends = data.rfind(b"PK\5\6")
            directory = max(data.find(b"PK\1\2"), 0)
            where = rng.randrange(directory, max(ends + 22, directory + 1))
            data[where % len(data)] = rng.choice([0, 1, 255, 128])
    return bytes(data)


def mutated_archives_do_no_harm(packed, tmp_path, count, seed, record_property):
    rng, whole, out = random.Random(seed), packed.read_bytes(), tmp_path / "fuzz/out.zarr"
    out.parent.mkdir()
    for _ in range(count):
        (tmp_path / "f.zip").write_bytes(mutate(whole, rng))
        code = None
        try:
            unpack(tmp_path / "f.zip", out)
        except AlbertaDataError as err:
            code = err.exit_code
        assert code in (None, 4, 5, 6)
        assert os.listdir(out.parent) == ([] if code else [out.name])
        if code is None:
            assert is_whole(out)
            shutil.rmtree(out)
    record_property("T9", count)


def test_mutated_archives_are_refused_or_whole(packed, tmp_path, unsynced, record_property):
    mutated_archives_do_no_harm(packed, tmp_path, 150, 9, record_property)


@pytest.mark.torture
def test_two_thousand_mutated_archives_are_refused_or_whole(packed, tmp_path, unsynced, record_property):
    mutated_archives_do_no_harm(packed, tmp_path, 2000, 10, record_property)
