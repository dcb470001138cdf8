#!/bin/sh
# A step-size study in one pass over the data: 9 learners of LMS, 9 of IDBD.
set -eu
STEPS=${1:-1e6}

path=$(alberta-data generate random-walk --steps "$STEPS" --drift-rate 0.01)
alberta-data learn "$path" --dry-run --step-size 0.001:0.1:log9
alberta-data learn "$path" --optimizer lms --step-size 0.001:0.1:log9 \
    --optimizer idbd --initial-step-size 0.01 --meta-step-size 0.0001:0.1:log9
