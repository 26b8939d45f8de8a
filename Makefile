# Tollhouse. `make` lists what there is. Only Python 3.11 or newer has to be installed.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

RUN_LOCK := requirements.lock
TEST_LOCK := tests/requirements.lock
PEERS := .venv-peers
PEERS_LOCK := tests/external/requirements.lock
PRETIX_LOCK := tests/plugins/pretix.lock
# The settings module wants these; type checking connects to nothing.
TYPES_ENV := DATABASE_URL=postgresql://types@127.0.0.1/types DJANGO_SECRET_KEY=types-only
# The layers of pyproject.toml; its report is printed only when one is broken.
IMPORTS := report=$$($(BIN)/lint-imports --no-logo --no-cache) || { echo "$$report" >&2; exit 1; }
LINT_TEMPLATES := $(BIN)/djlint --lint --quiet templates
COMPILE := $(BIN)/uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header pyproject.toml

# Only those who change JavaScript need Node.js: the built files are committed.
WIDGET := checkout/widget
LINT_JAVASCRIPT := if [ -x $(WIDGET)/node_modules/.bin/eslint ] && command -v npm >/dev/null; then \
	npm --prefix $(WIDGET) run --silent lint; \
	else echo "Not checked: eslint and tsc are not installed (npm ci --ignore-scripts in $(WIDGET))."; fi

.PHONY: help run shop test test-fast fuzz mutants bench faults soak external lint format types javascript lock clients cut release advisories manage shell clean venv venv-test

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: venv ## bring everything up in the foreground: database, broker, web server, worker, demo merchant
	@exec env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m config.launcher --with-parent

shop: venv ## write a sample shop in Python, JavaScript and PHP into var/shop, with the keys of `make run`
	@exec $(BIN)/python -m config.sample_shops $(ARGS)

test: venv-test ## lint, layers, types and all tests, on a PostgreSQL of its own
	@echo "── lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "Not formatted: run make format." >&2; exit 1; }
	@$(IMPORTS)
	@$(LINT_TEMPLATES)
	@echo "── types"
	@$(TYPES_ENV) $(BIN)/mypy
	@echo "── JavaScript"
	@$(LINT_JAVASCRIPT)
	@echo "── tests"
	@exec env -u DJANGO_SETTINGS_MODULE -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n logical --dist loadgroup $(ARGS)

test-fast: venv-test ## in a minute: tests that want no database, no browser and no other process
	@exec env -u DJANGO_SETTINGS_MODULE -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n logical --fast -p no:schemathesis $(ARGS)

fuzz: venv-test ## a million hostile requests over every route, each under a meter (ARGS="--number 10000")
	@exec $(BIN)/python -m tests.fuzz --table docs/fuzz.md $(ARGS)

bench: venv-test ## measure the targets of tests/benchmarks
	@exec $(BIN)/python -m tests.benchmarks $(ARGS)

# Without the peers, faults of group "peers" are said to be not tested. TOLLHOUSE_PEERS: a folder that has them already.
faults: venv-test ## kill what runs, under load, and compare the acquirers' books with ours
	@[ -n "$${TOLLHOUSE_PEERS:-}" ] || PYTHON="$(PYTHON)" bash config/launcher/bootstrap.sh $(PEERS) $(PEERS_LOCK) || \
		echo "The processors of tests/external/requirements.lock are not there; it goes on without them." >&2
	@exec env TOLLHOUSE_PEERS="$${TOLLHOUSE_PEERS:-$(CURDIR)/$(PEERS)/bin}" $(BIN)/python -m tests.faults $(ARGS)

soak: venv-test ## eight hours of mixed load: does the memory of any process grow, is anything left? ARGS="--minutes 60"
	@exec $(BIN)/python -m tests.soak $(ARGS)

mutants: venv-test ## change the heart of the product in small places: what do the tests not notice? ARGS="--seed 7 --sample 100"
	@exec env -u DJANGO_SETTINGS_MODULE $(BIN)/python -m tests.mutants $(ARGS)

external: venv-test ## our connectors against processors that others wrote, each a process of its own
	@PYTHON="$(PYTHON)" bash config/launcher/bootstrap.sh $(PEERS) $(PEERS_LOCK)
	@exec env -u DJANGO_SETTINGS_MODULE TOLLHOUSE_PEERS="$(CURDIR)/$(PEERS)/bin" $(BIN)/python -m pytest tests/external $(ARGS)

lint: venv-test ## ruff, import-linter, djlint and mypy; eslint and tsc where checkout/widget has them
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "Not formatted: run make format." >&2; exit 1; }
	@$(IMPORTS)
	@$(LINT_TEMPLATES)
	@$(TYPES_ENV) $(BIN)/mypy
	@$(LINT_JAVASCRIPT)

format: venv-test ## format the sources in place
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

types: venv-test ## mypy only
	@$(TYPES_ENV) $(BIN)/mypy

javascript: ## eslint and tsc only, where checkout/widget has them
	@$(LINT_JAVASCRIPT)

lock: venv-test ## write the lock files anew from pyproject.toml (ARGS=--upgrade for newer versions)
	@$(COMPILE) $(ARGS) --extra embedded --extra make --output-file $(RUN_LOCK)
	@$(COMPILE) $(ARGS) --extra embedded --extra make --extra test --extra otel --extra sentry --output-file $(TEST_LOCK)
	@$(subst pyproject.toml,tests/external/requirements.in,$(COMPILE)) $(ARGS) --output-file $(PEERS_LOCK)
	@$(subst pyproject.toml,tests/plugins/pretix.in,$(COMPILE)) $(ARGS) --output-file $(PRETIX_LOCK)

clients: venv-test ## write the generated models of the packages in clients/ anew
	@exec $(BIN)/python -m config.clients

cut: venv-test ## CHANGELOG.md: what is unreleased becomes the version of pyproject.toml
	@exec $(BIN)/python -m config.release.changelog

release: venv-test ## write dist/: wheel, sdist, SBOM, lock, client packages, checksums; and prove them (ARGS=--unproven: do not)
	@exec $(BIN)/python -m config.release $(ARGS)

advisories: venv-test ## compare the locks with advisories in OSV's format: make advisories FILE=osv.json
	@exec $(BIN)/python -m config.release.advisories "$(FILE)"

manage: venv ## Django's command line: make manage ARGS="check"
	@exec $(BIN)/python -m config.launcher exec -- $(BIN)/python manage.py $(ARGS)

shell: venv ## a Python shell with Django set up
	@exec $(BIN)/python -m config.launcher exec -- $(BIN)/python manage.py shell $(ARGS)

clean: ## remove .venv, caches and var/ with the demo database in it
	@$(PYTHON) -m config.launcher.clean
	@rm -rf $(VENV) $(PEERS) $(WIDGET)/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .schemathesis
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

venv:
	@PYTHON="$(PYTHON)" bash config/launcher/bootstrap.sh $(VENV) $(RUN_LOCK) $(TEST_LOCK)

venv-test:
	@PYTHON="$(PYTHON)" bash config/launcher/bootstrap.sh $(VENV) $(TEST_LOCK)
