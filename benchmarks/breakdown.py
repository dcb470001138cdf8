"""Where the time of `generate` and `learn` goes: `python -m benchmarks.breakdown [--write]`.

The library runs as it is, in a process of its own, with a clock put around the calls that make up the work: wall time
and the CPU time of the calling thread. What XLA's threads spend is what is left of the process's CPU time. The four
phases of a block run in few programs, so each is timed once more alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks import page
from benchmarks.measuring import COMMAND, Bench, number, power

STEPS = 10_000_000

Spans = dict[str, list[float]]


class Clock:
    """Wall and CPU seconds by name."""

    def __init__(self) -> None:
        self.spans: Spans = defaultdict(lambda: [0.0, 0.0])
        self._lock = threading.Lock()

    @contextmanager
    def running(self, name: str, cpu: Callable[[], float] = time.thread_time) -> Iterator[None]:
        """Add what the body takes to a name."""
        wall, spent = time.perf_counter(), cpu()
        try:
            yield
        finally:
            taken = time.perf_counter() - wall, cpu() - spent
            with self._lock:
                span = self.spans[name]
                span[0], span[1] = span[0] + taken[0], span[1] + taken[1]

    def around(self, name: str, owner: Any, attribute: str) -> None:
        """Put the clock around a function of a module, or a method of a class."""
        function = getattr(owner, attribute)

        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.running(name):
                return function(*args, **kwargs)

        setattr(owner, attribute, timed)

    def around_hashes(self, module: Any) -> None:
        """Put the clock around `update` of every SHA-256 that a module makes."""
        clock, hashlib = self, module.hashlib

        class Sha256:
            def __init__(self) -> None:
                self._hash = hashlib.sha256()
                self.digest, self.hexdigest = self._hash.digest, self._hash.hexdigest

            def update(self, data: Any) -> None:
                with clock.running("hash"):
                    self._hash.update(data)

        module.hashlib = SimpleNamespace(sha256=Sha256)


def generate(folder: str, steps: int) -> Spans:
    """Return the spans of `generate abrupt`, in this process, the compiler's cache as it is."""
    clock = Clock()
    with clock.running("import", time.process_time):
        from alberta_data import generation, xla
        from alberta_data.dataset import create_dataset
        from alberta_data.store import disk, rows
        from alberta_data.streams import phases
        from alberta_data.streams.abrupt import AbruptChangeStream

        xla.pin()
        import jax

    with clock.running("start jax", time.process_time):
        jax.numpy.zeros(1).block_until_ready()
    stream = AbruptChangeStream(20)
    with clock.running("compile", time.process_time):
        list(generation.blocks(stream, 0, min(steps, generation.CHECKPOINT_STEPS)))
    with clock.running("a block", time.process_time):
        list(generation.blocks(stream, 0, min(steps, generation.CHECKPOINT_STEPS)))
    for place in (0, 1):
        clock.spans["compile"][place] -= clock.spans["a block"][place]
    with clock.running("generation alone", time.process_time):
        for _ in generation.blocks(stream, 0, steps):
            pass

    clock.around_hashes(rows)
    clock.around("CRC", rows, "crc32c")
    clock.around("write", disk, "write")
    clock.around("sync", disk, "sync")
    clock.around("sync", disk, "sync_folder")
    clock.around("dispatch", phases, "block")
    to_host = generation._to_host

    def in_two(first: int, count: int, arrays: Any, state: Any) -> Any:
        with clock.running("wait"):
            jax.block_until_ready(arrays)
        with clock.running("copy"):
            return to_host(first, count, arrays, state)

    generation._to_host = in_two
    with clock.running("create", time.process_time):
        create_dataset(stream, steps=steps, path=Path(folder) / "made.zarr")
    return clock.spans | phases_alone(stream, steps)


