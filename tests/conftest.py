"""The test room: the compiler's settings stand before jax starts."""

from alberta_data.xla import pin

pin()
