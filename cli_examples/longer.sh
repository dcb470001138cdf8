#!/bin/sh
# A longer dataset that begins with the one there is, and in what the two differ.
set -eu
STEPS=${1:-1e6}
LONGER=${2:-2e6}

path=$(alberta-data generate abrupt --steps "$STEPS" --change-interval 500)
longer=$(alberta-data extend "$path" --steps "$LONGER")
alberta-data verify "$longer"
alberta-data diff "$path" "$longer" || echo "exit code $?: not the same dataset"
