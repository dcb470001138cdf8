"""Guards broken on purpose, one a run: `BROKEN_GUARD=name python -m pytest -p tests.store.broken …`."""

import contextlib
import json
import os

from alberta_data.store import (
    beginning,
    canonical,
    checking,
    chunks,
    codecs,
    destination,
    disk,
    finishing,
    journal,
    layout,
    leaves,
    metadata,
    pipeline,
    planning,
    reader,
    resuming,
    rows,
)
from alberta_data.store.metadata import KEY


def nothing(*given, **named):
    """Stand in for a check that is left out."""


class With:
    """A module in which some names stand for something else, for those who use it through this."""

    def __init__(self, module, **other):
        self._module, self._other = module, other

    def __getattr__(self, name):
        return self._other[name] if name in self._other else getattr(self._module, name)


class Alike:
    """What differs from nothing."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False


class AnyText(Alike, str):
    """A text that differs from no other."""

    __slots__ = ()
    __hash__ = str.__hash__


class AnyBytes(Alike, bytes):
    """Bytes that differ from no others."""

    __slots__ = ()
    __hash__ = bytes.__hash__


def agreeing(cls):
    """Let a reader of leaves find every digest right."""
    begin = cls.__init__

    def begun(self, *given):
        begin(self, *given)
        self._leaves = [AnyText(leaf) for leaf in self._leaves]

    cls.__init__ = begun


def unchecked_entry(name):
    """Let the root's own entry of that name be right whatever it is."""

    class Ours(dict):
        def get(self, key, default=None):
            return AnyText(super().get(key)) if key == name else super().get(key, default)

        def __getitem__(self, key):
            return AnyText(super().__getitem__(key)) if key == name else super().__getitem__(key)

    def loads(data):
        document = canonical.loads(data)
        with contextlib.suppress(KeyError, TypeError, ValueError):
            document["attributes"][KEY] = Ours(document["attributes"][KEY])
        return document

    metadata.canonical = With(canonical, loads=loads)


def without_padding():
    chunks.check_padding = nothing
    leaves.np = With(leaves.np, array_equal=lambda *arrays: True)


def without_crc():
    codecs.check_crc = nothing
    leaves.crc_bytes = lambda crc: AnyBytes(codecs.crc_bytes(crc))


def without_sizes():
    chunks.check_size = leaves.check_size = checking.check_size = nothing


def without_digests():
    chunks.sha256_of = lambda data: AnyText()


def without_lock():
    disk.lock = lambda path: os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def torn_lines_taken():
    def entries(path):
        offset = 0
        for line in path.read_bytes().splitlines(keepends=True):
            offset += len(line)
            yield json.loads(line[len(journal._HEAD) : -journal._END]), offset

    resuming.entries = finishing.entries = entries


def root_before_documents():
    waiting, write_document, write_root = [], finishing.write_document, finishing.write_root

    def later(folder, document):
        waiting.append((folder, document))
        data = canonical.dumps(document)
        return metadata.FileRecord(len(data), metadata.sha256_of(data))

    def first(folder, root):
        write_root(folder, root)
        while waiting:
            write_document(*waiting.pop(0))

    finishing.write_document, finishing.write_root = later, first


class Everything(dict):
    """A list of what is allowed in which all is."""

    def __contains__(self, key):
        return True


GUARDS = {
    "leaves while reading": lambda: agreeing(leaves.LeafReader),
    "leaves in verify": lambda: agreeing(checking._Run),
    "sync of chunks": lambda: setattr(rows, "disk", With(disk, sync=nothing)),
    "sync of folders": lambda: setattr(pipeline, "disk", With(disk, sync_folder=nothing)),
    "sync of the root": lambda: setattr(finishing, "disk", With(disk, sync=nothing)),
    "root after all else": root_before_documents,
    "no format 2": lambda: setattr(reader, "_refuse_v2", nothing),
    "seal": lambda: unchecked_entry("seal"),
    "id": lambda: unchecked_entry("id"),
    "canonical form": lambda: setattr(
        metadata, "canonical", With(canonical, dumps=lambda value: AnyBytes(canonical.dumps(value)))
    ),
    "no key twice": lambda: setattr(canonical, "_object", dict),
    "depth": lambda: setattr(canonical, "MAX_DEPTH", 10**6),
    "crc": without_crc,
    "padding": without_padding,
    "sizes": without_sizes,
    "digests of files": without_digests,
    "documents of arrays": lambda: setattr(reader, "check_document", nothing),
    "header of a packed chunk": lambda: setattr(codecs, "_check_header", nothing),
    "lock": without_lock,
    "torn lines": torn_lines_taken,
    "free space": lambda: setattr(planning.Plan, "check_free", nothing),
    "dtypes": lambda: setattr(layout, "DTYPES", Everything(dict.fromkeys(layout.DTYPES))),
    "entries of an array": lambda: setattr(layout.ArrayLayout, "from_document", layout.ArrayLayout._read),
    "nothing of others is replaced": lambda: setattr(destination, "check_replaceable", nothing),
    "another spec is not gone on with": lambda: setattr(beginning, "difference", nothing),
}


if name := os.environ.get("BROKEN_GUARD"):
    GUARDS[name]()
