"""The card of a dataset: Markdown for people, with the YAML header that the Hugging Face Hub reads.

Every text of the dataset is a stranger's: it is escaped for the place where it stands.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from alberta_data.errors import UnavailableError
from alberta_data.share.describing import description_of, said, title_of
from alberta_data.share.opening import opened
from alberta_data.store.metadata import Root

# The Hub's names of licences; any other is `other` with its own name beside it.
HUB_LICENCES = (
    *("apache-2.0", "mit", "openrail", "bsd", "bsd-2-clause", "bsd-3-clause", "bsd-3-clause-clear", "c-uda"),
    *("cc", "cc0-1.0", "cc-by-2.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0"),
    *("cc-by-nc-2.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nd-4.0", "cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0"),
    *("cc-by-nc-sa-2.0", "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "cdla-sharing-1.0", "cdla-permissive-1.0"),
    *("cdla-permissive-2.0", "wtfpl", "ecl-2.0", "epl-1.0", "epl-2.0", "etalab-2.0", "eupl-1.1", "eupl-1.2"),
    *("agpl-3.0", "gfdl", "gpl", "gpl-2.0", "gpl-3.0", "lgpl", "lgpl-2.1", "lgpl-3.0", "isc", "lppl-1.3c"),
    *("ms-pl", "mpl-2.0", "odc-by", "odbl", "pddl", "unlicense", "zlib", "artistic-2.0", "bsl-1.0", "afl-3.0"),
)
_SIZES = (
    *((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M")),
    *((10**8, "10M<n<100M"), (10**9, "100M<n<1B"), (10**10, "1B<n<10B"), (10**11, "10B<n<100B")),
    *((10**12, "100B<n<1T"),),
)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-!|~$&])")


def card(dataset: Any, *, url: str | None = None) -> str:
    """Return the card of a dataset as Markdown.

    Args:
        dataset: a path, an address, or a dataset that is open.
        url: where others find it, for the lines that load it; without it these name a local folder.

    Raises:
        UnavailableError: PyYAML is not installed.
    """
    with opened(dataset) as store:
        root, name = store.root, store.name
    place = url or f"{_file_name(name)}"
    sections = [
        _header(root),
        f"# {markdown(_one_line(title_of(root)))}",
        markdown(description_of(root)),
        _arrays(root),
    ]
    sections += [_loading(place, root), _verifying(place, root), *_making(root), _citing(root, url)]
    sections += _links(root)
    return "\n\n".join(sections) + "\n"


def markdown(text: str) -> str:
    """Return a text so that Markdown shows it as it is, without control or bidirectional characters."""
    shown = "".join(c if c == "\n" or not _unseen(c) else "\ufffd" for c in text)
    return _MARKDOWN.sub(r"\\\1", shown).replace("\n", "\n\n")


def code(text: str) -> str:
    """Return a text for a block of code: JSON's escapes for what is not plain."""
    return "".join(c if c == "\n" or (c.isprintable() and c != "`") else f"\\u{ord(c):04x}" for c in text)


def _header(root: Root) -> str:
    try:
        import yaml
    except ImportError:
        raise UnavailableError(
            "a card needs PyYAML, which is not installed: pip install 'alberta-data[card]'"
        ) from None
    entries: dict[str, Any] = {"pretty_name": _one_line(title_of(root))}
    licence = said(root).get("licence")
    if licence:
        known = licence.lower() in HUB_LICENCES
        entries["license"] = licence.lower() if known else "other"
        if not known:
            entries["license_name"] = _one_line(licence)
    entries["size_categories"] = [next((name for most, name in _SIZES if root.steps < most), "n>1T")]
    entries["task_categories"] = [
        "reinforcement-learning" if root.spec["kind"] == "environment" else "tabular-regression"
    ]
    entries["tags"] = [
        "continual-learning",
        "online-learning",
        "non-stationary",
        "alberta-data",
        "zarr",
        root.spec["kind"],
    ]
    text = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{text}---"


def _arrays(root: Root) -> str:
    lines = ["| array | shape | dtype | digests |", "| --- | --- | --- | --- |"]
    for name, record in root.arrays.items():
        shape = " × ".join(f"{length:,}" for length in record.shape)
        lines.append(f"| {markdown(name)} | {shape} | {record.dtype} | {len(record.leaves):,} |")
    seed = root.spec["seed"]
    made = f"`{root.spec['kind']}`, {root.steps:,} steps" + ("" if seed is None else f", seed {seed}")
    size = f"{root.size:,} bytes in {len(root.files) + 1:,} files of Zarr 3"
    return f"## What is in it\n\n{made}; {size}.\n\n" + "\n".join(lines)


def _loading(place: str, root: Root) -> str:
    first = "observations" if "observations" in root.arrays else next(iter(root.arrays))
    return (
        "## Load it\n\n```python\nfrom alberta_data import open_dataset\n\n"
        f"with open_dataset({json.dumps(place)}) as dataset:\n"
        f"    first = dataset[{json.dumps(first)}][:1000]  # checked against the id\n```\n\n"
        "It is a Zarr 3 group: zarr, xarray, dask and tensorstore open it too."
    )


def _verifying(place: str, root: Root) -> str:
    fetched = "://" in place
    lines = (
        [f"alberta-data fetch {_shell(place)} --id {root.id}"] if fetched else [f"alberta-data verify {_shell(place)}"]
    )
    return f"## Verify it\n\nIts id is `{root.id}`.\n\n```sh\n" + "\n".join(lines) + "\n```"


def _making(root: Root) -> list[str]:
    spec = json.dumps(dict(root.spec), ensure_ascii=True)
    if len(spec) > 4000:
        spec = spec[:4000] + " …"
    text = f"## What it follows from\n\n```json\n{code(spec)}\n```"
    if root.spec["kind"] in ("stream", "environment"):
        text += (
            "\n\n`alberta-data recipe` writes the file from which `alberta-data reproduce` makes it again, bit for bit."
        )
    return [text]


def _citing(root: Root, url: str | None) -> str:
    entries = said(root)
    text = entries.get("citation")
    if text is None:
        creators = entries.get("creators", [])
        text = f"{', '.join(creators).rstrip('.')}. " if creators else ""
        text += f"{title_of(root)}. Dataset with the id {root.id}, made with alberta-data."
        text += f" {url}" if url else ""
    return f"## Cite it\n\n```text\n{code(text)}\n```"


def _links(root: Root) -> list[str]:
    links = said(root).get("links", [])
    return ["## See also\n\n" + "\n".join(f"- <{link}>" for link in links)] if links else []


def _one_line(text: str) -> str:
    return " ".join("".join(" " if _unseen(c) else c for c in text).split())


def _unseen(c: str) -> bool:
    """Say whether a character is a control, a format (bidirectional ones too) or a separator of lines."""
    return unicodedata.category(c)[0] == "C" or unicodedata.category(c) in ("Zl", "Zp")


def _file_name(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2] if "://" not in name else name


def _shell(text: str) -> str:
    import shlex

    return shlex.quote(code(text))
