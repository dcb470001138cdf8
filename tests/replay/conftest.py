import jax
import pytest


@pytest.fixture(autouse=True)
def _strict_shapes():
    """Shapes of different rank are never broadcast by accident."""
    with jax.numpy_rank_promotion("raise"):
        yield
