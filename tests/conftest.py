"""The test room: the compiler's settings stand before jax starts, and shapes are never promoted silently."""

import os

from alberta_data.xla import pin

os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
pin()
