# `make help` lists the targets. Needs Linux, make and Python 3.11 or later, nothing else.

.DEFAULT_GOAL := help
.PHONY: help audit test test-full test-realworld lint types base-image sglang-images bench lock check clean

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# Spread over the cores, but tests that share something expensive (a built wheel) stay together.
SPREAD := -n auto --dist loadgroup

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

# MODULE= anything importable, PYTHON= its interpreter, ARGS= further options.
audit: .venv/stamp  ## audit the demo actor, or MODULE=... [PYTHON=...] [ARGS=...]
ifdef MODULE
	@$(BIN)/importaudit $(if $(PYTHON),--python $(PYTHON)) $(ARGS) $(MODULE)
else
	@python=$$($(BIN)/python scripts/env.py demo --print-python) && cd Dockerfiles/demo && \
		$(CURDIR)/$(BIN)/importaudit --python "$$python" $(ARGS) demo_actor
endif

test: .venv/stamp  ## the tests that take seconds
	$(PYTEST) $(SPREAD)

test-full: .venv/stamp  ## those and the slow ones
	$(PYTEST) $(SPREAD) -m "not realworld"

# One at a time: these measure.
test-realworld: .venv/stamp  ## audits of real projects (CPython 3.11, x86_64, 8 GB of disk)
	$(PYTEST) -m realworld --timeout 1800

lint: .venv/stamp  ## style, formatting, and which way imports may point
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

types: .venv/stamp  ## mypy, strict; the guest code also as its oldest interpreter reads it
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 -p importaudit.probe

base-image: .venv/stamp  ## a small Debian image with Python, for tests (root; or BASE_IMAGE=...)
	@$(BIN)/python scripts/images.py base

sglang-images: .venv/stamp  ## the real sglang as images, with bytecode and without (25 GB of disk)
	@$(BIN)/python scripts/images.py sglang

bench: .venv/stamp  ## measure this project's own speed
	$(PYTEST) tests/bench -o python_files='bench_*.py' -o python_functions='bench_*' -s --timeout 0; \
		status=$$?; $(BIN)/python scripts/figures.py; exit $$status

# What this machine's pip is configured to (mirrors, local wheels) must not end up in a lock;
# only the certificates it trusts stay. pip-compile resolves for the Python it runs on: the lock
# carries the hashes of every wheel of a release, so later ones use it too as long as those exist.
lock: .venv/stamp  ## pin and hash the demo's requirements again
	unset $$(env | sed -n 's/^\(PIP_[A-Z0-9_]*\)=.*/\1/p' | grep -vx PIP_CERT); \
	PIP_CONFIG_FILE=/dev/null CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet \
		--upgrade --generate-hashes --allow-unsafe --strip-extras --no-config \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
		--output-file Dockerfiles/demo/requirements.txt Dockerfiles/demo/requirements.in

check: lint types test-full test-realworld  ## all of it

clean:  ## remove all that was built here
	rm -rf .venv .cache dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find audits lazyimports build scripts tests Dockerfiles -name __pycache__ -exec rm -rf {} +

# Made anew when pyproject.toml changed: an old environment would hide a missing dependency.
.venv/stamp: pyproject.toml
	@for python in python3 python3.14 python3.13 python3.12 python3.11; do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			set -ex; $$python -m venv --clear .venv; \
			$(BIN)/python -m pip install -q -e '.[test]'; \
			touch $@; exit 0; \
		fi; \
	done; \
	echo "make: importaudit needs Python 3.11 or later: neither python3 nor python3.11" \
		"to python3.14 on PATH is one that runs. Install one and try again." >&2; exit 1
