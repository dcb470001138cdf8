"""Small environments for the edge cases."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Counting(gymnasium.Env):
    """Observes `[episode seed part, step]`; ends after `length` steps, truncated or terminated."""

    def __init__(self, length=3, ends="terminated", reward=1.0, width=2, dtype="float32"):
        self.observation_space = spaces.Box(-np.inf, np.inf, (width,), np.dtype(dtype))
        self.action_space = spaces.Discrete(2)
        self.length, self.ends, self.reward = length, ends, reward
        self.seeds = []

    def _observe(self):
        return np.full(self.observation_space.shape, self.at, self.observation_space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.at = 0
        return self._observe(), {}

    def step(self, action):
        self.at += 1
        over = self.at == self.length
        return self._observe(), self.reward, over and self.ends != "truncated", over and self.ends != "terminated", {}


class Image(gymnasium.Env):
    """Random bytes as observations."""

    def __init__(self, size=8):
        self.observation_space = spaces.Box(0, 255, (size, size, 3), np.uint8)
        self.action_space = spaces.Discrete(3)
        self.length = 20

    def _observe(self):
        return self.np_random.integers(0, 256, self.observation_space.shape, np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = self.length
        return self._observe(), {}

    def step(self, action):
        self.left -= 1
        return self._observe(), float(action), False, self.left == 0, {}


class Reusing(Counting):
    """Gives the same array every time, changed in place."""

    def _observe(self):
        if not hasattr(self, "array"):
            self.array = np.empty(self.observation_space.shape, self.observation_space.dtype)
        self.array[:] = self.at
        return self.array


class Remembering(Counting):
    """Remembers, across resets, how many steps it ever took."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.total = 0

    def _observe(self):
        self.total += 1
        return np.full(self.observation_space.shape, self.total, self.observation_space.dtype)


OBSERVATIONS = {
    "multi": spaces.MultiDiscrete([2, 2]),
    "dict": spaces.Dict({"at": spaces.Discrete(3, start=1), "of": spaces.Box(-1, 1, (2,), np.float64)}),
    "text": spaces.Dict({"ok": spaces.Discrete(2), "say": spaces.Text(4)}),
    "sequence": spaces.Dict({"in": spaces.Tuple((spaces.Discrete(2), spaces.Sequence(spaces.Discrete(2))))}),
    "graph": spaces.Dict({"net": spaces.Graph(spaces.Discrete(2), None)}),
    "discrete": spaces.Discrete(4, start=2),
}
ACTIONS = {
    "two": spaces.Discrete(2),
    "shifted": spaces.Discrete(3, start=-1),
    "unbounded": spaces.Box(-np.inf, np.inf, (2,)),
    "components": spaces.MultiDiscrete([2, 3]),
    "double": spaces.Box(-1.0, 1.0, (2,), np.float64),
}


class Spaces(gymnasium.Env):
    """Samples of its spaces, by name."""

    def __init__(self, sees="discrete", does="two"):
        self.observation_space, self.action_space = OBSERVATIONS[sees], ACTIONS[does]
        self.taken = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.left = 7
        return self.observation_space.sample(), {}

    def step(self, action):
        self.taken.append(action)
        self.left -= 1
        return self.observation_space.sample(), float(np.sum(action)), self.left == 0, False, {}


class Failing(Counting):
    """Breaks at its third step."""

    def step(self, action):
        if self.at == 2:
            raise RuntimeError("the robot\nfell over")
        return super().step(action)


for cls in (Counting, Image, Reusing, Remembering, Spaces, Failing):
    gymnasium.register(f"alberta-test/{cls.__name__}-v0", cls, disable_env_checker=True)
