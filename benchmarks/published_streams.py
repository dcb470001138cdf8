"""The streams as their published formulas read: what a person writes with `jax.random` and `lax.scan`.

Keys of `jax.random`, every number drawn at every step, `where` for what is redrawn now and then, `dot` for the target.
Each entry of `STREAMS` gives `(init, step)`, `step(state) -> (state, (observation, target))`, at the stream's defaults
with 20 features. The numbers are those of the package's streams.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.random import normal, randint, split, uniform

D = 20
NOISE = 0.1


def _target(w: Any, x: Any, key: Any) -> Any:
    return (jnp.dot(w, x) + NOISE * normal(key, ()))[None]


def _random_walk() -> Any:
    def init(key: Any) -> Any:
        key, kw = split(key, 2)
        return key, normal(kw, (D,))

    def step(state: Any) -> Any:
        key, w = state
        key, kd, kx, kn = split(key, 4)
        w = w + 0.001 * normal(kd, (D,))
        x = normal(kx, (D,))
        return (key, w), (x, _target(w, x, kn))

    return init, step


def _abrupt() -> Any:
    def init(key: Any) -> Any:
        key, kw = split(key, 2)
        return key, normal(kw, (D,)), jnp.int32(0)

    def step(state: Any) -> Any:
        key, w, t = state
        key, kw, kx, kn = split(key, 4)
        w = jnp.where(t % 1000 == 0, normal(kw, (D,)), w)
        x = normal(kx, (D,))
        return (key, w, t + 1), (x, _target(w, x, kn))

    return init, step


def _cyclic() -> Any:
    def init(key: Any) -> Any:
        key, kc = split(key, 2)
        return key, normal(kc, (4, D)), jnp.int32(0)

    def step(state: Any) -> Any:
        key, configurations, t = state
        key, kx, kn = split(key, 3)
        w = configurations[(t // 500) % 4]
        x = normal(kx, (D,))
        return (key, configurations, t + 1), (x, _target(w, x, kn))

    return init, step


def _periodic() -> Any:
    def init(key: Any) -> Any:
        key, kw, kp = split(key, 3)
        return key, normal(kw, (D,)), uniform(kp, (D,), minval=0.0, maxval=2 * math.pi), jnp.int32(0)

    def step(state: Any) -> Any:
        key, base, phases, t = state
        key, kx, kn = split(key, 3)
        w = base + jnp.sin(2 * jnp.pi * t / 1000 + phases)
        x = normal(kx, (D,))
        return (key, base, phases, t + 1), (x, _target(w, x, kn))

    return init, step


def _scale_drift() -> Any:
    def init(key: Any) -> Any:
        key, kw = split(key, 2)
        return key, normal(kw, (D,)), jnp.zeros(D)

    def step(state: Any) -> Any:
        key, w, logs = state
        key, kw, ks, kx, kn = split(key, 5)
        w = w + 0.001 * normal(kw, (D,))
        logs = jnp.clip(logs + 0.01 * normal(ks, (D,)), -4.0, 4.0)
        z = normal(kx, (D,))
        return (key, w, logs), (z * jnp.exp(logs), _target(w, z, kn))

    return init, step


def _dynamic_scale_shift() -> Any:
    def scales_of(key: Any) -> Any:
        return jnp.exp(uniform(key, (D,), minval=math.log(0.01), maxval=math.log(100.0)))

    def init(key: Any) -> Any:
        key, kw, ks = split(key, 3)
        return key, normal(kw, (D,)), scales_of(ks), jnp.int32(0)

    def step(state: Any) -> Any:
        key, w, scales, t = state
        key, kw, ks, kx, kn = split(key, 5)
        scales = jnp.where(t % 2000 == 0, scales_of(ks), scales)
        w = jnp.where(t % 1000 == 0, normal(kw, (D,)), w)
        z = normal(kx, (D,))
        return (key, w, scales, t + 1), (z * scales, _target(w, z, kn))

    return init, step


def _sutton1() -> Any:
    def init(key: Any) -> Any:
        return key, jnp.ones(5), jnp.int32(0)

    def step(state: Any) -> Any:
        key, signs, t = state
        key, kx, ki = split(key, 3)
        chosen = randint(ki, (), 0, 5)
        flipped = signs.at[chosen].multiply(-1.0)
        signs = jnp.where((t > 0) & (t % 20 == 0), flipped, signs)
        x = normal(kx, (D,))
        return (key, signs, t + 1), (x, jnp.dot(signs, x[:5])[None])

    return init, step


STREAMS = {
    "random-walk": _random_walk,
    "abrupt": _abrupt,
    "cyclic": _cyclic,
    "periodic": _periodic,
    "scale-drift": _scale_drift,
    "dynamic-scale-shift": _dynamic_scale_shift,
    "sutton1": _sutton1,
}


def scanned(name: str, steps: int) -> Any:
    """Return a compiled `() -> (observations, targets)` of the first `steps` steps of seed 0."""
    init, step = STREAMS[name]()

    @jax.jit
    def run(key: Any) -> Any:
        return lax.scan(lambda state, _: step(state), init(key), None, length=steps)[1]

    key = jax.random.key(0, impl="threefry2x32")
    return lambda: jax.block_until_ready(run(key))
