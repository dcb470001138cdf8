"""The root of a dataset: spec, arrays, files, id and seal, to and from `zarr.json`.

`Root.from_bytes` is the checked way in: limits, canonical form, seal, id, then lists of what is allowed. Nothing that
a root says is used before all of it has passed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from alberta_data.blocks import CHECKPOINT_STEPS
from alberta_data.errors import ArgumentError, DamagedDatasetError, RefusedError
from alberta_data.store import canonical
from alberta_data.store.layout import MAX_STEPS, ArrayDeclaration, ArrayLayout, is_name

FORMAT_VERSION = 1
ROOT = "zarr.json"
KEY = "alberta_data"
KINDS = ("stream", "environment", "frozen", "external")
CHECKPOINTS = "checkpoints"
_SPEC_KEYS = {"kind", "stream", "version", "parameters", "prng", "seed", "steps"}
_OUR_KEYS = {
    *("format_version", "spec", "arrays", "id", "files", "made_with", "about", "extensions", "seal"),
}
_HEX = re.compile(r"[0-9a-f]{64}")
GROUP_DOCUMENT: dict[str, Any] = {"zarr_format": 3, "node_type": "group", "attributes": {}}


@dataclass(frozen=True)
class ArrayRecord:
    """An array as the root describes it: what its digests are of, and the digests.

    Attributes:
        dtype: name of the dtype.
        shape: rows first.
        leaf_rows: rows under one digest.
        leaves: the digests, 64 hex digits each.
        columns: names of the last axis' entries, or None.
    """

    dtype: str
    shape: tuple[int, ...]
    leaf_rows: int
    leaves: tuple[str, ...]
    columns: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the record as it stands in the root."""
        entry: dict[str, Any] = {
            "dtype": self.dtype,
            "shape": list(self.shape),
            "leaf_rows": self.leaf_rows,
            "leaves": list(self.leaves),
        }
        return entry if self.columns is None else {**entry, "columns": list(self.columns)}

    def digest(self, name: str) -> str:
        """Return the digest that enters the id: of name, dtype, shape, leaf rows and leaves."""
        entry = {"name": name, "dtype": self.dtype, "shape": list(self.shape)}
        return canonical.digest({**entry, "leaf_rows": self.leaf_rows, "leaves": list(self.leaves)})


@dataclass(frozen=True)
class FileRecord:
    """A file's size in bytes and its SHA-256; None where size, CRC and leaves are the check."""

    size: int
    sha256: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the record as it stands in the root."""
        return {"size": self.size} if self.sha256 is None else {"size": self.size, "sha256": self.sha256}


def dataset_id(spec: Mapping[str, Any], arrays: Mapping[str, ArrayRecord]) -> str:
    """Return the id: 64 hex digits that stand for the spec and every row of every array named."""
    digests = {name: record.digest(name) for name, record in arrays.items()}
    return canonical.digest({"alberta_data": FORMAT_VERSION, "arrays": digests, "spec": spec})


def check_spec(spec: Any) -> None:
    """Check that a spec has its seven entries, each of its type.

    Raises:
        RefusedError: it has not.
    """
    if not isinstance(spec, dict) or set(spec) != _SPEC_KEYS:
        raise RefusedError(f"spec must have the entries {', '.join(sorted(_SPEC_KEYS))}, got others: refused")
    seed, prng, version, steps = spec["seed"], spec["prng"], spec["version"], spec["steps"]
    right = {
        "kind": spec["kind"] in KINDS,
        "stream": isinstance(spec["stream"], str) and len(spec["stream"]) <= 1000,
        "version": type(version) is int and version >= 1,
        "parameters": isinstance(spec["parameters"], dict),
        "prng": prng is None or (isinstance(prng, str) and len(prng) <= 100),
        "seed": seed is None or (type(seed) is int and 0 <= seed < 2**32),
        "steps": type(steps) is int and 1 <= steps <= MAX_STEPS,
    }
    wrong = [name for name, ok in right.items() if not ok]
    if wrong:
        raise RefusedError(f"spec entry {wrong[0]!r} must be of its type and range, got {spec[wrong[0]]!r:.80}")


@dataclass(frozen=True)
class Root:
    """Everything that stands in a dataset's root document.

    Attributes:
        spec: all that determines the numbers.
        arrays: name → record, of the arrays that enter the id.
        files: path → record, of every file but the root itself.
        documents: path → `zarr.json` of every array and group below the root.
        made_with: versions and settings.
        about: title, licence and so on.
        extensions: free entries, never acted on.
    """

    spec: Mapping[str, Any]
    arrays: Mapping[str, ArrayRecord]
    files: Mapping[str, FileRecord]
    documents: Mapping[str, Any]
    made_with: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    extensions: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def id(self) -> str:
        """The dataset's id, computed from spec and leaves."""
        return dataset_id(self.spec, self.arrays)

    @property
    def steps(self) -> int:
        """The number of steps."""
        return int(self.spec["steps"])

    @cached_property
    def layouts(self) -> dict[str, ArrayLayout]:
        """Path → layout of every array, the checkpoints' included."""
        return {
            path: ArrayLayout.from_document(path, document)
            for path, document in self.documents.items()
            if document != GROUP_DOCUMENT
        }

    @property
    def size(self) -> int:
        """The bytes of all files but the root."""
        return sum(record.size for record in self.files.values())

    def with_about(self, about: Mapping[str, Any], extensions: Mapping[str, Any] | None = None) -> Root:
        """Return the root with another `about`, and other extensions where they are given."""
        return replace(self, about=about, extensions=self.extensions if extensions is None else extensions)

    def to_json(self) -> dict[str, Any]:
        """Return the whole document."""
        ours: dict[str, Any] = {
            "format_version": FORMAT_VERSION,
            "spec": self.spec,
            "arrays": {name: record.to_json() for name, record in self.arrays.items()},
            "id": self.id,
            "files": {path: record.to_json() for path, record in self.files.items()},
            "made_with": self.made_with,
            "about": self.about,
            "extensions": self.extensions,
        }
        ours["seal"] = canonical.digest(ours)
        consolidated = {"kind": "inline", "must_understand": False, "metadata": dict(self.documents)}
        return {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": {KEY: ours},
            "consolidated_metadata": consolidated,
        }

    def to_bytes(self) -> bytes:
        """Return the bytes of the root's `zarr.json`, read back and checked.

        Raises:
            ArgumentError: made_with, about or extensions make it a root that no reader would take.
        """
        data = canonical.dumps(self.to_json())
        try:
            Root.from_bytes(data)
        except (RefusedError, DamagedDatasetError) as err:
            raise ArgumentError(f"the dataset's description must be one that can be read back, got: {err}") from err
        return data

    @classmethod
    def from_bytes(cls, data: bytes) -> Root:
        """Return the root that the bytes of a `zarr.json` hold, checked.

        Raises:
            RefusedError: not a dataset of ours, another format, or something that format 1 does not allow.
            DamagedDatasetError: the bytes are not those that were written.
        """
        try:
            document = canonical.loads(data)
        except canonical.MalformedJSONError as err:
            raise _damaged(str(err)) from None
        ours = _ours(document)
        try:
            again = canonical.dumps(document)
        except ArgumentError as err:
            raise _damaged(str(err)) from None
        if again != data:
            raise _damaged("zarr.json must be its own canonical form, got other bytes")
        seal = canonical.digest({key: value for key, value in ours.items() if key != "seal"})
        if ours.get("seal") != seal:
            raise _damaged(f"zarr.json must have the seal {seal}, found {str(ours.get('seal'))[:64]!r}")
        return _checked_root(data, document, ours)


def _damaged(message: str) -> DamagedDatasetError:
    return DamagedDatasetError(message, chunk=ROOT)


def _ours(document: Any) -> dict[str, Any]:
    attributes = document.get("attributes") if isinstance(document, dict) else None
    ours = attributes.get(KEY) if isinstance(attributes, dict) else None
    if not isinstance(ours, dict):
        raise RefusedError("zarr.json must have the attribute 'alberta_data', got none: not a dataset of ours")
    version = ours.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise RefusedError(f"format_version must be {FORMAT_VERSION}, got {version!r:.40}: use a newer alberta-data")
    return ours


def _checked_root(data: bytes, document: dict[str, Any], ours: dict[str, Any]) -> Root:
    if set(ours) != _OUR_KEYS:
        raise RefusedError(f"unknown or missing entries in zarr.json: {sorted(set(ours) ^ _OUR_KEYS)!r:.200}: refused")
    check_spec(ours["spec"])
    for name in ("made_with", "about", "extensions", "arrays", "files"):
        if not isinstance(ours[name], dict):
            raise RefusedError(f"{name} in zarr.json must be an object, got another type: refused")
    consolidated = document.get("consolidated_metadata")
    documents = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    if not isinstance(documents, dict) or not documents:
        raise RefusedError("zarr.json must hold consolidated metadata, got none: refused")
    try:
        arrays = {name: _array_record(name, entry) for name, entry in ours["arrays"].items()}
        files = {path: _file_record(path, entry) for path, entry in ours["files"].items()}
        root = Root(ours["spec"], arrays, files, documents, ours["made_with"], ours["about"], ours["extensions"])
        _check_tree(root)
    except (KeyError, TypeError, AttributeError):
        raise RefusedError("zarr.json must have the entries of format 1, got others: refused") from None
    if ours["id"] != root.id:
        raise _damaged(f"zarr.json must have the id {root.id}, found {str(ours['id'])[:64]!r}")
    if canonical.dumps(root.to_json()) != data:
        raise RefusedError("zarr.json must have the entries of format 1 alone, got others: refused")
    return root


