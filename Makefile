# SPDX-License-Identifier: Apache-2.0
# Needs Python >= 3.10 with venv, make and g++; everything else is installed into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILD := build/editable
JOBS := $(shell nproc)
NATIVE := $(shell find core bindings cudart guard machines runtime cmake -type f) CMakeLists.txt pyproject.toml

.PHONY: install develop demo wheel docs validation test test-core test-cuda lint lint-types lint-python lint-cpp lint-alone lint-text bench test-asan test-tsan test-cudart \
  coverage mutation fuzz newcomer docs-outputs format clean FORCE

install: $(VENV)/.installed
# With the tools for tests, checks and documentation.
develop: $(VENV)/.dependencies install

# What builds the package, and what its tests need besides: much more.
$(VENV)/.build-tools: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group build
	touch $@

$(VENV)/.dependencies: $(VENV)/.build-tools
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

# Editable: Python sources are live; the native part is rebuilt, incrementally, when a file of it changes.
$(VENV)/.installed: $(VENV)/.build-tools $(NATIVE)
	touch $@.new  # before the build, so that a file changed during it is built next time
	$(BIN)/python tools/build_progress.py $(BIN)/python -m pip install --verbose --no-build-isolation --editable . \
	  --config-settings=build-dir=$(BUILD) $(CORE_TESTS)
	$(BIN)/python -m nanobind.stubgen --quiet --module manyscale._core --pattern-file bindings/stubs.pattern \
	  --output-file src/manyscale/_core.pyi
	$(BIN)/python tools/make_spec_stubs.py src/manyscale/machine/core_specs.pyi
	mv $@.new $@

demo: install
	$(BIN)/manyscale demo

