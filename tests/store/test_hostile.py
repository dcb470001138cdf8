"""T10, T12, T13: roots that mean harm, sizes that lie, and noise. All of it is sealed as its publisher would."""

import copy
import json
import random
import resource
import struct
import sys
import tracemalloc

import numpy as np
import pytest

from alberta_data.errors import AlbertaDataError, DamagedDatasetError, RefusedError
from alberta_data.store import open_store
from alberta_data.store.codecs import crc32c, crc_bytes
from alberta_data.store.metadata import KEY, Root, sha256_of
from tests.store.damage import in_one_line, overwrite, refused, reseal
from tests.store.made import LEAFY, PACKED, TINY


@pytest.fixture
def path(tmp_path):
    TINY.write(tmp_path / "d.zarr")
    return tmp_path / "d.zarr"


def ours(document):
    return document["attributes"][KEY]


def array(document, name="observations"):
    return document["consolidated_metadata"]["metadata"][name]


def put(where, **entries):
    def change(document):
        where(document).update(entries)

    return change


def codecs(*names):
    return put(array, codecs=[{"name": "bytes", "configuration": {"endian": "little"}}, *({"name": n} for n in names)])


def renamed(new):
    def change(document):
        metadata = document["consolidated_metadata"]["metadata"]
        metadata[new] = metadata.pop("observations")
        ours(document)["arrays"][new] = ours(document)["arrays"].pop("observations")
        files = ours(document)["files"]
        for name in [name for name in files if name.startswith("observations/")]:
            files[name.replace("observations", new, 1)] = files.pop(name)

    return change


V2_OBJECTS = {
    "zarr_format": 2,
    "shape": [20, 3],
    "chunks": [10, 3],
    "dtype": "|O",
    "compressor": None,
    "fill_value": 0,
    "order": "C",
    "filters": [{"id": "vlen-utf8"}, {"id": "pickle"}],
}

HARMFUL = {
    "a pickle codec": codecs("numcodecs.pickle", "crc32c"),
    "pickle behind bytes": codecs("pickle"),
    "an unknown codec": codecs("os.system", "crc32c"),
    "no checksum": put(array, codecs=[{"name": "bytes", "configuration": {"endian": "little"}}]),
    "big endian": put(array, codecs=[{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}]),
    "shards": codecs("sharding_indexed", "crc32c"),
    "gzip": codecs("gzip", "crc32c"),
    "object dtype": put(array, data_type="object"),
    "string dtype": put(array, data_type="string"),
    "structured dtype": put(array, data_type={"name": "structured", "configuration": {"fields": [["a", "float32"]]}}),
    "complex dtype": put(array, data_type="complex64"),
    "a v2 array": lambda d: d["consolidated_metadata"]["metadata"].update(observations=V2_OBJECTS),
    "another chunk key": put(array, chunk_key_encoding={"name": "v2", "configuration": {"separator": "."}}),
    "storage transformers": put(array, storage_transformers=[{"name": "x"}]),
    "attributes on an array": put(array, attributes={"x": 1}),
    "an unknown entry on an array": put(array, must_run="x"),
    "an unknown entry of ours": put(ours, entry_points=["os:system"]),
    "an unknown entry in the group": lambda d: d.update(plugin="x"),
    "an attribute beside ours": lambda d: d["attributes"].update(other={}),
    "a kind that is not known": lambda d: ours(d)["spec"].update(kind="pickle"),
    "another entry in the spec": lambda d: ours(d)["spec"].update(entry_point="os:system"),
    "a later format": put(ours, format_version=2),
    "format true": put(ours, format_version=True),
    "a name that leads out": renamed(".."),
    "a name with a slash": renamed("../observations"),
    "an absolute name": renamed("/tmp/observations"),
    "a name with escapes": renamed("obs\x1b[31m"),
    "a name with markup": renamed("[bold]obs[/bold]"),
    "a name with a line": renamed("obs\nverified: yes"),
    "a name turned round": renamed("obs\u202eevil"),
    "a dotted name": renamed(".pth"),
    "a long name": renamed("x" * 65),
    "a name of a document": renamed("zarr.json"),
    "a file that is not ours": lambda d: ours(d)["files"].update({"evil.pth": {"size": 1, "sha256": "0" * 64}}),
    "a file that leads out": lambda d: ours(d)["files"].update({"../x": {"size": 1, "sha256": "0" * 64}}),
    "columns that are no text": lambda d: ours(d)["arrays"]["observations"].update(columns=[1, 2, 3]),
    "two columns for three": lambda d: ours(d)["arrays"]["observations"].update(columns=["a", "b"]),
    "a fill value that hides": put(array, fill_value=0),
    "consolidated with must_understand": lambda d: d["consolidated_metadata"].update(must_understand=True),
    "a checkpoint elsewhere": lambda d: d["consolidated_metadata"]["metadata"].update(extra={"node_type": "group"}),
}


