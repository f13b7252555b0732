# Day-to-day tasks. `.venv/bin/just` lists them; `make test` sets up the environment they need.

export DAGSTER_DISABLE_TELEMETRY := "1"
bin := justfile_directory() / ".venv/bin"

[private]
default:
    @{{ bin }}/just --list --unsorted

# Everything that can be known without running a test
check: lint types imports migrations definitions

# Lint and formatting
lint:
    {{ bin }}/ruff check
    {{ bin }}/ruff format --check

# mypy, strict
types:
    {{ bin }}/mypy

# Who may import whom
imports:
    {{ bin }}/lint-imports

# The migrated schema equals the models
migrations:
    #!/usr/bin/env bash
    set -euo pipefail
    GPULEDGER_HOME=$(mktemp -d)
    export GPULEDGER_HOME
    trap 'rm -rf "$GPULEDGER_HOME"' EXIT
    unset GPULEDGER_DATABASE_URL
    {{ bin }}/gpuledger db upgrade
    {{ bin }}/gpuledger db check

# The pipelines load
definitions:
    #!/usr/bin/env bash
    set -euo pipefail
    DAGSTER_HOME=$(mktemp -d)
    export DAGSTER_HOME
    trap 'rm -rf "$DAGSTER_HOME"' EXIT
    # dg heeds this file, not the variable, and would write to the home folder otherwise.
    echo 'telemetry: {enabled: false}' >"$DAGSTER_HOME/dagster.yaml"
    cd pipelines
    {{ bin }}/dg check defs

# Mend what ruff can mend
format:
    {{ bin }}/ruff check --fix
    {{ bin }}/ruff format

# The tests in their short form; arguments go to pytest
test *arguments:
    GPULEDGER_TEST_FORM=short {{ bin }}/python -m pytest {{ arguments }}

# The tests with the stated counts (hours); arguments go to pytest
full *arguments:
    GPULEDGER_TEST_FORM=full {{ bin }}/python -m pytest {{ arguments }}

# The ratios that the benches gate on, with the times they print
bench *arguments:
    GPULEDGER_TEST_FORM=full {{ bin }}/python -m pytest -m bench -s {{ arguments }}

# The demo; arguments go to it
demo *arguments:
    {{ bin }}/gpuledger demo {{ arguments }}

# Write the lock files anew from pyproject.toml (names and hashes only, no address of an index)
lock *arguments:
    {{ bin }}/uv pip compile pyproject.toml --all-extras {{ compile }} {{ arguments }} -o requirements/dev.lock
    {{ bin }}/uv pip compile pyproject.toml --extra demo --extra broker --extra build {{ compile }} --constraint requirements/dev.lock -o requirements/run.lock
    {{ bin }}/uv pip compile pyproject.toml --extra pipelines --extra deployment --extra build {{ compile }} --constraint requirements/dev.lock -o requirements/deploy.lock

compile := "--universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet -p 3.11"

# Wheel and source archive into dist/
build:
    {{ bin }}/uv build --no-build-isolation --python {{ bin }}/python
