# Everything a user types. `make help` lists it; every target sets up what it needs first.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
# The first Python that MindSpore 2.10.0 has a wheel for; name another with PYTHON=...
PYTHON ?= $(shell for p in python3.11 python3.12 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null && { echo "$$p"; break; }; done)
BIN := $(VENV)/bin
ISSUE ?=
CHIP ?=
TARGET ?= sim
WHEELS ?=
ARGS ?=

.PHONY: help setup sim repro verify test lint bench lock images image-sim image-ascend bundle clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-28s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  for example: make repro ISSUE=134    make repro ISSUE=301.1 ARGS='--trials 3 --json'"

setup: $(VENV)/.ready sim ## Make .venv from the hashed lock and build the simulated Ascend tier

$(VENV)/.made:
	@if [ -z "$(PYTHON)" ]; then echo "setup: no Python 3.11 or 3.12 found; install one and name it with PYTHON=/path/to/python" >&2; exit 4; fi
	@"$(PYTHON)" -c 'import ensurepip' 2>/dev/null || { echo "setup: $(PYTHON) has no venv; on Debian: apt-get install python3-venv" >&2; exit 4; }
	@echo "setup: making $(VENV) with $(PYTHON)" >&2
	@"$(PYTHON)" -m venv $(VENV)
	@touch $@

$(VENV)/.ready: requirements.lock pyproject.toml | $(VENV)/.made
	@echo "setup: installing the locked packages (MindSpore alone is 800 MB)" >&2
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock >&2
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable . >&2
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.ready
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes --only-binary :all: -r requirements-dev.lock >&2
	@touch $@

# Not a file: the builder itself knows whether wheel, sources or compiler have changed, and is quick if none has.
sim: $(VENV)/.ready ## Build the stand-in CANN libraries of tier sim, unless they are there and fit
	@if command -v g++ >/dev/null; then $(BIN)/python -m repro.sim.build >/dev/null; \
	else echo "setup: no g++, so tier sim is left out; on Debian: apt-get install g++ binutils && make sim" >&2; fi

repro: $(VENV)/.ready sim ## Reproduce a report and print the verdict: ISSUE=134|219|301 or one fault, ARGS=options
	@if [ -z "$(ISSUE)" ]; then echo "make repro: name a report, such as ISSUE=134; known are:" >&2; $(BIN)/repro list >&2; exit 2; fi
	@$(BIN)/repro run $(ISSUE) $(ARGS)

verify: $(VENV)/.ready sim ## Run a report without and with its mends and judge the difference: ISSUE=134|219|301 or one fault
	@if [ -z "$(ISSUE)" ]; then echo "make verify: name a report, such as ISSUE=134; known are:" >&2; $(BIN)/repro list >&2; exit 2; fi
	@$(BIN)/repro verify $(ISSUE) $(ARGS)

test: $(VENV)/.dev sim ## Pass the tests: unit tests, then real MindSpore, msrun, simulated Ascend, Docker, sshd, Ansible, Slurm
	@$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.dev ## ruff, mypy --strict, hadolint, yamllint, ansible-lint (production)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/hadolint images/Dockerfile tests/data/cann-base/Dockerfile
	@$(BIN)/yamllint --strict playbooks .ansible-lint .yamllint
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/ansible-lint -q playbooks

bench: $(VENV)/.ready sim ## Measure time to verdict and the meter, as figures and ratios
	@$(BIN)/python tests/bench $(ARGS)

lock: $(VENV)/.dev ## Pin the newest allowed packages with hashes, for Python 3.11 and 3.12
	@$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-emit-index-url --no-emit-find-links --no-header --quiet --output-file requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --constraint requirements.lock \
		--no-emit-index-url --no-emit-find-links --no-header --quiet --output-file requirements-dev.lock

	@for name in requirements requirements-ascend requirements-tools; do \
		$(BIN)/uv pip compile images/$$name.in --constraint requirements.lock --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-emit-find-links --no-header --quiet --output-file images/$$name.lock; done

images: image-sim image-ascend ## Build both container images; CHIP=910b or a3 for the second, ARGS=options

image-sim: $(VENV)/.ready ## Build the image that needs no NPU: hyper-repro:sim
	@$(BIN)/repro image sim $(ARGS)

image-ascend: $(VENV)/.ready ## Build the image for an Ascend host on a CANN image: CHIP=910b or a3
	@$(BIN)/repro image ascend --chip "$(CHIP)" $(ARGS)

bundle: $(VENV)/.ready ## Write one archive for a site without a network: TARGET=sim, or TARGET=ascend CHIP=910b, WHEELS=folder
	@$(BIN)/python -m repro.images.make_archive $(TARGET) $(if $(CHIP),--chip "$(CHIP)") $(if $(WHEELS),--wheels "$(WHEELS)") $(ARGS)

clean: ## Remove caches and the virtual environment; evidence under runs/ stays
	@rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache *.egg-info
