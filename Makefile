# The two commands of the README. What developers use day by day is in the justfile.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Compiling every module costs a minute; Python compiles those it imports, and keeps them unless it is told not to
# (PYTHONDONTWRITEBYTECODE, as many container images have it): then it is cheaper to compile all of them once.
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --no-input --no-compile

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.run-installed ## Set up and run the demo (ONCE=1 stops after the summary, KAFKA=1 sends it through a broker)
	@exec $(BIN)/gpuledger demo $(if $(filter 1,$(ONCE)),--once) $(if $(filter 1,$(KAFKA)),--kafka)

test: $(VENV)/.dev-installed ## Set up and run every check and test, in the short form
	@.ci/system-packages
	@status=0; \
	$(BIN)/just check || status=$$?; \
	GPULEDGER_TEST_FORM=$${GPULEDGER_TEST_FORM:-short} $(BIN)/python -m pytest -n 2 --dist loadgroup || status=$$?; \
	exit $$status

clean: ## Remove the virtual environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build

# One stamp per lock file: nothing is installed again until the lock or pyproject.toml changes. A lock is
# complete, so pip need not resolve anything.
$(VENV)/.%-installed: requirements/%.lock pyproject.toml | $(BIN)/pip
	@echo "installing requirements/$*.lock into $(VENV) (once; a minute or two)" >&2
	@$(PIP) --no-deps --require-hashes --requirement requirements/$*.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@test -z "$$PYTHONDONTWRITEBYTECODE" || $(BIN)/python -m compileall -q -j 0 $(VENV)/lib services || true
	@touch $@

# pip is what the venv module writes last, so a setup that was interrupted starts again.
$(BIN)/pip:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "gpuledger needs Python 3.11 or newer: sudo apt-get install -y python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "gpuledger needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version)." >&2; \
	  echo "Name a newer one: make $(or $(MAKECMDGOALS),demo) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "Python's venv module is missing: sudo apt-get install -y python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
