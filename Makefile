# `make run` shows Faultline on a demo cluster, `make test` checks it. Both prepare what they need.
#
#   PYTHON=/path/to/python3.12   the interpreter, instead of the one on the PATH
#   SERVE=0                      `make run` ends with the report, without the dashboard
#   HOST=0.0.0.0 PORT=9000       where the dashboard listens
#   WORKERS=4                    processes that run the tests

BIN := .venv/bin
STORE := ./demo-store
WORKERS := 2
# Only as `make run HOST=...`: some shells and conda export a HOST that means something else.
ADDRESS := $(if $(filter command,$(firstword $(origin HOST))),--host $(HOST)) $(if $(PORT),--port $(PORT))

# Python keeps what it compiled: the tests start it hundreds of times.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test check lint test-slow slow-list test-by-hand counterparts bench quick docs sample pictures log-model lock environment environment-dev chromium

run: environment
	@test -f $(STORE)/CURRENT || $(BIN)/faultline demo --store $(STORE)
	@$(BIN)/faultline mttf --store $(STORE) --format table
	@$(BIN)/faultline report --store $(STORE) --as html --out ./report --format table
	@test "$(SERVE)" = 0 || exec $(BIN)/faultline serve --store $(STORE) $(ADDRESS)

# Format, lint, types, contracts, doctests and all tests but the slow ones.
test: lint chromium
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m "not slow and not benchmark and not service"

check: test

lint: environment-dev
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/ruff check --quiet
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo

# Slow tests, and properties with more examples; PART=3/6 runs the third of six parts.
test-slow: environment-dev chromium
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q -n $(WORKERS) $(if $(PART),--part $(PART)) \
		-m "(slow or hypothesis) and not benchmark and not service"

# Which part runs which file, with the seconds it took when it was last measured.
slow-list: environment-dev
	@$(BIN)/python -m tests.parts

# By hand, in one process: what measures time or memory, and what starts or mounts services.
test-by-hand: environment-dev chromium
	@$(BIN)/python -m pytest -q -s -m "benchmark or service"

# Debian's Prometheus and Alertmanager, for the tests of class `service`; as root. Their services are
# not started: policy-rc.d says so while they are installed; one that is there already is heeded.
POLICY := /usr/sbin/policy-rc.d
counterparts:
	@test -e $(POLICY) || { made=1; printf '#!/bin/sh\nexit 101\n' > $(POLICY) && chmod 755 $(POLICY); }; \
		trap 'test -z "$$made" || rm -f $(POLICY)' EXIT; \
		DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends \
		prometheus prometheus-alertmanager >/dev/null

# Speed and memory beside floors of the same run: docs/benchmarks.md; fails where a bar is missed.
bench: environment-dev
	@$(BIN)/python -m tests.benchmarks.table

# In a minute: format, lint, types, and the tests beside the files that changed since BASE.
quick: environment-dev
	@$(BIN)/python -m tests.quick $(BASE)

# What documents take from the program: docs/commands.md, the table of docs/sources.md.
docs: environment
	@$(BIN)/python docs/make.py

# The report that the README links to: of the demo, the same bytes on every machine.
sample: environment
	@rm -rf build/sample
	@$(BIN)/faultline demo --store build/sample --format table
	@$(BIN)/faultline report --store build/sample --as html,pdf --out build/sample/report --format table
	@for form in html pdf; do cp build/sample/report/*-fleet.$$form app/reports/sample/fleet.$$form; done

# The log classifier's model of domains, from the composed logs of the tests.
pictures: environment-dev chromium
	@$(BIN)/python -m tests.journeys.pictures $(LINK)

log-model: environment
	@$(BIN)/python -m tests.analytics.failures.train_domain_model

# Rebuilds the locks from pyproject.toml, for every Python it allows; keeps versions that still fit.
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header
lock: export PATH := $(PATH):$(CURDIR)/$(BIN)
lock: environment
	@command -v uv >/dev/null || $(BIN)/python -m pip install -qq uv
	$(COMPILE) --extra build -o requirements.lock pyproject.toml
	$(COMPILE) --extra build --extra dev -c requirements.lock -o requirements-dev.lock pyproject.toml
	echo virtualenv | $(COMPILE) -o requirements-virtualenv.lock -

environment:
	@PYTHON="$(PYTHON)" sh .ci/environment.sh run

environment-dev:
	@PYTHON="$(PYTHON)" sh .ci/environment.sh dev

# Where there is none and none can be had, the browser tests say what to do.
chromium: environment-dev
	@$(BIN)/python tests/journeys/chromium.py || true