def phases_alone(stream: Any, steps: int) -> Spans:
    """Return what each phase takes for so many steps when it runs alone."""
    import jax
    import numpy as np

    from alberta_data import generation
    from alberta_data.exact import zero_of
    from alberta_data.keys import words_of
    from alberta_data.streams import phases

    capacity = min(generation.block_length(stream), 1 << (steps - 1).bit_length())
    state, count = generation.initial_state(stream, 0), np.int32(capacity)
    numbers, finish = phases._numbers_program(stream, capacity), phases._finish_program(stream, capacity, False)
    key, step_keys, filled = jax.block_until_ready(numbers(state.key, count))

    @jax.jit
    def chain(key: Any, count: Any) -> Any:
        return phases._chain(words_of(key), count, capacity)

    @jax.jit
    def drift(state: Any, step_keys: Any, filled: Any, count: Any) -> Any:
        state = phases._open(stream, state)
        drawn = phases._drawn(stream, step_keys, filled)
        return phases._drift(stream, state, drawn, step_keys, count, capacity, zero_of(state.step_count))

    def alone(run: Callable[[], Any]) -> list[float]:
        jax.block_until_ready(run())
        times = []
        for _ in range(5):
            wall, cpu = time.perf_counter(), time.process_time()
            jax.block_until_ready(run())
            times.append((time.perf_counter() - wall, time.process_time() - cpu))
        return [sorted(column)[2] * steps / capacity for column in zip(*times, strict=True)]

    chained, made = alone(lambda: chain(state.key, count)), alone(lambda: numbers(state.key, count))
    drifted = alone(lambda: drift(state, step_keys, filled, count))
    finished = alone(lambda: finish(state, key, step_keys, filled, count))
    return {
        "chain": chained,
        "draw": [a - b for a, b in zip(made, chained, strict=True)],
        "drift": drifted,
        "emit": [a - b for a, b in zip(finished, drifted, strict=True)],
    }


def learn(folder: str, dataset: str) -> Spans:
    """Return the spans of `learn --optimizer autostep`, in this process, the compiler's cache as it is."""
    clock = Clock()
    with clock.running("import", time.process_time):
        from alberta_data import open_dataset, xla
        from alberta_data.learners import Autostep, LinearLearner
        from alberta_data.replay import groups
        from alberta_data.runs import learn, passing
        from alberta_data.store import leaves, replaying

        xla.pin()
        import jax

    with clock.running("start jax", time.process_time):
        jax.numpy.zeros(1).block_until_ready()
    clock.around("read", leaves, "read_exactly")
    clock.around_hashes(leaves)
    clock.around("CRC", leaves, "crc32c")
    clock.around("wait", replaying.BlockReader, "__next__")
    clock.around("learn", groups.Group, "_advance")
    clock.around("tally", passing.Pass, "_tally")
    clock.around("checkpoint", passing.Pass, "_save")
    with open_dataset(dataset) as opened:
        with clock.running("compile", time.process_time):
            learn(opened, LinearLearner(Autostep()), path=Path(folder) / "first", steps=min(opened.steps, 32_768))
        for name in set(clock.spans) - {"import", "start jax", "compile"}:
            del clock.spans[name]
        with clock.running("create", time.process_time):
            learn(opened, LinearLearner(Autostep()), path=Path(folder) / "run")
    return clock.spans


GENERATE = {
    "import": ("import", "main"),
    "start jax": ("start jax", "main"),
    "compile": ("compile (from the cache)", "main, XLA"),
    "chain": ("chain, alone", "XLA"),
    "draw": ("draw, alone", "XLA"),
    "drift": ("drift, alone", "XLA"),
    "emit": ("emit, alone", "XLA"),
    "generation alone": ("all blocks in memory, nothing else running", "XLA"),
    "dispatch": ("dispatch", "main"),
    "wait": ("wait for a block", "main"),
    "copy": ("copy to the host", "main"),
    "hash": ("hash (SHA-256)", "writer"),
    "CRC": ("CRC-32C", "writer"),
    "write": ("write", "writer"),
    "sync": ("sync, of all threads", "syncer"),
}
LEARN = {
    "import": ("import", "main"),
    "start jax": ("start jax", "main"),
    "compile": ("compile (from the cache), 32,768 steps", "main, XLA"),
    "read": ("read", "reader"),
    "CRC": ("CRC-32C", "reader"),
    "hash": ("hash (SHA-256)", "reader"),
    "wait": ("wait for rows", "main"),
    "learn": ("the loop", "main, XLA"),
    "tally": ("tally (windows, digest)", "tally"),
    "checkpoint": ("checkpoints", "main"),
}