@pytest.mark.parametrize("what", HARMFUL)
def test_what_format_1_does_not_allow_is_refused_in_one_line_without_its_text(what, path, capfd, record_property):
    record_property("T10", 1)
    reseal(path, HARMFUL[what])
    error = refused(path)
    assert isinstance(error, RefusedError | DamagedDatasetError), what
    assert all(c.isprintable() for c in str(error))
    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)
    assert capfd.readouterr() == ("", "")


def test_a_v2_array_of_objects_in_an_arrays_place_is_refused(path, record_property):
    record_property("T10", 1)
    (path / "observations/.zarray").write_text(json.dumps(V2_OBJECTS))
    with pytest.raises(RefusedError, match="format 2"):
        open_store(path)


def test_names_of_modules_and_environments_are_text_that_nothing_imports(path, record_property):
    record_property("T10", 1)

    def change(document):
        ours(document)["spec"].update(kind="environment", stream="canary:X-v0")

    reseal(path, change)
    before = set(sys.modules)
    error = refused(path)
    # Another spec is another id, which the seal does not hide.
    assert isinstance(error, DamagedDatasetError)
    assert "canary" not in {name.partition(".")[0] for name in set(sys.modules) - before}


def test_a_pth_file_inside_is_a_stray_that_nothing_runs(path, record_property):
    record_property("T10", 1)
    (path / "observations/evil.pth").write_text("import os; os._exit(9)")
    with open_store(path) as store:
        assert store.verify().strays == ["observations/evil.pth"]


def big(**entries):
    def change(document):
        array(document).update(entries)
        if "shape" in entries:
            ours(document)["arrays"]["observations"]["shape"] = entries["shape"]
            ours(document)["spec"]["steps"] = entries["shape"][0]

    return change


def chunked(rows, *more):
    return {"name": "regular", "configuration": {"chunk_shape": [rows, *more]}}


LYING = {
    "a shape of 1e15": big(shape=[10**15, 3]),
    "1e9 chunks": big(shape=[10**9, 3], chunk_grid=chunked(1, 3)),
    "2^53 - 1 steps": big(shape=[2**53 - 1, 3]),
    "more steps than a double counts": big(shape=[2**60, 3]),
    "a row of 2^200 bytes": big(shape=[20, *[2**50] * 4], chunk_grid=chunked(10, *[2**50] * 4)),
    "a chunk of 2 GiB": big(chunk_grid=chunked(2**28, 3)),
    "a chunk longer than the array": big(chunk_grid=chunked(21, 3)),
    "no rows": big(shape=[0, 3]),
    "less than no rows": big(shape=[-20, 3]),
    "no columns": big(shape=[20, 0], chunk_grid=chunked(10, 0)),
    "nine axes": big(shape=[20] + [1] * 9, chunk_grid=chunked(10, *[1] * 9)),
    "half a row": big(shape=[20.5, 3]),
    "a shape of true": big(shape=[True, 3]),
    "one leaf too many": lambda d: ours(d)["arrays"]["observations"]["leaves"].append("0" * 64),
    "leaves of one row": lambda d: ours(d)["arrays"]["observations"].update(leaf_rows=1),
    "a file of 2^52 bytes": lambda d: ours(d)["files"]["observations/c/0/0"].update(size=2**52),
    "a digest too many": lambda d: ours(d)["files"]["observations/c/0/0"].update(sha256="0" * 64),
    "a digest too few": lambda d: ours(d)["files"]["observations/zarr.json"].pop("sha256"),
    "many files of no array": lambda d: ours(d)["files"].update({f"x/{n}": {"size": 1} for n in range(10_000)}),
    "checkpoints without end": lambda d: array(d, "checkpoints/key").update(shape=[10**12, 2]),
}


