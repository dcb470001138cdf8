#!/bin/sh
# An environment's steps frozen, then rewards, next states and values predicted from the same rows.
set -eu
STEPS=${1:-1e5}

path=$(alberta-data generate environment CartPole-v1 --steps "$STEPS" --policy epsilon:0.5:1)
alberta-data learn "$path" --optimizer autostep --mode reward
alberta-data learn "$path" --optimizer autostep --mode next_state
alberta-data learn "$path" --step-size 0.001 --td --gamma 0.9 --no-include-action
alberta-data reproduce "$path"
