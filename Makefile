# OpenEnv with a Rust core. `make help` lists what there is to run.

VENV ?= .venv
# A wheel fits one Python, so another VENV has wheels of its own.
DIST ?= $(if $(filter .venv,$(VENV)),dist,$(VENV)/dist)
UPSTREAM ?= $(HOME)/.cache/openenv-upstream
UPSTREAM_VERSION := 0.10.0
# The oldest that is spoken with.
OLD_UPSTREAM_VERSION := 0.3.0
OLD_UPSTREAM ?= $(HOME)/.cache/openenv-upstream-$(OLD_UPSTREAM_VERSION)
PYTEST_OPTIONS ?=

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# A toolchain installed a moment ago is found without a new shell.
export PATH := $(HOME)/.cargo/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of interpreters, which would compile what they import each time.
unexport PYTHONDONTWRITEBYTECODE
export PYO3_PYTHON := $(abspath $(VENV)/bin/python)
export OPENENV_UPSTREAM_PYTHON ?= $(UPSTREAM)/bin/python
export OPENENV_OLD_UPSTREAM_PYTHON ?= $(OLD_UPSTREAM)/bin/python

BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# Asked in the recipe: what make itself lists is from before the build.
WHEEL := $$(ls $(abspath $(DIST))/openenv-*.whl)
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust \( -name target -o -path rust/fuzz -o -path rust/openenv-autobahn \) -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print)
PYTHON_SOURCES := pyproject.toml README.md LICENSE $(shell find python \( -name '*.py' -o -name '*.pyi' -o -name py.typed -o -name '*.in' -o -name '*.json' \) -print)

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)$$/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: setup
setup: $(STAMPS)/dependencies ## make .venv, build the release wheel and install it with its dependencies

.PHONY: demo
demo: setup ## 1,000 concurrent sessions play 3,000 episodes of grid_world_env
	$(BIN)/openenv rollout grid_world_env --sessions 1000 --episodes 3000

.PHONY: test
test: setup ## cargo test, then the whole Python suite with the built wheel
	cargo test --locked
	OPENENV_WHEEL="$(WHEEL)" .ci/pytest-halves.sh $(BIN)/pytest $(PYTEST_OPTIONS)

# What is said of the core, of both its twins; the rest of the suite runs on Rust.
PURE_TESTS := tests/unit/native tests/unit/client tests/unit/env_server tests/property \
	tests/integration/client tests/integration/server/test_websocket.py tests/integration/server/test_http.py

.PHONY: test-pure
test-pure: setup ## the tests of the client, the codec and the WebSocket server, on plain Python instead of Rust
	OPENENV_PURE_PYTHON=1 $(BIN)/pytest $(PURE_TESTS) --ignore tests/integration/client/test_many_sockets.py $(PYTEST_OPTIONS)

.PHONY: check
check: check-rust check-unsafe check-python check-types check-imports check-crates docs ## formatters, linters, unsafe code, types, floors of imports, list of crates, the site

.PHONY: docs
docs: setup ## build the site of docs/ into site/: links are checked, nothing is loaded from elsewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --site-dir site
	@! grep -rlE '<(script|link|img|iframe)[^>]* (src|href)="(https?:)?//' site --include='*.html'

.PHONY: wheel
wheel: $(DIST)/stamp ## build the release wheel into dist/
	@echo "$(WHEEL)"

.PHONY: peers
peers: $(UPSTREAM)/ready-$(UPSTREAM_VERSION) $(OLD_UPSTREAM)/ready ## install upstream's own packages, newest and oldest, as peers for tests

.PHONY: conformance
conformance: setup peers ## golden transcripts, upstream as a peer, and the whole Autobahn suite
	$(BIN)/pytest tests/conformance tests/peers $(PYTEST_OPTIONS)
	$(BIN)/python tests/conformance/autobahn/run.py

.PHONY: conformance-quick
conformance-quick: setup ## the quick groups of the Autobahn suite, client and server
	$(BIN)/python tests/conformance/autobahn/run.py --quick

FUZZ_SECONDS ?= 30
.PHONY: fuzz
fuzz: require-cargo ## fuzz every target for FUZZ_SECONDS (30); needs a nightly toolchain
	rust/fuzz/run.sh $(FUZZ_SECONDS)

# Rivals have a virtual environment of their own, with what makes them fast.
RIVALS ?= $(HOME)/.cache/openenv-rivals
BENCH_OPTIONS ?=
.PHONY: bench
bench: setup $(RIVALS)/ready-$(UPSTREAM_VERSION) ## client CPU a step, ours against upstream's client, on upstream's server
	$(BIN)/python benches/python/classic_client.py --upstream-python $(RIVALS)/bin/python $(BENCH_OPTIONS)

