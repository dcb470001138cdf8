"""Croissant: the description of a dataset that search engines and loaders read, as JSON-LD."""

from __future__ import annotations

import re
from typing import Any

from alberta_data.share.describing import description_of, said, title_of
from alberta_data.share.opening import opened
from alberta_data.store.metadata import ROOT, Root, sha256_of

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")


def croissant(dataset: Any, *, url: str | None = None) -> dict[str, Any]:
    """Return the Croissant description of a dataset as a JSON value.

    Args:
        dataset: a path, an address, or a dataset that is open.
        url: where others find it; without it, paths are relative to the file that this is written to.
    """
    with opened(dataset) as store:
        root, root_bytes = store.root, store.root_bytes
    entries = said(root)
    found: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": re.sub(r"[^A-Za-z0-9_-]+", "-", title_of(root)).strip("-")[:100] or "dataset",
        "alternateName": title_of(root),
        "description": description_of(root),
        "version": "1.0.0",
        "identifier": root.id,
        "isLiveDataset": False,
        "keywords": ["continual learning", "online learning", "non-stationary", str(root.spec["kind"])],
        "citeAs": entries.get("citation") or f"{title_of(root)}. Dataset with the id {root.id}.",
        "distribution": _distribution(root, root_bytes, url),
    }
    if "licence" in entries:
        licence = entries["licence"]
        found["license"] = f"https://spdx.org/licenses/{licence}" if _SPDX.fullmatch(licence) else licence
    if "creators" in entries:
        found["creator"] = [{"@type": "sc:Person", "name": name} for name in entries["creators"]]
    if url:
        found["url"] = url
    if "links" in entries:
        found["sameAs"] = entries["links"]
    return found


def _distribution(root: Root, root_bytes: bytes, url: str | None) -> list[dict[str, Any]]:
    """The root by its digest: it holds the digests of all else. And one set of files for each array."""
    base = f"{url.rstrip('/')}/" if url else ""
    found: list[dict[str, Any]] = [
        {
            "@type": "cr:FileObject",
            "@id": "root",
            "name": ROOT,
            "description": "The root of the Zarr 3 group: spec, id, and the digest of every row and file.",
            "contentUrl": f"{base}{ROOT}",
            "contentSize": f"{len(root_bytes)} B",
            "encodingFormat": "application/json",
            "sha256": sha256_of(root_bytes),
        }
    ]
    for name, record in root.arrays.items():
        shape = " by ".join(str(length) for length in record.shape)
        document = root.files[f"{name}/{ROOT}"]
        found.append(
            {
                "@type": "cr:FileObject",
                "@id": f"{name}-metadata",
                "name": f"{name}/{ROOT}",
                "description": f"How the array {name} lies in files.",
                "contentUrl": f"{base}{name}/{ROOT}",
                "contentSize": f"{document.size} B",
                "encodingFormat": "application/json",
                "sha256": document.sha256,
            }
        )
        found.append(
            {
                "@type": "cr:FileSet",
                "@id": name,
                "name": name,
                "description": f"The chunks of {name}: {shape} of {record.dtype}, one row after another in time.",
                "encodingFormat": "application/octet-stream",
                "includes": f"{name}/c/**",
            }
        )
    return found
