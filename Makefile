# Two commands do everything: `make reproduce` and `make test`. Both set up what they need, once.
PYTHON ?= python3
VENV   ?= .venv
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN    := $(VENV)/$(PROGRAMS)
# Half the time of an installation is compiling modules, most of which no test imports: Python does it when they are.
PIP_FLAGS ?= --no-compile
# And must be let: parsing all modules again takes every process some 3 seconds.
unexport PYTHONDONTWRITEBYTECODE
PIP    := -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS)
# Every extra but mcp and rivals, whose tests are skipped where they are missing.
PINS   := $(patsubst %,requirements/%.txt,base files figures dask serve postgres dev)
ARGS   ?=
DATA   ?=
RIVALS ?= .rivals
ENV_FILE ?= .env

.PHONY: help setup test test-ci test-slow lint types style docs format package image pin-images coverage reproduce playground rivals arena league benchmark clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.ready  ## create the virtual environment and install the pinned requirements (cheap the second time)

$(VENV)/.ready: pyproject.toml $(PINS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "onebit needs Python 3.11 or newer; set PYTHON=python3.x"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) $(PINS:%=-r %)
	$(BIN)/python $(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.rivals: $(VENV)/.ready requirements/rivals.txt
	$(BIN)/python $(PIP) -r requirements/rivals.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.ready requirements/docs.txt
	$(BIN)/python $(PIP) -r requirements/docs.txt
	@touch $@

test: setup  ## everything CI runs: lint, types, import direction, tests and doctests
	$(MAKE) --no-print-directory --jobs=2 lint
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not ci" $(ARGS)

test-ci: setup  ## what CI runs beside it: longer tests, pages in a browser, kills, PostgreSQL, limits of the service
	$(BIN)/python -m pytest -n auto --dist worksteal -m ci $(ARGS)

test-slow: setup  ## those, and the tests that take minutes
	$(BIN)/python -m pytest -m "ci or slow" $(ARGS)

lint: docs types style  ## ruff, mypy --strict, import-linter, and the documentation

types: setup
	$(BIN)/mypy

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/.docs  ## the documentation into site/; works from the folder, without a network
	PATH="$(abspath $(BIN)):$$PATH" NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: setup  ## let ruff rewrite the files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: setup  ## which lines the tests reach: the suite as it is, and every learner with the compiler off
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest -n auto --dist worksteal -m "not slow" $(ARGS)
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run tests/play_everything.py
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

package: setup  ## wheel and sdist into dist/, installed into an empty environment and tried there
	$(BIN)/python tests/try_package.py

image:  ## a container image, onebit, if there is a docker engine
	@docker info >/dev/null 2>&1 || { echo 'make image needs a running docker engine, and there is none here: docker info says why'; exit 1; }
	docker build $(if $(PYTHON_IMAGE),--build-arg PYTHON_IMAGE=$(PYTHON_IMAGE)) --tag onebit .

pin-images:  ## write to .env which base images are meant, by digest, for compose.yaml (needs docker and its registry)
	@docker info >/dev/null 2>&1 || { echo 'make pin-images needs a running docker engine, and there is none here: docker info says why'; exit 1; }
	@{ grep -vE '^(PYTHON|POSTGRES)_IMAGE=' $(ENV_FILE) 2>/dev/null; \
	for image in PYTHON_IMAGE=python:3.11-slim-bookworm POSTGRES_IMAGE=postgres:17-bookworm; do \
	  digest=$$(docker buildx imagetools inspect "$${image#*=}" --format '{{.Manifest.Digest}}') || exit 1; \
	  echo "$$image@$$digest"; \
	done; } > $(ENV_FILE).new && mv $(ENV_FILE).new $(ENV_FILE)
	@grep -E '^(PYTHON|POSTGRES)_IMAGE=' $(ENV_FILE)

reproduce: setup  ## the paper's experiments at full size, into results/ (ARGS="--quick" for a minute's version)
	$(BIN)/onebit reproduce $(ARGS)

playground: setup  ## a page on which you watch learners learn, draw points for them, or are the oracle yourself
	$(BIN)/onebit playground $(ARGS)

rivals: $(VENV)/.rivals $(RIVALS)/.ready  ## Vowpal Wabbit beside onebit; contextualbandits, river, coba in an environment of their own
	@echo 'they play after: export ONEBIT_RIVALS=$(abspath $(RIVALS)) PYTHONPATH=$(abspath benchmarks)'

$(RIVALS)/.ready: requirements/more-rivals.txt
	test -x $(RIVALS)/$(PROGRAMS)/python || $(PYTHON) -m venv $(RIVALS)
	$(RIVALS)/$(PROGRAMS)/python $(PIP) -r requirements/more-rivals.txt
	@touch $@

arena: $(VENV)/.rivals  ## learners beside Vowpal Wabbit on every data set of a folder, into results/arena/ (DATA=folder)
	@test -n "$(DATA)" || { echo 'say which folder of data sets: make arena DATA=folder'; exit 1; }
	$(BIN)/onebit compare "$(DATA)" --rival vw --out results/arena $(ARGS)

league: setup  ## every learner over all bundled streams, and the data sets of a folder if one is named (DATA=folder)
	$(BIN)/onebit league $(if $(DATA),"$(DATA)") $(ARGS)

benchmark: $(VENV)/.rivals  ## speed and memory, side by side with peers
	$(BIN)/python benchmarks/speed.py $(ARGS)

clean:  ## remove the virtual environment and caches, keep results
	rm -rf $(VENV) $(RIVALS) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