def lines(spans: Spans, names: dict[str, tuple[str, str]], whole: str) -> Iterator[list[str]]:
    """Yield the rows of a table: what, on which thread, wall and CPU seconds.

    What XLA's threads spent while one of ours waited is what no thread of ours has spent.
    """
    for name, (said, thread) in names.items():
        wall, cpu = spans.get(name, (0.0, 0.0))
        yield [said, thread, number(max(wall, 0.0)), number(max(cpu, 0.0))]
    threads = ("dispatch", "wait", "copy", "hash", "CRC", "write", "sync", "read", "learn", "tally", "checkpoint")
    wall, cpu = spans["create"]
    rest = cpu - sum(spans[name][1] for name in threads if name in spans)
    yield ["**the call, as a whole**", "all", number(wall), number(cpu)]
    yield ["of it on XLA's threads, and the rest of ours", "XLA, all", "", number(rest)]
    wall, cpu = spans["process"]
    yield [f"**`{whole}`, the process**", "all", number(wall), number(cpu)]


def measured(bench: Bench) -> str:
    """Return both tables, with their words."""
    steps = bench.count(STEPS, 40_000, small=1_000_000)
    dataset, run = bench.folder / "whole.zarr", bench.folder / "whole-run"
    generates = [*COMMAND, "generate", "abrupt", "--steps", str(steps), "-q", "-o", str(dataset)]
    learns = [*COMMAND, "learn", str(dataset), "--optimizer", "autostep", "-q", "-o", str(run)]
    cold = bench.process(generates)
    shutil.rmtree(dataset)
    processes = {"generate": bench.process(generates), "learn-cold": bench.process(learns)}
    shutil.rmtree(run)
    processes["learn"] = bench.process(learns)
    columns, parts = ("what", "thread", "wall, s", "CPU, s"), []
    for name, shown, argument in (("generate", GENERATE, str(steps)), ("learn", LEARN, str(dataset))):
        whole = f"generate abrupt --steps {power(steps)}" if name == "generate" else "learn --optimizer autostep"
        spans = in_child(bench, name, argument)
        spans["process"] = list(processes[name][:2])
        first = cold if name == "generate" else processes["learn-cold"]
        parts.append(f"`{whole}`:\n\n{page.table(columns, lines(spans, shown, whole))}")
        busy = spans["process"][1] / spans["process"][0]
        parts.append(
            f"{number(busy)} of {os.cpu_count()} cores busy; the first time, with nothing in the compiler's cache, "
            f"{number(first.wall)} s ({number(first.cpu)} s of CPU)."
        )
    return "\n\n".join(parts)


def in_child(bench: Bench, name: str, argument: str) -> Spans:
    """Return the spans of `generate` or `learn`, from a process of its own."""
    out = bench.folder / "spans.json"
    made = bench.folder / f"{name}-child"
    made.mkdir()
    bench.process([sys.executable, "-m", __spec__.name, "--child", name, str(made), argument, str(out)])
    shutil.rmtree(made)
    return dict(json.loads(out.read_text()))


def _child(name: str, folder: str, argument: str, out: str) -> None:
    spans = generate(folder, int(argument)) if name == "generate" else learn(folder, argument)
    Path(out).write_text(json.dumps(spans))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.breakdown", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put it into docs/performance.md as well")
    parser.add_argument("--small", action="store_true", help="1e6 steps in place of 1e7")
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; else the system's temporary folder")
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.child:
        _child(*given.child)
        return 0
    with tempfile.TemporaryDirectory(prefix="alberta-data-bench-", dir=given.folder) as folder:
        text = measured(Bench(Path(folder), given.tiny, given.small))
    print(text)
    if given.write:
        page.put("breakdown", f"{page.machine()}.\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
