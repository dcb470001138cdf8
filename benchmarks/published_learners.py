"""The learners' updates as their formulas read, and `lax.scan` over them: what a person writes.

`UPDATES[name]` is `(init(D), update(state, x, y) -> (state, metrics))`, metrics `(3,)` as the package has them.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def _metrics(error: Any, step_size: Any) -> Any:
    return jnp.stack([error * error, error, step_size])


def _lms() -> Any:
    def init(size: int) -> Any:
        return jnp.zeros(size), jnp.float32(0), jnp.float32(0.01)

    def update(state: Any, x: Any, y: Any) -> Any:
        w, b, alpha = state
        error = y[0] - (jnp.dot(w, x) + b)
        return (w + alpha * error * x, b + alpha * error, alpha), _metrics(error, alpha)

    return init, update


def _idbd(theta: float = 0.001) -> Any:
    def init(size: int) -> Any:
        zero = jnp.float32(0)
        return jnp.zeros(size), zero, jnp.full(size, jnp.log(0.01)), jnp.zeros(size), jnp.float32(0.01), zero

    def update(state: Any, x: Any, y: Any) -> Any:
        w, b, beta, h, a, hb = state
        error = y[0] - (jnp.dot(w, x) + b)
        beta = jnp.clip(beta + theta * error * x * h, -10.0, 2.0)
        alpha = jnp.exp(beta)
        step = alpha * error * x
        h = h * jnp.maximum(0.0, 1.0 - alpha * x * x) + step
        a = jnp.clip(a * jnp.exp(theta * error * hb), 1e-6, 1.0)
        hb = hb * jnp.maximum(0.0, 1.0 - a) + a * error
        return (w + step, b + a * error, beta, h, a, hb), _metrics(error, jnp.mean(alpha))

    return init, update


def _autostep(mu: float = 0.01, tau: float = 10_000.0) -> Any:
    def init(size: int) -> Any:
        zero, small = jnp.float32(0), jnp.float32(0.01)
        return jnp.zeros(size), zero, jnp.full(size, 0.01), jnp.zeros(size), jnp.zeros(size), small, zero, zero

    def adapted(alpha: Any, h: Any, v: Any, error: Any, x: Any) -> Any:
        g = error * x * h
        v = jnp.maximum(jnp.abs(g), v + (1.0 / tau) * alpha * x * x * (jnp.abs(g) - v))
        return jnp.where(v > 0, alpha * jnp.exp(mu * g / jnp.where(v > 0, v, 1.0)), alpha), v

    def update(state: Any, x: Any, y: Any) -> Any:
        w, b, alpha, h, v, a, hb, vb = state
        error = y[0] - (jnp.dot(w, x) + b)
        alpha, v = adapted(alpha, h, v, error, x)
        a, vb = adapted(a, hb, vb, error, jnp.float32(1))
        total = jnp.maximum(jnp.sum(alpha * x * x) + a, 1.0)
        alpha, a = jnp.clip(alpha / total, 1e-8, 1.0), jnp.clip(a / total, 1e-8, 1.0)
        step = alpha * error * x
        h, hb = h * (1.0 - alpha * x * x) + step, hb * (1.0 - a) + a * error
        return (w + step, b + a * error, alpha, h, v, a, hb, vb), _metrics(error, jnp.mean(alpha))

    return init, update


UPDATES = {"lms": _lms, "idbd": _idbd, "autostep": _autostep}


def scanned(name: str, observations: Any, targets: Any) -> Any:
    """Return a compiled `() -> metrics` of all steps."""
    init, update = UPDATES[name]()
    pairs = jnp.asarray(observations), jnp.asarray(targets)

    @jax.jit
    def run(pairs: Any) -> Any:
        return lax.scan(lambda state, pair: update(state, *pair), init(pairs[0].shape[1]), pairs)[1]

    return lambda: jax.block_until_ready(run(pairs))