# A wheel that runs on any processor of this architecture, in dist; for one of the stable ABI take PYTHON=python3.12 or
# later. It is installed into an empty environment and tried there without a compiler.
wheel: WHEEL_BIN = .venv-wheel/bin
wheel:
	test -x $(WHEEL_BIN)/python || $(PYTHON) -m venv .venv-wheel
	$(WHEEL_BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(WHEEL_BIN)/python -m pip install --quiet --group wheel
	rm -rf build/wheel dist
	$(WHEEL_BIN)/python tools/build_progress.py $(WHEEL_BIN)/python -m pip wheel --verbose --no-deps --no-build-isolation . \
	  --wheel-dir build/wheel --config-settings=build-dir=build/portable --config-settings=install.strip=true \
	  --config-settings=cmake.define.MANYSCALE_PORTABLE=ON
	PATH=$(WHEEL_BIN):$$PATH $(WHEEL_BIN)/python -m auditwheel repair --plat auto --wheel-dir dist build/wheel/*.whl
	MANYSCALE_WHEEL=$$(echo dist/*.whl) $(WHEEL_BIN)/python -m pytest --noconftest -p no:cacheprovider tests/install/test_wheel.py

# The documentation as a site, in build/site.
docs: develop
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# What README, tutorials and how-to pages show of their commands, made again; with PICTURES=1 (needs Chromium) their pictures.
docs-outputs: develop
	$(BIN)/python tools/update_docs_outputs.py $(if $(PICTURES),--pictures)

# The README to the letter, in a fresh clone and an empty environment: installs, compiles and takes minutes.
newcomer: develop
	$(BIN)/python tests/newcomer/newcomer.py

# The tables of docs/validation.md, re-measured; with PROGRAMS=DIR also those of programs that you have built.
validation: develop
	$(BIN)/manyscale validate --markdown docs/validation.md
	$(BIN)/manyscale validate --isa both --markdown docs/validation.md $(BUILT)  # kernels as PTX and as SASS
validation: BUILT = $(if $(PROGRAMS),--programs $(PROGRAMS))

# Tests that measure time or memory do so within bounds that hold beside another test.
test: develop lint test-core
	$(BIN)/python -m pytest $(IN_PARALLEL)
test: IN_PARALLEL = --numprocesses $(JOBS) --maxprocesses 8 --dist worksteal
# What has to be built is built at once, the programs that test the core with the package.
test test-core: CORE_TESTS = --config-settings=cmake.define.MANYSCALE_CORE_TESTS=ON

# All CUDA programs of the tests in four forms (PTX and SASS, with time and without), where nvcc is installed;
# `make test` takes a few of them.
test-cuda: develop
	MANYSCALE_ALL_CUDA=1 $(BIN)/python -m pytest tests/cuda/test_programs.py tests/test_fixtures.py

# The CUDA runtime library and its test programs with sanitizers.
test-cudart: develop
	$(BIN)/python tests/cudart/sanitize.py address,undefined
	$(BIN)/python tests/cudart/sanitize.py thread

# The core alone, without Python, of the objects that were compiled for the package.
test-core: install
	$(BIN)/cmake --build $(BUILD) --target core_tests > build/core.log || { cat build/core.log; exit 1; }
	$(BIN)/ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS)

# The tests that touch the core, with the core instrumented. The interpreter is not, so the sanitizer's library is
# loaded first; Python's own leaks at exit are not ours to report.
ASAN_LIBRARIES = $(shell g++ -print-file-name=libasan.so):$(shell g++ -print-file-name=libubsan.so)
test-asan: LIBRARIES = $(ASAN_LIBRARIES)
test-asan: TESTS = -m "core and not long"
# A failed allocation is an answer, as without the sanitizer. What it finds would be lost in pytest's capture.
test-asan: export ASAN_OPTIONS = detect_leaks=0:allocator_may_return_null=1:log_path=$(CURDIR)/build/asan/report
test-asan: export UBSAN_OPTIONS = print_stacktrace=1:log_path=$(CURDIR)/build/asan/report
test-tsan: LIBRARIES = $(shell g++ -print-file-name=libtsan.so)
test-tsan: TESTS = -m parallel $(wildcard tests/engine tests/system tests/memory)
test-tsan: export TSAN_OPTIONS = ignore_noninstrumented_modules=1 halt_on_error=1 log_path=$(CURDIR)/build/tsan/report
test-asan: .venv-asan/.installed
test-tsan: .venv-tsan/.installed
# In processes of their own, so that a finding ends one test and not all.
test-asan test-tsan:
	rm -f build/$(@:test-%=%)/report.*
	LD_PRELOAD=$(LIBRARIES) .venv-$(@:test-%=%)/bin/python -m pytest $(TESTS) -p no:cacheprovider \
	  --numprocesses $(JOBS) --maxprocesses 8 --dist worksteal || { cat build/$(@:test-%=%)/report.*; exit 1; }

# Damaged files of every format, for a while, with the core instrumented; what it finds is kept in build/fuzz.
fuzz: SECONDS = 60
fuzz: .venv-asan/.installed
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 LD_PRELOAD=$(ASAN_LIBRARIES) .venv-asan/bin/python tests/fuzz/campaign.py --seconds $(SECONDS)

.venv-asan/.installed: SANITIZE = address,undefined
.venv-tsan/.installed: SANITIZE = thread
.venv-asan/.installed .venv-tsan/.installed: $(VENV)/.dependencies FORCE
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(@D)/bin/python -m pip install --quiet --group dev
	$(@D)/bin/python -m pip install --quiet --no-build-isolation --editable . \
	  --config-settings=build-dir=build/$(@D:.venv-%=%) --config-settings=cmake.define.MANYSCALE_SANITIZE=$(SANITIZE) \
	  --config-settings=cmake.build-type=RelWithDebInfo
	touch $@
FORCE:

# Which lines the tests run, of C++ (gcov) and of Python: tables in build/coverage, and totals in CONTRIBUTING.md.
# With TESTS=tests/engine, say, only those tests, and no totals. Instrumented, a test may miss its bound of time: the
# lines count all the same.
coverage: COVERAGE_BIN = .venv-coverage/bin
coverage: export COVERAGE_RCFILE = $(CURDIR)/pyproject.toml
coverage: $(VENV)/.dependencies
	test -x $(COVERAGE_BIN)/python || $(PYTHON) -m venv .venv-coverage
	$(COVERAGE_BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(COVERAGE_BIN)/python -m pip install --quiet --group dev
	$(COVERAGE_BIN)/python -m pip install --quiet --no-build-isolation --editable . \
	  --config-settings=build-dir=build/coverage/build --config-settings=cmake.define.MANYSCALE_COVERAGE=ON \
	  --config-settings=cmake.define.MANYSCALE_CORE_TESTS=ON --config-settings=cmake.build-type=Debug
	find build/coverage -name '*.gcda' -delete
	rm -f build/coverage/python build/coverage/python.*
	test -n "$(TESTS)" || $(BIN)/ctest --test-dir build/coverage/build --output-on-failure --parallel $(JOBS)
	-$(COVERAGE_BIN)/python -m coverage run -m pytest --numprocesses $(JOBS) --maxprocesses 8 --dist worksteal \
	  -p no:cacheprovider $(TESTS)
	$(COVERAGE_BIN)/python tools/coverage_report.py build/coverage $(if $(TESTS),,CONTRIBUTING.md)

# Small faults are put into the core, one at a time: which of them do these tests not notice? The tree stays as it is.
# PROGRAMS are those of tests/core that are tried first.
mutation: install
	$(BIN)/python tools/mutation.py $(FILES) $(if $(PROGRAMS),--programs $(PROGRAMS)) --tests $(TESTS) --count $(or $(COUNT),20)

lint: develop
	$(MAKE) --no-print-directory --jobs $(JOBS) --output-sync lint-types lint-python lint-cpp lint-text

lint-types:
	$(BIN)/mypy

lint-python:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

lint-cpp:
	$(BIN)/python tools/check_includes.py
	find core bindings cudart guard tests -name '*.[ch]pp' | \
	  xargs --max-procs $(JOBS) --max-args 32 $(BIN)/clang-format --dry-run --Werror

# Every source of the core compiles alone, which takes minutes; for another architecture with CXX=aarch64-linux-gnu-g++.
lint-alone:
	find core cudart guard -name '*.cpp' | \
	  xargs --max-procs $(JOBS) --max-args 1 $(CXX) -std=c++20 -Wall -Wextra -Werror -fsyntax-only -Icore

# Words and sizes: what is left is in tools/banned_words_left.toml and tools/size_exceptions.toml.
lint-text:
	$(BIN)/python tools/check_words.py
	$(BIN)/python tools/check_sizes.py

format: develop
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	find core bindings cudart guard tests -name '*.[ch]pp' | xargs $(BIN)/clang-format -i

bench: develop
	for benchmark in benchmarks/*.py; do $(BIN)/python $$benchmark || exit 1; done

clean:
	rm -rf $(VENV) build
