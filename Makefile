# Everything a developer does, one word each. `make help` lists the words.
#
# Stamps live inside .venv, so removing .venv starts over. Nothing is installed twice: a second `make run` finds
# every stamp newer than what it depends on, and no module of the core changed.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUF := proto/node_modules/.bin/buf
# Go comes from where its installer puts it, unless the PATH has another.
export PATH := $(CURDIR)/$(BIN):$(PATH):/usr/local/go/bin
# Some machines tell Python to keep nothing it compiled. Each server of a test would then compile all its modules, which
# is a third of its start.
unexport PYTHONDONTWRITEBYTECODE

# The distributions that make a server, each with a pyproject.toml.
PARTS := . sdks/python cli

COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	--no-emit-package fila-mq --no-emit-package fila-cli
# What only tests run is compiled when it is first imported: most of it never is. To compile all of it takes as long
# as everything else that pip does.
PIP_FOR_TESTS := -m pip install --quiet --require-hashes --no-compile
PYTEST ?= pytest
PYTEST_ARGS ?=

# What each part adds to the words below. A part in another language has a `rules.mk` in its own folder, which
# appends its targets here, so that nobody has to change this file to add one.
SETUP :=
TEST :=
CHECK :=
GENERATED := sdks/python/src/fila/v1 docs/api-reference.md cli/src/fila_http/v1 \
	$(addprefix server/src/fila_server/core/protocol/,v1.pxd seam.pxd)
