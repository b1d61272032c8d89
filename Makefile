# Two commands do everything on a fresh machine with Python 3.11 and make:
#   make look   measure a network on the embedded digits and write its report
#   make explore   zoom into the linear regions of that network, in a browser
#   make test   all that CI checks: lint, types, tests, gallery, wheel
#   make test-models   forty foreign models beside brute force; writes the table of docs/models-in.md
#   make test-elsewhere   those tests that rounding may decide, as other processors would run them
# And one writes the pages of the papers from the records under results/: make pages

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready
JOBS   ?= 2

# Bytecode is kept, whatever the shell says: the tests start processes by the hundred, and each of
# them would compile the whole package.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: look explore pages test lint types tests all-tests test-models test-elsewhere gallery docs index bench fuzz fuzz-explorer clean
.DEFAULT_GOAL := look

# Made anew whenever the pins or the project's metadata change.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

look: $(READY)
	$(BIN)/inscape look --out reports

explore: $(READY)
	$(BIN)/inscape explore

pages: $(READY)
	$(BIN)/inscape pages --results results --out reports

# Lint and types beside the tests, so that no core waits at the end of either.
test: $(READY)
	$(MAKE) --jobs 3 lint types all-tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

# One thread for each worker: on two cores more only get in each other's way, and those that a test
# asks for sleep while they wait, or they would take the core of the other worker.
PYTEST := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive \
    $(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal

all-tests: $(READY)
	$(PYTEST)

tests: $(READY)
	$(PYTEST) --ignore tests/test_gallery.py --ignore tests/test_wheel.py

# Every foreign model of tests/zoo, in an environment of its own with what they come from.
ZOO := .venv-zoo
$(ZOO)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(ZOO)
	$(ZOO)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[zoo]'
	touch $(ZOO)/ready

test-models: $(ZOO)/ready
	cd tests && OMP_NUM_THREADS=1 ../$(ZOO)/bin/python -m zoo.table

# The tests marked "rounding" as other processors would run them, two settings at a time.
test-elsewhere: $(READY)
	$(BIN)/python tests/elsewhere.py --jobs $(JOBS)

# With the wheel in front: while it is installed, the other core draws.
gallery: $(READY)
	$(PYTEST) tests/test_wheel.py tests/test_gallery.py

# Random calls of all instruments against brute force; a run that was stopped goes on from its log.
CALLS  ?= 20000
SEED   ?= 0
fuzz: $(READY)
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m fuzz --calls $(CALLS) --seed $(SEED) \
	    $(if $(INSTRUMENT),--instrument $(INSTRUMENT)) $(if $(LOG),--log $(LOG))

# Random requests to every route of the explorer, half of them broken.
fuzz-explorer: $(READY)
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m explorer.fuzzer --requests $(CALLS) --seed $(SEED)

docs: $(READY)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo "docs/_build/html/index.html"

# What inscape list reads; installing makes it, and after a change of sources it may be made anew.
index: $(READY)
	$(BIN)/python -m inscape.index

# All benchmarks beside their peers, on a quiet machine; the table is kept in benchmarks/RESULTS.md.
bench: index
	$(BIN)/python benchmarks/run.py $(if $(LOOK),--look)

clean:
	rm -rf $(VENV) $(ZOO) build dist docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache
