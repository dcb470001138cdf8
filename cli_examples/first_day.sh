#!/bin/sh
# A stream frozen, learned from, verified, made again: the main job, end to end.
set -eu
STEPS=${1:-1e6}

alberta-data streams
path=$(alberta-data generate abrupt --steps "$STEPS" --seed 0)
alberta-data show "$path"
alberta-data learn "$path" --optimizer lms --optimizer idbd --optimizer autostep
alberta-data verify "$path"
alberta-data reproduce "$path"
alberta-data list
