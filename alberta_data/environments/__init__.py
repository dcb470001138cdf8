"""Streams from Gymnasium environments: the only room that knows gymnasium.

    parameters.py        what determines a collection's numbers, read and written without gymnasium
    policy_text.py       `random|constant:A|epsilon:E:A`, read and checked without gymnasium
    features.py          stored rows → features, targets and transitions, in NumPy
    making.py            an environment from its parameters, and what is refused
    spaces.py            the layout of a space in a row
    actions.py           actions for the environment, from a policy, in a row
    ahead.py             a chain of keys, a block's numbers at once
    policies.py          random, constant, epsilon-greedy
    collector.py         an environment and a policy, stepped: the loop
    collection.py        parameters and a seed → blocks
    resuming.py          going on where a collection stopped
    gymnasium_stream.py  the public iterators and functions

The first three are quick to import; the others import gymnasium and are imported when something is collected.
"""
