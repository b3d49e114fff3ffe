# Every target works on a fresh clone: .venv is created when missing and recreated when the lock file changes.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PY := .venv/bin/python
# What checks the scripts of the console; only developers need it.
NPM := packages/localvertex/requirements/npm
# Evaluated only when .venv has to be created.
BASE_PYTHON = $(shell PYTHON='$(PYTHON)' sh requirements/find-python.sh)
# Exported, not pasted into the recipe: a folder name may contain spaces and quotes.
export SOURCE ?= digits
export WORK_DIR ?= runs
# Of the demo: PARAMETERS="epochs=3 seed=1".
export PARAMETERS ?=
# Of `make soak`.
SEED ?= 0
# Number of test processes: three per core of a machine with 2, because tests wait. The slow ones train in several
# processes.
TEST_PROCESSES ?= 6
SLOW_TEST_PROCESSES ?= 4
# PACKAGE=localvertex runs the tests of one package.
TESTS = $(if $(PACKAGE),packages/$(PACKAGE)/tests)

.PHONY: help venv venv-beam venv-gpu venv-torch demo console test test-slow test-alone prove soak rows check check-scripts compile clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

venv: .venv/ready ## Create .venv with the pinned packages (Python 3.11 to 3.13)

venv-beam: .venv-beam/ready ## Create .venv-beam, the environment with Apache Beam

venv-gpu: .venv-gpu/ready ## Create .venv-gpu with CUDA for this machine's GPU; PYTHON=python3.12

venv-torch: .venv-torch/ready ## Create .venv-torch, the environment with PyTorch (5 GB) for `make soak`

.venv/ready: requirements/cpu.txt
.venv-beam/ready: requirements/beam.txt
.venv-gpu/ready: requirements/gpu.txt
.venv-torch/ready: requirements/torch.txt
.venv/ready .venv-beam/ready .venv-gpu/ready .venv-torch/ready: $(wildcard packages/*/pyproject.toml)
	$(if $(BASE_PYTHON),,$(error found no Python 3.11, 3.12 or 3.13 with venv and pip; install one or give its path: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12))
	@test ! -L $(@D) || { echo "error: $(@D) is a link, and its target would be emptied; remove the link" >&2; exit 2; }
	@echo "Creating $(@D) with $$($(BASE_PYTHON) --version); installing the pinned packages takes a minute or two."
	@$(BASE_PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(filter requirements/%,$^)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	    -e . -e packages/exact_resume -e packages/localvertex -e packages/testing
	@touch $@

demo: .venv/ready ## Compile the pipeline and run it locally; SOURCE=my/photos uses your own images
	@$(PY) -m pipelines.commands.demo --work-dir "$$WORK_DIR" --parameters "$$PARAMETERS" -- "$$SOURCE"

console: .venv/ready ## Open the console in the browser: create, watch and compare runs
	@$(PY) -m localvertex console --work-dir "$$WORK_DIR"

# Tests that fail run once more, alone: the load of the others is no defect. Both reports stay in the output.
AGAIN = || { test $$? = 1 && echo "Once more, alone: what passes now depends on load or chance, and needs a repair" && \
    $(PY) -m pytest --last-failed --last-failed-no-failures none --exitfirst

test: .venv/ready ## Run the tests, in about 6 minutes on 2 cores
	@$(PY) -m pytest -n $(TEST_PROCESSES) --dist worksteal -m "not slow" $(TESTS) $(AGAIN) -m "not slow" $(TESTS); }

test-slow: .venv/ready $(if $(PACKAGE),,.venv-beam/ready) ## Run the slow tests: whole runs, killed and resumed, in about 17 minutes
	@$(PY) -m pytest -n $(SLOW_TEST_PROCESSES) --dist worksteal -m "slow and not soak" $(TESTS) \
	    $(AGAIN) -m "slow and not soak" $(TESTS); }

test-alone: .venv/ready ## Run the tests of each package in an environment with its own dependencies alone
	@$(PY) packages/testing/alone.py $(or $(PACKAGE),exact_resume localvertex)

prove: .venv/ready ## Prove that this project's training and the examples resume, in about an hour; SEED=1
	@$(PY) -m benchmarks.soak.prove --seed=$(SEED)

soak: .venv/ready ## Run the seeded proofs that take hours, not in CI; after a kill it resumes; SEED=1
	@$(PY) -m benchmarks.soak --seed=$(SEED)

rows: .venv/ready ## Measure what resumes exactly and write the page, in 15 minutes; installs PyTorch (5 GB)
	@$(PY) -m benchmarks.resuming

check: .venv/ready ## Check lint, format and types
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory check-scripts; \
	else echo "npm was not found: the scripts of the console are not checked"; fi

check-scripts: $(NPM)/node_modules/.ready ## Check types, lint and format of the console's scripts (Node)
	@$(NPM)/node_modules/.bin/tsc -p $(NPM)
	@$(NPM)/node_modules/.bin/biome check --config-path=$(NPM) --error-on-warnings packages/localvertex/localvertex/console/page

$(NPM)/node_modules/.ready: $(NPM)/package-lock.json $(NPM)/.npmrc
	@cd $(NPM) && npm ci --silent
	@touch $@

compile: .venv/ready ## Write build/image_training.json and .yaml
	@$(PY) compile.py

clean: ## Remove .venv, build and caches; keep runs/
	@rm -rf .venv .venv-beam .venv-gpu .venv-torch build $(NPM)/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
