"""How blocks are cut, and what they cost in memory."""

import numpy as np
import pytest

from alberta_data import generation
from alberta_data.errors import ArgumentError
from alberta_data.streams.synthetic import AbruptChangeStream


@pytest.mark.parametrize("features", [1, 20, 127, 128, 300, 10_000, 20_000_000])
def test_a_block_is_the_largest_power_of_two_within_8_mebibytes(features):
    length = generation.block_length(AbruptChangeStream(features))
    row = 4 * (features + 1)
    assert length == min(2**16, 1 << (max(1, 8 * 2**20 // row).bit_length() - 1))


def test_every_block_ends_at_a_multiple_of_the_checkpoint_steps():
    stops = [block.stop for block, _ in generation.blocks(AbruptChangeStream(1), 0, 300_000, block_steps=100_000)]
    assert stops == [100_000, 131_072, 231_072, 262_144, 300_000]


def test_between_two_blocks_the_callers_device_is_its_own():
    import jax

    before = jax.config.jax_default_device
    one, other = (generation.blocks(AbruptChangeStream(2), 0, 30, block_steps=10) for _ in range(2))
    assert next(one)[0].start == next(other)[0].start == 0
    assert jax.config.jax_default_device is before
    assert [len(list(one)), len(list(other))] == [2, 2]
    assert jax.config.jax_default_device is before


def test_going_on_from_a_state_gives_the_rest_of_the_stream():
    stream = AbruptChangeStream(3, change_interval=7)
    whole = np.concatenate([block.observations for block, _ in generation.blocks(stream, 1, 500)])
    head, state = next(generation.blocks(stream, 1, 123))
    arrays = generation.state_arrays(state)
    again = generation.state_from_arrays(stream, arrays)
    tail, _ = next(generation.blocks(stream, 1, 500, start=123, state=again))
    assert np.array_equal(np.concatenate([head.observations, tail.observations]), whole)
    assert tail.start == 123
    assert {name: array.dtype.name for name, array in arrays.items()} == {
        "key": "uint32", "true_weights": "float32", "step_count": "int32",
    }  # fmt: skip


@pytest.mark.parametrize("options", [
    {"block_steps": 0}, {"block_steps": 1.5}, {"block_steps": True}, {"start": 10}, {"start": -1}, {"start": 5},
])  # fmt: skip
def test_numbers_out_of_range_are_refused_before_anything_is_made(options):
    with pytest.raises(ArgumentError, match=r"must be|needs"):
        generation.blocks(AbruptChangeStream(2), 0, 10, **options)


def test_a_state_of_another_stream_is_refused():
    arrays = generation.state_arrays(generation.initial_state(AbruptChangeStream(2), 0))
    with pytest.raises(ArgumentError, match="true_weights of the state must be"):
        generation.state_from_arrays(AbruptChangeStream(3), arrays)
    with pytest.raises(ArgumentError, match="the state must have"):
        generation.state_from_arrays(AbruptChangeStream(2), {"key": arrays["key"]})
