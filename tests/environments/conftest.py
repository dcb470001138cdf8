"""Registers the small environments."""

from tests.environments import small  # noqa: F401