@pytest.fixture
def bounded():
    """Fail where a refusal takes much memory."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6


@pytest.mark.parametrize("what", LYING)
def test_a_size_that_lies_is_refused_before_anything_is_made_of_it(what, path, bounded, record_property):
    record_property("T12", 1)
    reseal(path, LYING[what])
    assert isinstance(refused(path), RefusedError | DamagedDatasetError), what


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b" " * 100_000_000, RefusedError),
        (b"[" * 10_000 + b"]" * 10_000, RefusedError),
        (b'{"a":' * 200 + b"1" + b"}" * 200, RefusedError),
        (b"[" + b"[]," * 20_000_000 + b"[]]", RefusedError),
        (b'{"a":' + b"9" * 1_000_000 + b"}", AlbertaDataError),
        (b'{"a":1e999}', AlbertaDataError),
        (b'{"a":NaN}', DamagedDatasetError),
        (b'{"a":1,"a":2}', DamagedDatasetError),
        (b'"\\ud800"', AlbertaDataError),
        (b"\xff\xfe{\x00}\x00", DamagedDatasetError),
        (b"", DamagedDatasetError),
        (b"\0" * 1000, DamagedDatasetError),
    ],
)
def test_a_root_without_end_or_sense_is_refused(text, error, path, bounded, record_property):
    record_property("T12", 1)
    overwrite(path / "zarr.json", text)
    assert isinstance(refused(path), error)


def packed_with(path, change):
    """Give the first chunk a Blosc header of another's making, with size and digest in the root as they then are."""
    file = path / "observations/c/0/0"
    body = bytearray(file.read_bytes()[:-4])
    change(body)
    data = bytes(body) + crc_bytes(crc32c(np.frombuffer(body, np.uint8)))
    overwrite(file, data)
    record = {"size": len(data), "sha256": sha256_of(data)}
    reseal(path, lambda d: ours(d)["files"].update({"observations/c/0/0": record}))


def field(offset, form, value):
    return lambda body: struct.pack_into(form, body, offset, value)


HEADERS = {
    "claims 2 GiB": field(4, "<I", 2**31 - 1),
    "claims 4 GiB": field(4, "<I", 2**32 - 1),
    "claims nothing": field(4, "<I", 0),
    "claims a byte less": field(4, "<I", 256 * 3 * 4 - 1),
    "a block of 2 GiB": field(8, "<I", 2**31 - 1),
    "a block of nothing": field(8, "<I", 0),
    "packed in more than there is": field(12, "<I", 2**31 - 1),
    "packed in less than there is": field(12, "<I", 20),
    "another item size": field(3, "<B", 255),
    "another compressor": field(2, "<B", 0x84),
    "another version": field(0, "<B", 9),
    "merely copied": field(2, "<B", 0x22),
    "no header at all": lambda body: body.__delitem__(slice(3, None)),
}


@pytest.mark.parametrize("what", HEADERS)
def test_no_decoder_sees_a_chunk_whose_header_lies(what, tmp_path, bounded, monkeypatch, record_property):
    record_property("T12", 1)
    from numcodecs import blosc

    PACKED.write(tmp_path / "d.zarr")
    packed_with(tmp_path / "d.zarr", HEADERS[what])
    called = []
    decompress = blosc.decompress
    monkeypatch.setattr(blosc, "decompress", lambda *given: called.append(len(given[0])) or decompress(*given))
    with open_store(tmp_path / "d.zarr") as store, pytest.raises(DamagedDatasetError) as caught:
        store.read("observations", 0, 10)
    assert caught.value.chunk == "observations/c/0/0"
    assert not called


def test_padding_of_a_packed_chunk_that_hides_something_is_seen(tmp_path, record_property):
    record_property("T12", 1)
    from alberta_data.store.codecs import compress

    PACKED.write(tmp_path / "d.zarr")
    with open_store(tmp_path / "d.zarr") as store:
        layout = store.root.layouts["rewards"]
    rows = np.concatenate([PACKED.rows(PACKED.arrays[2], 768, 900).view(np.uint8), layout.padding(256 - 132)])
    rows[-1] ^= 1
    body = compress(layout, rows)
    data = body + crc_bytes(crc32c(np.frombuffer(body, np.uint8)))
    overwrite(tmp_path / "d.zarr/rewards/c/3", data)
    record = {"size": len(data), "sha256": sha256_of(data)}
    reseal(tmp_path / "d.zarr", lambda d: ours(d)["files"].update({"rewards/c/3": record}))
    with open_store(tmp_path / "d.zarr") as store:
        assert [damage.chunk for damage in store.verify().damages] == ["rewards/c/3"]
        with pytest.raises(DamagedDatasetError, match="fill value"):
            store.read("rewards")


