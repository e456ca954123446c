# fleettui: every target does its own set-up. `make help` lists them.
#
#   PYTHON=python3.12   the interpreter of a new environment
#   ARGS="…"            more arguments for demo, test and bench:  make test ARGS="tests/unit -k route"
#   SECONDS=600         how long fuzz and soak run
#   JOBS=4              test processes at once (default: one for each core)

SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export PIP_DISABLE_PIP_VERSION_CHECK := 1

BIN := .venv/bin
JOBS ?= auto
ARGS ?=
SECONDS ?= 600
# Only a PYTHON given by the caller counts.
ifdef PYTHON
export PYTHON
endif
# What an activated environment or another project left behind must not reach ours.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME

CODE := src tests benchmarks scripts

.PHONY: help demo run test check format fix lint types imports spelling bench fuzz soak screenshots pages pins \
	setup-runtime setup-test setup-check clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: setup-runtime  ## the dashboard on a simulated fleet of real SSH servers
	@$(BIN)/fleettui demo $(ARGS)

run: setup-runtime  ## the dashboard on your own machines/ folder
	@$(BIN)/fleettui $(ARGS)

test: setup-test  ## every test
	@$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

check: setup-check  ## format, lint, types, imports, spelling, then every test
	@$(MAKE) format
	@$(MAKE) lint
	@$(MAKE) types
	@$(MAKE) imports
	@$(MAKE) spelling
	@$(MAKE) test

format: setup-check  ## is everything formatted?
	@$(BIN)/ruff format --check --quiet $(CODE) || { echo 'format: run make fix'; exit 1; }
	@echo 'format: ok'

fix: setup-check  ## format, and repair what lint can
	@$(BIN)/ruff check --fix --quiet $(CODE) || true
	@$(BIN)/ruff format $(CODE)

lint: setup-check  ## ruff
	@$(BIN)/ruff check --quiet $(CODE)
	@echo 'lint: ok'

types: setup-check  ## mypy --strict
	@$(BIN)/mypy
	@echo 'types: ok'

imports: setup-check  ## who may import whom
	@$(BIN)/lint-imports > .venv/imports.log 2>&1 || { cat .venv/imports.log; exit 1; }
	@echo 'imports: ok'

spelling: setup-check  ## codespell
	@git ls-files -z --cached --others --exclude-standard | xargs -0 $(BIN)/codespell
	@echo 'spelling: ok'

bench: setup-test  ## measure; prints each figure beside its goal
	@sh scripts/system.sh test
	@$(BIN)/python benchmarks/run.py $(ARGS)

screenshots: setup-test  ## render the real app on the demo fleet into screenshots/
	@sh scripts/system.sh screenshots
	@$(BIN)/python scripts/screenshots.py $(ARGS)

pages: setup-runtime  ## make docs/remote-commands.md, docs/restricted-key.sh, docs/keys.md and the tables of docs/filter.md and docs/screens anew from the code
	@$(BIN)/python scripts/remote_commands.py
	@$(BIN)/python scripts/filter_page.py
	@$(BIN)/python scripts/keys_page.py

fuzz: setup-test  ## SECONDS=600 of damaged answers for every parser
	@$(BIN)/python tests/contract/fuzz.py --seconds $(SECONDS) $(ARGS)

soak: setup-test  ## SECONDS=600 of faults around the dashboard: memory, tasks, connections, recovery
	@sh scripts/system.sh test
	@$(BIN)/python benchmarks/soak.py --seconds $(SECONDS) $(ARGS)

pins: setup-runtime  ## resolve pyproject.toml into requirements/*.txt anew
	@$(BIN)/python scripts/pin.py

setup-runtime:
	@sh scripts/setup.sh runtime

setup-test:
	@sh scripts/system.sh test
	@sh scripts/setup.sh test

setup-check:
	@sh scripts/system.sh test
	@sh scripts/setup.sh check

clean:  ## remove all that make made: environment, caches, builds
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache bench-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f snapshot_report.html
