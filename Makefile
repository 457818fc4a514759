# rushlight's commands. `make demo` and `make test` need only Python 3.11 or newer, make and a C
# compiler (without one the core is interpreted). `make help` lists the rest.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# Everything that the compiled modules may depend on.
SOURCES := $(shell find src/rushlight -name '*.py' 2>/dev/null)
# What every build in place writes last, so the stamp of one (`pip install -e .` is one too).
BUILT := src/rushlight/_build.json
# Libraries for PyTorch that tests run on rushlight. Without what they depend on: that is PyTorch.
LIBRARIES := einops torchinfo lion-pytorch torchmetrics lightning-utilities packaging
JOBS ?= 2
# One thread a process: the tests run in JOBS processes, the benches compare single threads.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help demo test test-pure build pure bench attack lint format types references stubs docs wheel clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(BUILT) ## install into a virtual environment and run examples/demo.py
	@printf '\nRunning examples/demo.py\n\n'
	@$(BIN)/rushlight run examples/demo.py
	@printf '\nThat was rushlight. What to do next:\n'
	@printf '  %-42s %s\n' \
	  '$(BIN)/rushlight run your_script.py' 'run a script that says `import torch`' \
	  '$(BIN)/python' 'and then type: import rushlight as torch' \
	  'docs/tutorial.md' 'from the first tensor to second derivatives' \
	  'make test' 'run the tests (some minutes)' \
	  'make help' 'list all commands'

test: $(VENV)/.dev $(BUILT) ## run the tests, compiled where there is a C compiler
	$(BIN)/python -m pytest -n $(JOBS) $(PYTEST)

test-pure: $(VENV)/.dev ## run the same tests on an uncompiled install
	@rm -rf build/pure build/lib
	RUSHLIGHT_PURE=1 $(PIP) install --no-deps --no-build-isolation --target build/pure .
	PYTHONPATH=$(CURDIR)/build/pure RUSHLIGHT_EXPECT=pure $(BIN)/python -m pytest -n $(JOBS) $(PYTEST)

build: $(BUILT) ## compile what was edited, in place

pure: $(VENV)/.dev ## remove the compiled modules: the sources are what runs
	RUSHLIGHT_PURE=1 $(BIN)/python setup.py -q build_ext --inplace
	@rm -f $(BUILT)

bench: $(VENV)/.torch $(VENV)/.jax $(BUILT) ## time rushlight against PyTorch, JAX and NumPy
	status=0; $(BIN)/python -m bench || status=1; $(BIN)/python -m bench.ops || status=1; \
	  $(BIN)/python -m bench.ops medium large --threads 2 || status=1; exit $$status

attack: $(VENV)/.torch $(BUILT) ## ten minutes of hostile use beside PyTorch, counted
	$(BIN)/python -m attack $(ATTACK)

lint: $(VENV)/.dev ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev ## let ruff format the tree
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev ## mypy, strict; and what users see, by mypy and pyright
	$(BIN)/mypy
	$(BIN)/mypy --strict --follow-imports=silent tests/typing/typical.py
	$(BIN)/pyright --pythonpath $(BIN)/python

references: $(VENV)/.torch $(BUILT) ## make the tests' stored results anew from PyTorch
	$(BIN)/python tests/reference/make.py $(CASES)

stubs: $(BUILT) ## write the stubs of the methods that the op table attaches
	$(BIN)/python tools/make_stubs.py

docs: $(VENV)/.docs $(BUILT) ## build the documents into build/docs; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -E -a -q -b html docs build/docs
	@echo "Open build/docs/index.html"

wheel: $(VENV)/.dev ## build a wheel, and look at its size
	@rm -rf build/lib* dist
	$(BIN)/python -m build --wheel --outdir dist .
	$(BIN)/python tools/pack_wheel.py dist/*.whl
	$(BIN)/python tools/check_wheel.py dist/*.whl

clean: ## remove what was built; the virtual environment stays
	rm -rf build dist docs/api src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f src/rushlight__mypyc.* $(BUILT)
	find src/rushlight -name '*.so' -delete
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

# The stamps below say how far the environment has come.

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rushlight wants Python 3.11 or newer; say which with `make PYTHON=...`")'
	@echo "1/2 Setting up a virtual environment in $(VENV) (seconds)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml setup.py
	@printf '%s\n' \
	  '2/2 Installing rushlight, about a minute on two cores, more if they are busy. pip is quiet meanwhile:' \
	  '    - fetching NumPy, SciPy, ml_dtypes and, for the build alone, mypy (about 70 MB);' \
	  '    - compiling the core: mypyc turns src/rushlight/core into C, then the C compiler runs.' \
	  '    Without a C compiler nothing is compiled: rushlight is then interpreted, works the same,' \
	  '    and takes longer for small operations.'
	@start=$$(date +%s) && $(PIP) install -e . && echo "Installed in $$(($$(date +%s) - start)) s:"
	@$(BIN)/python -m rushlight info
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	@echo "Installing the tools for development"
	@$(PIP) install $$($(BIN)/python tools/requirements.py dev)
	@$(PIP) install --no-deps $(LIBRARIES)
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	@echo "Installing what the documents are built with"
	@$(PIP) install $$($(BIN)/python tools/requirements.py docs)
	@touch $@

# PyTorch is what results are compared with: this version, no other.
$(VENV)/.torch: $(VENV)/.dev
	$(PIP) install torch==2.13.0
	@touch $@

$(VENV)/.jax: $(VENV)/.dev
	$(PIP) install jax jaxlib
	@touch $@

$(BUILT): $(SOURCES) | $(VENV)/.installed
	@if [ ! -e $@ ] || [ -n "$$(find $(SOURCES) -newer $@)" ]; then \
	  $(MAKE) -s --no-print-directory $(VENV)/.dev && \
	  echo "Compiling again, for sources were edited (about a minute)" && $(BIN)/python setup.py -q build_ext --inplace; \
	fi
	@touch $@
