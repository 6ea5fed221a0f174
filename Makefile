# Everything a contributor or a CI machine runs. Needs Python 3.11 or later, git, make and the package registries.
PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
CONFORMANCE := tests/conformance
FRAMEWORKS := tests/frameworks
UV := $(BIN)/uv
COMPILE = UV_CUSTOM_COMPILE_COMMAND="make lock" $(UV) pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links $(ARGS)
STRIP_FUNDING := import json, pathlib, sys; path = pathlib.Path(sys.argv[1]); lock = json.loads(path.read_text()); \
	[package.pop("funding", None) for package in lock["packages"].values()]; \
	path.write_text(json.dumps(lock, indent=2, ensure_ascii=False) + "\n")

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: demo test check bench timing load conformance review lock clean help

demo: .venv/.ready  ## run the demo app; ARGS=--once makes one tour and ends
	@$(BIN)/python -m nonsuch.adapters.demo.postly $(ARGS)

test: .venv/.ready  ## run all tests; fails under 95 % branch coverage of the kernel
	@$(BIN)/pytest --cov --cov-fail-under=95 --numprocesses=2 --dist=loadfile $(ARGS)

check: .venv/.ready  ## lint, format and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/mypy

bench: .venv/.ready  ## measure the performance bars
	@$(BIN)/python -m tests.bench.run $(ARGS)

timing: .venv/.ready  ## measure whether latency tells a hidden name from an absent one; ARGS=--pairs=4000 is quick
	@$(BIN)/python -m tests.timing.run $(ARGS)

load: .venv/.ready  ## measure `nonsuch serve` under a crowd, for ten minutes; ARGS=--seconds=60 is quick
	@$(BIN)/python -m tests.bench.endurance $(ARGS)

conformance: .venv/.ready  ## run the protocol's conformance suite over ASGI and WSGI; ARGS=URL runs it over that
	@$(BIN)/python -m tests.conformance.run $(ARGS)

review: .venv/.ready  ## properties, fuzzing, schema runs and kills at full depth; the Cedar corpus at NONSUCH_CEDAR_CORPUS
	@NONSUCH_PROFILE=review $(BIN)/pytest tests/properties tests/fuzz -q $(ARGS)
	@NONSUCH_PROFILE=review $(BIN)/pytest tests/adapters/http/test_schemathesis.py tests/adapters/edge/test_once.py -q $(ARGS)
	@$(BIN)/pytest tests/kernel/test_cedar_corpus.py -q $(ARGS)

lock: .venv/.ready  ## write the locks again; ARGS=--upgrade takes newer versions
	@$(COMPILE) --all-extras --group dev --output-file requirements.lock pyproject.toml
	@$(COMPILE) --output-file $(CONFORMANCE)/mcp1.lock $(CONFORMANCE)/mcp1.in
	@$(COMPILE) --output-file $(CONFORMANCE)/mcp2.lock $(CONFORMANCE)/mcp2.in
	@$(COMPILE) --output-file $(CONFORMANCE)/openapi.lock $(CONFORMANCE)/openapi.in
	@$(COMPILE) --constraint requirements.lock --output-file $(FRAMEWORKS)/frameworks.lock $(FRAMEWORKS)/frameworks.in
	@cd $(CONFORMANCE) && PATH="$(CURDIR)/$(BIN):$$PATH" npm install --package-lock-only --silent
	@# npm copies funding addresses into the lock: an install needs the hashes only
	@$(BIN)/python -c '$(STRIP_FUNDING)' $(CONFORMANCE)/package-lock.json

clean:  ## remove what these targets made
	@rm -rf .venv .venv-* $(CONFORMANCE)/node_modules $(CONFORMANCE)/.*.flock dist htmlcov .coverage .coverage.*
	@rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache tests/bench/results
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## list the targets
	@awk -F ':[^#]*## ' '/^[a-z]+:.*## / {printf "  make %-12s%s\n", $$1, $$2}' Makefile

# The locked environment: uv itself is taken from the lock, hash and all, and then installs the rest of it.
.venv/.locked: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv --clear .venv
	@awk '/^[^ #]/ {keep = /^uv==/} keep' requirements.lock > .venv/uv.lock
	@$(BIN)/python -m pip install --quiet --quiet --require-hashes --requirement .venv/uv.lock
	@$(UV) pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements.lock
	@touch $@

.venv/.ready: .venv/.locked pyproject.toml
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
