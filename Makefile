# Two commands do everything: `make demo` and `make test`. Both install into .venv first, from a clean checkout.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test check clean docs fuzz drill wheel

demo: $(VENV)/.installed
	$(BIN)/vivarig demo

test: $(VENV)/.installed-test check
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation as a site, in site/; a link that leads nowhere is an error.
docs: $(VENV)/.installed
	$(INSTALL) -e ".[docs]"
	$(BIN)/python -m mkdocs build --strict

# dist/vivarig-*.whl, with the sample mouse inside
wheel: $(VENV)/.installed
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

# For hours: FILES=1000000 make fuzz
fuzz: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python tests/fuzz/driver.py --files $${FILES:-20000} --seed $${SEED:-0} --keep fuzz_harm

drill: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python tests/drills/drill.py --kills $${KILLS:-300} --headway 27 --pairs $${PAIRS:-60} --disks $${DISKS:-40}

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[test]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .bench .mypy_cache .ruff_cache .pytest_cache
