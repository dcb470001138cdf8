# What a person calls, and what continuous integration calls. PYTHON=… chooses the interpreter; each version has its
# own environment, set up by the first target that needs it.

PYTHON ?= python3
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
VENV ?= .venv-$(VERSION)
BIN := $(VENV)/bin
# What was tested, where this version was; otherwise the bounds of pyproject.toml alone.
CONSTRAINTS := $(wildcard constraints/python$(VERSION).txt)
DEMO ?= demo

.PHONY: demo test check bench torture clean

demo: $(VENV)/.installed  ## generate ten million steps, learn from them, verify them
	mkdir -p $(DEMO)
	cd $(DEMO) && ../$(BIN)/alberta-data generate abrupt --steps 1e7
	cd $(DEMO) && ../$(BIN)/alberta-data learn datasets/abrupt-d20-1e7-s0.zarr --optimizer autostep
	cd $(DEMO) && ../$(BIN)/alberta-data verify datasets/abrupt-d20-1e7-s0.zarr

test: $(VENV)/.dev  ## everything but the long counts
	$(BIN)/python -m pytest -n 2 --dist worksteal

torture: $(VENV)/.dev  ## the long counts of the reliability tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m torture

check: $(VENV)/.dev  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev  ## the table of what was reached, as ratios within this run
	$(BIN)/python -m benchmarks

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml $(CONSTRAINTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(addprefix -c ,$(CONSTRAINTS)) -e .
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml $(CONSTRAINTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(addprefix -c ,$(CONSTRAINTS)) -e '.[dev]'
	touch $@ $(VENV)/.installed

clean:
	rm -rf .venv-* demo