def test_a_thousand_fuzzed_chunks_are_seen_by_no_decoder(tmp_path, monkeypatch, record_property):
    from numcodecs import blosc

    PACKED.write(tmp_path / "d.zarr")
    file = tmp_path / "d.zarr/observations/c/0/0"
    data, rng, tried = file.read_bytes(), random.Random(0), 0
    monkeypatch.setattr(blosc, "decompress", lambda *given: pytest.fail("a decoder saw a fuzzed chunk"))
    with open_store(tmp_path / "d.zarr") as store:
        for _ in range(1000):
            fuzzed = bytearray(data)
            for _ in range(rng.randint(1, 20)):
                fuzzed[rng.randrange(len(fuzzed))] = rng.randrange(256)
            if fuzzed == data:
                continue
            overwrite(file, bytes(fuzzed))
            with pytest.raises(DamagedDatasetError):
                store.read("observations", 0, 10)
            tried += 1
    record_property("T13", tried)


def places(value, path=()):
    """Yield the path to every value in a document."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def mutate(document, rng):
    """Change, remove, double or move some values of a document."""
    junk = (None, True, -1, 0, 2**53 - 1, 1e300, "", "x" * 300, "\u202e", [], {}, [[]], {"name": "pickle"}, "../x")
    for _ in range(rng.randint(1, 3)):
        *above, key = rng.choice([p for p in places(document) if p])
        parent = document
        for step in above:
            parent = parent[step]
        act = rng.randrange(4)
        if act == 0:
            parent[key] = copy.deepcopy(rng.choice(junk))
        elif act == 1:
            del parent[key]
        elif act == 2 and isinstance(parent, dict):
            parent[str(rng.choice(junk))[:100]] = copy.deepcopy(parent[key])
        else:
            value = parent[key]
            parent[key] = value + 1 if isinstance(value, int) else [value]


def fuzz(path, count, seed, record_property):
    rng = random.Random(seed)
    data = (path / "zarr.json").read_bytes()
    original = Root.from_bytes(data).id
    accepted, tried, kinds = 0, 0, set()
    for _ in range(count):
        if rng.random() < 0.3:
            noise = bytearray(data)
            at = rng.randrange(len(noise))
            noise[at : at + rng.randrange(20)] = rng.randbytes(rng.randrange(20))
            overwrite(path / "zarr.json", bytes(noise))
        else:
            overwrite(path / "zarr.json", data)
            try:
                reseal(path, lambda document: mutate(document, rng))
            except (KeyError, TypeError, AttributeError):
                continue
        tried += 1
        try:
            found = Root.from_bytes((path / "zarr.json").read_bytes())
        except AlbertaDataError as err:
            kinds.add(type(in_one_line(err)))
            continue
        # Only what is free may differ: about, made_with, extensions and columns.
        assert found.id == original
        accepted += 1
    overwrite(path / "zarr.json", data)
    assert kinds <= {RefusedError, DamagedDatasetError}
    record_property("T13", tried)
    return accepted


def test_fuzzed_metadata_ends_in_our_own_errors(path, record_property):
    assert fuzz(path, 300, 1, record_property) < 100


@pytest.mark.torture
@pytest.mark.parametrize("recipe", [TINY, PACKED, LEAFY.but(codec="small"), TINY.but(episode=3)])
def test_much_fuzzed_metadata_ends_in_our_own_errors(recipe, tmp_path, record_property):
    recipe.write(tmp_path / "d.zarr")
    assert fuzz(tmp_path / "d.zarr", 25_000, 2, record_property) < 10_000


def test_the_largest_root_that_is_read_takes_bounded_memory(record_property):
    record_property("T12", 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(AlbertaDataError):
        Root.from_bytes(b"[" + b"0," * (4 * 2**20 - 10) + b"0]")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000
