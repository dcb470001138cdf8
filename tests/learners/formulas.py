"""The definitions of the papers in NumPy float64, one feature after another, as a second opinion."""

import math

import numpy as np


class Learner:
    """A linear learner over Python floats; `optimizer` and `normalizer` are the classes below, or None."""

    def __init__(self, features, optimizer, normalizer=None):
        self.w, self.b = [0.0] * features, 0.0
        self.optimizer, self.normalizer = optimizer, normalizer

    def step(self, x, y):
        x = [float(value) for value in x]
        if self.normalizer is not None:
            x = self.normalizer.step(x)
        delta = float(y) - (sum(w * v for w, v in zip(self.w, x, strict=True)) + self.b)
        changes, sizes = self.optimizer.step(delta, [*x, 1.0])
        self.w = [w + change for w, change in zip(self.w, changes[:-1], strict=True)]
        self.b += changes[-1]
        row = [delta**2, delta, sum(sizes[:-1]) / (len(sizes) - 1)]
        return row if self.normalizer is None else [*row, sum(self.normalizer.var) / len(self.normalizer.var)]


class LMS:
    def __init__(self, features, step_size):
        self.alpha = step_size

    def step(self, delta, x):
        return [self.alpha * delta * v for v in x], [self.alpha] * len(x)


class IDBD:
    def __init__(self, features, initial_step_size, meta_step_size):
        self.theta = meta_step_size
        self.beta, self.h = [math.log(initial_step_size)] * features, [0.0] * (features + 1)
        self.a = initial_step_size

    def step(self, delta, x):
        sizes = []
        for i, value in enumerate(x[:-1]):
            self.beta[i] = min(max(self.beta[i] + self.theta * delta * value * self.h[i], -10.0), 2.0)
            sizes.append(math.exp(self.beta[i]))
        self.a = min(max(self.a * math.exp(self.theta * delta * self.h[-1]), 1e-6), 1.0)
        sizes.append(self.a)
        for i, (value, alpha) in enumerate(zip(x, sizes, strict=True)):
            self.h[i] = self.h[i] * max(0.0, 1.0 - alpha * value**2) + alpha * delta * value
        return [alpha * delta * value for alpha, value in zip(sizes, x, strict=True)], sizes


class Autostep:
    def __init__(self, features, initial_step_size, meta_step_size, tau):
        self.mu, self.tau = meta_step_size, tau
        self.alpha = [initial_step_size] * (features + 1)
        self.h, self.v = [0.0] * (features + 1), [0.0] * (features + 1)

    def step(self, delta, x):
        for i, value in enumerate(x):
            g = delta * value * self.h[i]
            self.v[i] = max(abs(g), self.v[i] + self.alpha[i] * value**2 * (abs(g) - self.v[i]) / self.tau)
            if self.v[i] > 0:
                self.alpha[i] *= math.exp(self.mu * g / self.v[i])
        most = max(sum(alpha * value**2 for alpha, value in zip(self.alpha, x, strict=True)), 1.0)
        self.alpha = [min(max(alpha / most, 1e-8), 1.0) for alpha in self.alpha]
        changes = [alpha * delta * value for alpha, value in zip(self.alpha, x, strict=True)]
        self.h = [
            h * (1.0 - alpha * value**2) + change
            for h, alpha, value, change in zip(self.h, self.alpha, x, changes, strict=True)
        ]
        return changes, list(self.alpha)


class OnlineNormalizer:
    def __init__(self, features, epsilon, decay):
        self.epsilon, self.decay, self.n = epsilon, decay, 0
        self.mean, self.var = np.zeros(features), np.ones(features)

    def step(self, x):
        x = np.array(x)
        self.n += 1
        d = min(self.decay, 1.0 - 1.0 / (self.n + 1))
        e = x - self.mean
        self.mean = self.mean + (1 - d) * e
        self.var = np.maximum(d * self.var + (1 - d) * e * (x - self.mean), self.epsilon)
        return list((x - self.mean) / (np.sqrt(self.var) + self.epsilon))


class WelfordNormalizer:
    """Mean and variance of all that was seen, computed anew each time."""

    def __init__(self, features, epsilon):
        self.epsilon, self.seen = epsilon, []
        self.var = np.ones(features)

    def step(self, x):
        self.seen.append(x)
        self.mean = np.mean(self.seen, axis=0)
        if len(self.seen) > 1:
            self.var = np.var(self.seen, axis=0, ddof=1)
        return list((np.array(x) - self.mean) / (np.sqrt(self.var) + self.epsilon))
