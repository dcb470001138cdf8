"""The compiler's settings, its cache, and what a thing was made with.

Two settings decide whether two machines get the same bits and how fast: the instruction set (pinned to AVX2 on
x86-64, so that a newer processor fuses and widens nothing differently) and the size below which XLA compiles a loop
into one native function. Both are read when jax starts its CPU backend, so they are set before that or not at all.
Importing this module changes nothing; `pin()` is called by whoever is about to compute.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
import threading
from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from alberta_data.errors import ArgumentError

_PINNED = {"xla_cpu_max_isa": "AVX2"}
_EXTRA = {
    # Lets XLA compile a whole scan into one native function (jax 0.12 does so by itself).
    "xla_cpu_small_while_loop_byte_threshold": "100000000",
    # Unrolled inner loops spill registers in grids of learners.
    "xla_cpu_disable_loop_unrolling": "true",
}
# Flags that let the compiler change results; each is refused when switched on (or, for the honor family, off).
_FAST_MATH = "fast_math"
_FALSE = {"false", "0", "no"}


def _parse(flags: str) -> dict[str, str]:
    """Return `XLA_FLAGS` as name → value, in order; a bare flag is `true`.

    Raises:
        ArgumentError: something else stands there, such as the name of a file of flags.
    """
    try:
        words = shlex.split(flags)
    except ValueError as err:
        raise ArgumentError(
            f"XLA_FLAGS must be --name=value words, got {flags!r:.80} ({err}): mend or unset it"
        ) from None
    if wrong := next((word for word in words if not word.startswith("--")), None):
        raise ArgumentError(f"XLA_FLAGS must be --name=value words, got {wrong!r:.80}: mend or unset it")
    pairs = (word.removeprefix("--").partition("=") for word in words)
    return {name: value if sep else "true" for name, sep, value in pairs}


def _refuse_fast_math(flags: Mapping[str, str]) -> None:
    for name, value in flags.items():
        if _FAST_MATH not in name:
            continue
        harmless = value.lower() not in _FALSE if "honor" in name else value.lower() in _FALSE
        if not harmless:
            raise ArgumentError(
                f"XLA_FLAGS must not enable fast-math, got --{name}={value}: the numbers would not be "
                "those of the spec; remove it from XLA_FLAGS"
            )


def pinned_flags(flags: str) -> str:
    """Return `flags` (the text of `XLA_FLAGS`) with this project's settings in place of any that differ.

    Raises:
        ArgumentError: fast-math is switched on in `flags`.
    """
    parsed = _parse(flags)
    _refuse_fast_math(parsed)
    if platform.machine() == "x86_64":
        parsed.update(_PINNED)
    extra = dict(
        option.split("=", 1) for option in parsed.get("xla_backend_extra_options", "").split(",") if "=" in option
    )
    parsed["xla_backend_extra_options"] = ",".join(f"{k}={v}" for k, v in {**extra, **_EXTRA}.items())
    return " ".join(f"--{name}={value}" for name, value in parsed.items())


def cores() -> int:
    """Return how many processors this process may run on: as many programs as XLA runs at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def backend_started() -> bool:
    """Say whether jax has started a backend in this process, after which flags are not read any more."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(bridge is not None and getattr(bridge, "_backends", None))


def is_pinned() -> bool:
    """Say whether `XLA_FLAGS`, as it stands, holds this project's settings."""
    current = os.environ.get("XLA_FLAGS", "")
    return pinned_flags(current).split() == shlex.split(current)


_flags_at_start: dict[str, str] = {}
_forked_after_start = False


def _note_fork() -> None:
    global _forked_after_start
    _forked_after_start = backend_started()


# jax's threads do not survive a fork: computing there would wait for them for ever.
os.register_at_fork(after_in_child=_note_fork)


def forked() -> bool:
    """Say whether this process was forked after jax had started, and so cannot compute.

    Where the fork came before this module was imported, the threads tell: jax's own did not come along.
    """
    if _forked_after_start or not backend_started():
        return _forked_after_start
    try:
        return len(os.listdir("/proc/self/task")) <= threading.active_count()
    except OSError:
        return False


def pin(*, cache: bool = True) -> bool:
    """Set the compiler's flags, if jax has not started yet, and return whether they are in force.

    Args:
        cache: also point jax's persistent compilation cache at this user's cache folder.

    Raises:
        ArgumentError: fast-math is switched on in `XLA_FLAGS`.
    """
    if not backend_started():
        os.environ["XLA_FLAGS"] = _flags_at_start["XLA_FLAGS"] = pinned_flags(os.environ.get("XLA_FLAGS", ""))
    else:
        pinned_flags(os.environ.get("XLA_FLAGS", ""))
    if cache:
        _use_cache()
    return is_pinned() if "XLA_FLAGS" not in _flags_at_start else True


@lru_cache(maxsize=1)
def _use_cache() -> None:
    """Keep compiled programs between processes; without a writable home there is simply no cache."""
    import jax

    folder = cache_folder("xla")
    if folder is None or getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update("jax_raise_persistent_cache_errors", False)


def cache_folder(kind: str) -> Path | None:
    """Return this user's cache folder for `kind`, made if need be, or None where there is none to write to."""
    base = os.environ.get("ALBERTA_DATA_CACHE") or os.environ.get("XDG_CACHE_HOME")
    try:
        root = Path(base) if base else Path.home() / ".cache"
        folder = root / "alberta-data" / kind
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK) else None


@lru_cache(maxsize=16)
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


@lru_cache(maxsize=1)
def _instruction_set() -> str:
    """Return the widest vector instruction set of this processor that matters to XLA."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "unknown"
    flags = set(next((line.split(":", 1)[1].split() for line in text.splitlines() if line.startswith("flags")), []))
    for name, flag in (("AVX512", "avx512f"), ("AVX2", "avx2"), ("AVX", "avx"), ("SSE4_2", "sse4_2")):
        if flag in flags:
            return name
    return "unknown"


def effective_isa() -> str:
    """Return the instruction set that compiled code may use: the processor's, capped by the pin."""
    found = _instruction_set()
    return "AVX2" if found == "AVX512" and is_pinned() else found


def made_with(*, device: str = "cpu") -> dict[str, Any]:
    """Return what decides the last bit: versions, processor, device and settings; no date, name or path.

    Args:
        device: kind of the device that computed, as jax names its platform.
    """
    return {
        "alberta_data": _version("alberta-data"),
        "python": platform.python_version(),
        "jax": _version("jax"),
        "jaxlib": _version("jaxlib"),
        "numpy": _version("numpy"),
        "zarr": _version("zarr"),
        "platform": sys.platform,
        "cpu": platform.machine(),
        "instruction_set": effective_isa(),
        "device": device,
        "xla_flags": _told_flags(),
    }


def _told_flags() -> str:
    """Return the compiler's flags as they stand, without those that name a place on this machine."""
    flags = _parse(os.environ.get("XLA_FLAGS", ""))
    return " ".join(f"--{name}={value}" for name, value in flags.items() if "/" not in value)


# The entries of `made_with` in which two makings may differ and still give other bits. Within the promise (Linux on
# x86-64, AVX2, CPU) releases of python, jax and numpy are held to the same bits by the tests, and are not among them.
CAN_CHANGE_A_BIT = ("platform", "cpu", "instruction_set", "device", "xla_flags")