include $(wildcard sdks/*/rules.mk pipeline/rules.mk bench/*/rules.mk tools/*/rules.mk console/rules.mk)

.PHONY: help setup build run test test-all test-python test-alone test-core test-chosen durations check check-python bench bench-check soak soak-slices planted-faults gen gen-check fmt lock clean

help: ## Show these words
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.system-dev $(VENV)/.dev $(BUF) build $(SETUP) ## Install everything that developing takes

# setup.py finds what changed by content, in half a second; times would miss a module that was renamed or removed.
build: $(VENV)/.commands ## Build the server and the CLI into .venv/bin
	@$(BIN)/python setup.py --quiet build_ext --inplace

run: build ## Build, then start fila-server on port 5555 with its data in ./data
	@exec $(BIN)/fila-server

# Tests wait for syncs, leases and processes more than they compute. So Python's run three at a time, and the languages
# beside them, the longest first; what judges a pace runs alone, when all others are done. What each test costs is kept
# in build/costs.
LONGEST := test-pipeline test-python test-conformance
test: $(if $(strip $(PYTEST_ARGS)),test-chosen,test-all) ## Build, then run every test in every language

test-all: build
	@rm -rf build/costs && mkdir -p build/costs
	@$(MAKE) --no-print-directory -j3 --output-sync=target $(LONGEST) $(filter-out $(LONGEST),$(TEST)); others=$$?; \
	$(MAKE) --no-print-directory test-alone && exit $$others

test-python: build $(VENV)/.dev ## Run the tests of the broker, the Python SDK, the CLI and the console, but for test-alone
	FILA_COSTS=$(CURDIR)/build/costs/python.jsonl $(PYTEST) -n 3 --dist loadfile \
		--no-loadscope-reorder -m 'not alone'

test-alone: build $(VENV)/.dev ## Run the tests that nothing may run beside: they judge a pace, or what a machine bears
	FILA_COSTS=$(CURDIR)/build/costs/alone.jsonl \
		$(PYTEST) -m alone $$(grep -rl --include='test_*.py' 'mark\.alone' tests)

test-core: build $(VENV)/.dev ## After a change of the core: build, then its tests, the store's and the simulations
	$(PYTEST) -n 2 --dist loadfile -m 'not e2e' tests/core tests/store tests/simulation

test-chosen: build $(VENV)/.dev
	$(PYTEST) $(PYTEST_ARGS)

durations: $(VENV)/.dev ## What each file of tests took in the last make test, and the costliest tests, into docs/proof
	python -m tests.costs

check: check-python $(CHECK) ## Formats, lint, types, import layers, contract, generated code, in every language

check-python: $(VENV)/.dev $(BUF) ## The same for Python and proto files: under a minute
	ruff format --check .
	ruff check .
	mypy
	lint-imports
	python tools/house.py
	$(BUF) lint
	$(BUF) format --diff --exit-code
	@$(MAKE) --no-print-directory gen-check

bench: build $(VENV)/.dev ## Measure, and print a table (ONLY=a,b QUICK=1 MARKDOWN=docs/benchmarks.md)
	python bench/run.py $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick) $(if $(MARKDOWN),--markdown $(MARKDOWN))

bench-check: build $(VENV)/.dev ## Is this tree slower than another commit? (AGAINST=792dccc ONLY=headline PAIRS=15)
	python bench/check.py

soak: soak-slices ## The long runs in slices, on from where they stopped (FOR=minutes ONLY="kills policy")

soak-slices: build $(VENV)/.dev
	python -m tests.soak $(if $(FOR),--for $(FOR)) $(if $(BY),--by $(BY)) $(ONLY)

planted-faults: build $(VENV)/.dev ## Plant faults in the core, one by one: two tests find each (ONLY=names)
	python -m tests.faults.plant $(ONLY)

gen: $(VENV)/.dev $(BUF) ## Generate code from proto/
	rm -f sdks/python/src/fila/v1/*_pb2*
	$(BUF) generate

# Generates aside and compares, so that a difference is shown and nothing is touched.
gen-check: $(VENV)/.dev $(BUF) ## Fail if generating again would change anything
	@rm -rf build/gen-check && mkdir -p build/gen-check
	@$(BUF) generate --output build/gen-check
	@for made in $(GENERATED); do \
		diff -r --exclude=__init__.py --exclude=__pycache__ build/gen-check/$$made $$made \
		|| { echo "The generated code is not current: run make gen." >&2; exit 1; }; \
	done

fmt: $(VENV)/.dev $(BUF) ## Format Python and proto files
	ruff format .
	ruff check --fix-only --quiet .
	$(BUF) format --write

lock: $(VENV)/.dev ## Resolve pyproject.toml and requirements/*.in again
	$(COMPILE) pyproject.toml requirements/build.in -o requirements/build.txt
	$(COMPILE) pyproject.toml requirements/dev.in -o requirements/dev.txt
	$(COMPILE) pyproject.toml --extra console --extra http -c requirements/build.txt -o requirements/server.txt
	$(COMPILE) requirements/wheel.in -o requirements/wheel.txt
	$(COMPILE) requirements/stubs.in -o requirements/stubs.txt
	$(COMPILE) requirements/site.in -o requirements/site.txt
	$(COMPILE) requirements/oldest.in -o requirements/oldest.txt

clean: ## Remove what was built; the data directory stays
	rm -rf build dist $(VENV) proto/node_modules .pytest_cache .mypy_cache .ruff_cache *.egg-info
	find server cli sdks tests \( -name '*.so' -o -name __pycache__ \) -prune -exec rm -rf {} +
	find cli sdks/python -name '*.egg-info' -prune -exec rm -rf {} +

# --- how it gets there -----------------------------------------------------------------------------------------

$(VENV)/.system-build: tools/system-packages
	@PYTHON=$(PYTHON) tools/system-packages build
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.system-dev: $(VENV)/.system-build
	@PYTHON=$(PYTHON) tools/system-packages dev
	@touch $@

$(VENV)/.system-release: $(VENV)/.system-dev
	@PYTHON=$(PYTHON) tools/system-packages release
	@touch $@

$(VENV)/.build: $(VENV)/.system-build requirements/build.txt
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/build.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.build $(VENV)/.system-dev requirements/dev.txt
	$(BIN)/python $(PIP_FOR_TESTS) -r requirements/dev.txt
	@touch $@

# The two commands, importing from this tree; the compiled modules are the next target's business.
$(VENV)/.commands: $(VENV)/.build $(PARTS:%=%/pyproject.toml)
	@FILA_MODULES=none $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation $(PARTS:%=--editable ./%)
	@touch $@

$(BUF): proto/package-lock.json proto/package.json $(VENV)/.system-dev
	npm ci --prefix proto --no-fund --no-audit --ignore-scripts --loglevel=error
	@mkdir -p $(dir $@) && ln -sf ../$$(cd proto/node_modules && echo @bufbuild/buf-linux-*)/bin/buf $@
	@touch $@
