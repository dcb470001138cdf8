"""How cost grows with features and steps: `python -m benchmarks.growth [--write]`.

Generation of `abrupt` in memory and learning with Autostep from arrays in memory, each point the median of three in a
process of its own. The plot is written by hand, so that nothing is needed to draw it.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import page
from benchmarks.measuring import ROOT, Bench, Time, medians, number, power

FEATURES = (1, 4, 16, 64, 256, 1024, 4096)
NUMBERS = 2**24
"""Numbers of a point over features: fewer steps where they are wider."""
MOST_STEPS = 2**20
STEPS = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
LEARNED = 10_000_000
"""The most steps that are learned from; a hundred million would be 8.4 GB of arrays."""
WORKS = ("generate", "learn")


def generate(features: int, steps: int) -> Callable[[], None]:
    from alberta_data import generation, xla
    from alberta_data.streams.abrupt import AbruptChangeStream

    xla.pin()

    def run() -> None:
        for _ in generation.blocks(AbruptChangeStream(features), 0, steps):
            pass

    return run


def learn(features: int, steps: int) -> Callable[[], None]:
    from alberta_data import generation, xla
    from alberta_data.learners import Autostep, LinearLearner
    from alberta_data.replay import Fold
    from alberta_data.streams.abrupt import AbruptChangeStream

    xla.pin()
    made = [block for block, _ in generation.blocks(AbruptChangeStream(features), 0, steps)]

    def run() -> None:
        with Fold([LinearLearner(Autostep())], features) as fold:
            for block in made:
                fold.advance(block)

    return run


@dataclass(frozen=True)
class Point:
    """A measurement: what, how large, and the seconds of the whole."""

    work: str
    features: int
    steps: int
    seconds: float

    @property
    def a_step(self) -> float:
        """Microseconds a step."""
        return self.seconds / self.steps * 1e6


def measured(bench: Bench) -> tuple[list[Point], list[Point]]:
    """Return the points over features, and those over steps at 20 features."""
    features = FEATURES[:2] if bench.tiny else FEATURES
    wide = [(width, 100 if bench.tiny else min(MOST_STEPS, NUMBERS // width)) for width in features]
    most = bench.count(STEPS[-1], 100, small=STEPS[-2])
    long = [(20, steps) for steps in STEPS if steps <= most] or [(20, 100)]
    return list(_points(bench, wide)), list(_points(bench, long))


def _points(bench: Bench, sizes: Sequence[tuple[int, int]]) -> Iterator[Point]:
    for features, steps in sizes:
        for work in WORKS:
            if work == "learn" and steps > LEARNED:
                continue
            with bench.worker(globals()[work], features=features, steps=steps) as worker:
                rounds = 1 if steps > LEARNED else 3
                worker()
                taken: Time = medians([worker() for _ in range(rounds)])
            print(f"{work} {features} features {power(steps)} steps: {taken.wall:.3g} s", file=sys.stderr)
            yield Point(work, features, steps, taken.wall)


def tables(wide: Sequence[Point], long: Sequence[Point]) -> str:
    """Return both tables."""
    over_features = page.table(
        ("features", "steps", "generation, µs a step", "ns a number", "learning, µs a step", "ns a number"),
        [
            [f"{features:,}", power(by["generate"].steps), *_shown(by.get("generate")), *_shown(by.get("learn"))]
            for features, by in _grouped(wide, "features").items()
        ],
    )
    over_steps = page.table(
        ("steps", "generation, s", "µs a step", "learning, s", "µs a step"),
        [
            [power(steps), *_seconds(by.get("generate")), *_seconds(by.get("learn"))]
            for steps, by in _grouped(long, "steps").items()
        ],
    )
    return f"{over_features}\n\n{over_steps}"


def _grouped(points: Sequence[Point], name: str) -> dict[int, dict[str, Point]]:
    found: dict[int, dict[str, Point]] = {}
    for point in points:
        found.setdefault(getattr(point, name), {})[point.work] = point
    return found


def _shown(point: Point | None) -> tuple[str, str]:
    return ("–", "–") if point is None else (number(point.a_step), number(point.a_step / (point.features + 1) * 1e3))


def _seconds(point: Point | None) -> tuple[str, str]:
    return ("–", "–") if point is None else (number(point.seconds), number(point.a_step))


WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 420, 300, 62, 44, 30
COLOURS = {"generate": "#1f6feb", "learn": "#d1570a"}


def plot(wide: Sequence[Point], long: Sequence[Point]) -> str:
    """Return an SVG of two plots side by side, both axes logarithmic."""
    left = _plot(0, "features", "µs a step", [(p.work, p.features, p.a_step) for p in wide])
    right = _plot(WIDTH, "steps, at 20 features", "seconds", [(p.work, p.steps, p.seconds) for p in long])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="11" fill="#333">\n<rect width="100%" height="100%" fill="#fff"/>\n{left}{right}</svg>\n'
    )


def _plot(x0: int, x_name: str, y_name: str, points: Sequence[tuple[str, float, float]]) -> str:
    (x_low, x_high), (y_low, y_high) = (_decades([point[axis] for point in points]) for axis in (1, 2))

    def x_of(value: float) -> float:
        return x0 + LEFT + (math.log10(value) - x_low) / (x_high - x_low) * (WIDTH - LEFT - 20)

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(value) - y_low) / (y_high - y_low) * (HEIGHT - BOTTOM - TOP)

    parts = []
    for decade in range(x_low, x_high + 1):
        x = x_of(10.0**decade)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        parts.append(_text(x, HEIGHT - BOTTOM + 15, f"{10.0**decade:g}", "middle"))
    for decade in range(y_low, y_high + 1):
        y = y_of(10.0**decade)
        parts.append(f'<line x1="{x0 + LEFT}" x2="{x0 + WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(_text(x0 + LEFT - 6, y + 4, f"{10.0**decade:g}", "end"))
    for place, (work, colour) in enumerate(COLOURS.items()):
        line = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for kind, x, y in points if kind == work)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3" fill="{colour}"/>' for k, x, y in points if k == work
        ]
        parts.append(f'<rect x="{x0 + LEFT + 10}" y="{TOP + 8 + 16 * place}" width="10" height="10" fill="{colour}"/>')
        parts.append(
            _text(x0 + LEFT + 26, TOP + 17 + 16 * place, {"generate": "generation", "learn": "learning"}[work])
        )
    parts.append(_text(x0 + (WIDTH + LEFT) / 2, HEIGHT - 10, x_name, "middle"))
    parts.append(_text(x0 + LEFT - 40, TOP - 12, y_name))
    return "\n".join(parts) + "\n"


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values)))
    return low, max(math.ceil(math.log10(max(values))), low + 1)


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put it into docs/performance.md as well")
    parser.add_argument("--small", action="store_true", help="up to 1e7 steps in place of 1e8")
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="alberta-data-bench-") as folder:
        wide, long = measured(Bench(Path(folder), given.tiny, given.small))
    text = tables(wide, long)
    print(text)
    if given.write:
        picture = page.PAGE.with_name(f"growth-jax-{page.RELEASE}.svg")
        picture.write_text(plot(wide, long))
        print(f"written: {picture.relative_to(ROOT)}", file=sys.stderr)
        page.put("growth", f"{page.machine()}.\n\n{text}\n\n![Cost over features and over steps]({picture.name})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