.PHONY: sanitize
sanitize: setup ## tests of the Rust code under AddressSanitizer; needs a nightly toolchain
	rust/sanitize.sh $(BIN)/python

.PHONY: nightly
nightly: setup peers ## the long runs: properties with many cases, sanitizer, conformance, half an hour of fuzzing a target
	PROPTEST_CASES=20000 cargo test --release --locked
	$(MAKE) sanitize
	$(BIN)/python -m pip install --quiet 'ray>=2.40'
	$(BIN)/pytest -m nightly $(PYTEST_OPTIONS)
	$(MAKE) conformance
	$(MAKE) fuzz FUZZ_SECONDS=1800

.PHONY: format
format: setup ## rewrite the sources as the formatters want them
	cargo fmt --all
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

.PHONY: clean
clean: ## remove everything that was built here
	rm -rf $(VENV) $(DIST) target site

# --- parts of `check` ---

.PHONY: check-rust check-unsafe check-python check-types check-imports check-crates
check-rust: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

# The binding alone may have unsafe code, and every crate has the lints that ask for its reasons.
check-unsafe:
	@diff <(echo rust/openenv-py/src/lib.rs) <(grep -Lx '#!\[forbid(unsafe_code)\]' rust/*/src/lib.rs rust/*/src/bin/*.rs)
	@diff /dev/null <(grep -Lx 'workspace = true' rust/openenv-*/Cargo.toml) # of [lints]

check-python: setup
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .

check-types: setup
	$(BIN)/mypy python envs
	MYPYPATH=python $(BIN)/stubtest openenv._rust --allowlist .ci/stubtest-allowlist.txt
	$(BIN)/pytest -q tests/typing

check-imports: setup
	PYTHONPATH=python:envs $(BIN)/lint-imports

# A new crate needs a decision record and a line in .ci/crates.txt.
check-crates: require-cargo
	cargo tree --package openenv-py --edges normal --prefix none --format '{p}' --locked \
		| cut -d' ' -f1 | LC_ALL=C sort -u | diff .ci/crates.txt -

# --- set-up, a stamp a part ---

$(STAMPS)/venv:
	@python=""; \
	for candidate in python3 python3.13 python3.12 python3.11 python3.14; do \
		if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then echo "Python 3.11 or newer with its venv module is missing: install python3.11 and python3.11-venv (or set PATH)" >&2; exit 1; fi; \
	echo "set-up: $$($$python --version) in $(VENV)"; \
	[ -x $(BIN)/python ] || $$python -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/maturin: $(STAMPS)/venv
	$(BIN)/python -m pip install --quiet 'maturin>=1.9.4,<2'
	@touch $@

.PHONY: require-cargo
require-cargo:
	@command -v cargo >/dev/null || { echo "Rust is missing; get it with: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal -c clippy -c rustfmt" >&2; exit 1; }

$(DIST)/stamp: $(RUST_SOURCES) $(PYTHON_SOURCES) | require-cargo $(STAMPS)/maturin
	@rm -f $(DIST)/openenv-*.whl
	$(BIN)/maturin build --release --locked --quiet --interpreter $(BIN)/python --out $(DIST)
	@touch $@

$(STAMPS)/installed: $(DIST)/stamp
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps $(DIST)/openenv-*.whl
	@touch $@

$(STAMPS)/dependencies: pyproject.toml $(STAMPS)/installed
	@if [ ! -e $@ ] || [ pyproject.toml -nt $@ ]; then \
		set -x; $(BIN)/python -m pip install --quiet "openenv[dev] @ file://$(WHEEL)"; \
	fi
	@touch $@

$(UPSTREAM)/ready-$(UPSTREAM_VERSION): | $(STAMPS)/venv
	$(BIN)/python -m venv $(UPSTREAM)
	$(UPSTREAM)/bin/python -m pip install --quiet openenv==$(UPSTREAM_VERSION) numpy
	@touch $@

$(OLD_UPSTREAM)/ready: | $(STAMPS)/venv
	$(BIN)/python -m venv $(OLD_UPSTREAM)
	$(OLD_UPSTREAM)/bin/python -m pip install --quiet openenv==$(OLD_UPSTREAM_VERSION) numpy
	@touch $@

$(RIVALS)/ready-$(UPSTREAM_VERSION): | $(STAMPS)/venv
	$(BIN)/python -m venv $(RIVALS)
	$(RIVALS)/bin/python -m pip install --quiet openenv==$(UPSTREAM_VERSION) uvloop
	@touch $@