def _array_record(name: str, entry: dict[str, Any]) -> ArrayRecord:
    if not set(entry) <= {"dtype", "shape", "leaf_rows", "leaves", "columns"}:
        raise RefusedError(f"unknown entries in array {name!r:.64}: refused")
    columns = entry.get("columns")
    if columns is not None and not all(isinstance(text, str) for text in columns):
        raise RefusedError(f"columns of {name!r:.64} must be text, got others: refused")
    if not all(isinstance(leaf, str) and _HEX.fullmatch(leaf) for leaf in entry["leaves"]):
        raise RefusedError(f"leaves of {name!r:.64} must be 64 hex digits each, got others: refused")
    return ArrayRecord(
        entry["dtype"],
        tuple(entry["shape"]),
        entry["leaf_rows"],
        tuple(entry["leaves"]),
        None if columns is None else tuple(columns),
    )


def _file_record(path: str, entry: dict[str, Any]) -> FileRecord:
    size, sha256 = entry["size"], entry.get("sha256")
    if not set(entry) <= {"size", "sha256"} or type(size) is not int or size < 0:
        raise RefusedError(f"file {path!r:.100} must have a size and a digest, got others: refused")
    if "sha256" in entry and not (isinstance(sha256, str) and _HEX.fullmatch(sha256)):
        raise RefusedError(f"sha256 of {path!r:.100} must be 64 hex digits, got another: refused")
    return FileRecord(size, sha256)


def _check_tree(root: Root) -> None:
    """Check that arrays, documents and files are one and the same tree."""
    for path, document in root.documents.items():
        parts = path.split("/")
        nested_elsewhere = len(parts) > 1 and parts[0] != CHECKPOINTS
        if not all(map(is_name, parts)) or len(parts) > 16 or nested_elsewhere:
            raise RefusedError(f"name {path!r:.64} must be [A-Za-z0-9._+-]{{1,64}}, got another: refused")
        group = document == GROUP_DOCUMENT
        if group != (path == CHECKPOINTS) and not (group and parts[0] == CHECKPOINTS):
            raise RefusedError(f"{path} must be an array, and checkpoints a group, got another: refused")
        parent = "/".join(parts[:-1])
        if parent and root.documents.get(parent) != GROUP_DOCUMENT:
            raise RefusedError(f"{path} must lie in a group, got none: refused")
    if {path for path in root.layouts if not path.startswith(f"{CHECKPOINTS}/")} != set(root.arrays) or not root.arrays:
        raise RefusedError("the arrays named and the arrays described must be the same, got others: refused")
    expected = 0
    for path in root.documents:
        data = canonical.dumps(root.documents[path])
        _check_file(root, f"{path}/{ROOT}", len(data), sha256_of(data))
        expected += 1
    for path, layout in root.layouts.items():
        _check_rows(root, path, layout)
        expected += layout.chunks
        if expected > len(root.files):
            raise RefusedError(f"the files of {path} must all be listed, got fewer: refused")
        for index in range(layout.chunks):
            _check_chunk(root, path, layout, layout.chunk_key(index))
    if expected != len(root.files):
        raise RefusedError(f"files must be the {expected} that the arrays need, got {len(root.files)}: refused")


def sha256_of(data: bytes | np.ndarray) -> str:
    """Return the SHA-256 of some bytes, 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def _check_file(root: Root, path: str, size: int, sha256: str) -> None:
    if root.files.get(path) != FileRecord(size, sha256):
        raise RefusedError(f"{path} must be listed with its size and digest, got another: refused")


def _check_rows(root: Root, path: str, layout: ArrayLayout) -> None:
    if path in root.arrays:
        record = root.arrays[path]
        told = (record.dtype, record.shape, record.leaf_rows, len(record.leaves))
        if told != (layout.dtype, layout.shape, layout.leaf_rows, layout.leaves):
            raise RefusedError(f"{path} must be described alike twice, got {told!r:.100}: refused")
        # Says the same as the writer did: dtype, shape, dimension names and columns fit each other.
        by_step = layout.dimension_names[0] == "step"
        try:
            ArrayDeclaration(path, layout.dtype, layout.shape[1:], layout.dimension_names, record.columns, by_step)
        except ArgumentError as err:
            raise RefusedError(f"{err}: refused") from None
        rows = root.steps if by_step else layout.rows
    else:
        rows = -(-root.steps // CHECKPOINT_STEPS)
        if layout.codec != "none" or layout.dimension_names[0] != "checkpoint":
            raise RefusedError(f"{path} must be an array of checkpoints, got another: refused")
    if layout.rows != rows:
        raise RefusedError(f"{path} must have {rows} rows, got {layout.rows}: refused")


def _check_chunk(root: Root, path: str, layout: ArrayLayout, key: str) -> None:
    record = root.files.get(key)
    if record is None:
        raise RefusedError(f"{key} must be listed, got no entry: refused")
    bare = layout.codec == "none" and path in root.arrays
    exact = layout.codec == "none"
    if bare != (record.sha256 is None) or record.size > layout.most_file_bytes:
        raise RefusedError(f"{key} must be listed with a size and digest of its codec, got others: refused")
    if exact and record.size != layout.most_file_bytes:
        raise RefusedError(f"{key} must have {layout.most_file_bytes} bytes, got {record.size}: refused")
