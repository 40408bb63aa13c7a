# SPDX-License-Identifier: Apache-2.0
# Needs Python >= 3.10 with venv, make and g++; everything else is installed into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(shell find core bindings machines -type f) CMakeLists.txt pyproject.toml

.PHONY: install demo test lint bench test-asan test-tsan format clean

install: $(VENV)/.installed

$(VENV)/.dependencies: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

# Editable: Python sources are live; the native part is rebuilt, incrementally, when a file of it changes.
$(VENV)/.installed: $(VENV)/.dependencies $(NATIVE)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	touch $@

demo: install
	$(BIN)/manyscale demo

test: install lint
	$(BIN)/python -m pytest

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_includes.py
	find core bindings tests -name '*.cpp' -o -name '*.hpp' | xargs $(BIN)/clang-format --dry-run --Werror

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	find core bindings tests -name '*.cpp' -o -name '*.hpp' | xargs $(BIN)/clang-format -i

bench: install
	for benchmark in benchmarks/*.py; do $(BIN)/python $$benchmark || exit 1; done

clean:
	rm -rf $(VENV) build
