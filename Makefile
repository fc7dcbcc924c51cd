# The whole vocabulary; CI runs the same targets.
PYTHON ?= $(firstword $(foreach minor,11 12 13 14,$(shell command -v python3.$(minor) 2>/dev/null)) python3.11)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.ready-dev
PIP := $(BIN)/python -m pip install --disable-pip-version-check -q
TORCH_CPU := https://download.pytorch.org/whl/cpu
# Where `make lock` looks for PyTorch's CPU build; a folder of wheels will do (--find-links DIR).
LOCK_TORCH ?= --torch-backend cpu
LOCK = $(BIN)/uv pip compile -q --upgrade --generate-hashes --no-annotate --no-emit-package kbert-lab \
	--python-version 3.11 --python-platform x86_64-manylinux_2_28 $(LOCK_TORCH) \
	--custom-compile-command "make lock"
# Data for training and the tests that need it; see README. No default.
ifdef KBERT_DATA
export KBERT_DATA
endif
# Processes that share the tests, file by file.
WORKERS ?= 2
export TOKENIZERS_PARALLELISM := false
export STREAMLIT_BROWSER_GATHER_USAGE_STATS := false

.PHONY: help app test package soak lint format notebooks lab handout docs bench browser clean lock

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# Install a lock: on Linux, x86-64, Python 3.11 all packages by their hashes, PyTorch first, its CPU
# build from its own index, or nothing. Elsewhere, and with UNLOCKED=1, the direct packages, and what
# pip chooses beside them.
install = case "$(UNLOCKED)$$(uname -sm) $$($(BIN)/python -V)" in \
	"Linux x86_64 Python 3.11."*) \
	  sed -n '/^torch==/,/[^\\]$$/p' $(1).lock > $(VENV)/torch.lock && \
	  $(PIP) --require-hashes --no-deps --extra-index-url $(TORCH_CPU) -r $(VENV)/torch.lock && \
	  $(PIP) --require-hashes -r $(1).lock && $(PIP) --no-deps --no-build-isolation -e . || { \
	  echo "$(1).lock can't be installed, as said above. If a hash is wrong, find out why before you" \
	    "install anything. If an index lacks a package: make UNLOCKED=1 installs without hashes."; \
	  exit 1; };; \
	*) $(PIP) $(foreach file,$(2),-r $(file));; \
	esac

$(READY): requirements.lock requirements.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing some 200 packages: a few minutes, in which nothing is shown."
	@$(call install,requirements,requirements.txt)
	touch $@

$(DEV): $(READY) requirements-dev.lock requirements-dev.txt requirements-docs.txt
	@$(call install,requirements-dev,requirements-dev.txt requirements-docs.txt)
	touch $@

lock: $(DEV) ## choose versions of all packages anew, and write them with hashes into the locks
	$(LOCK) -o requirements.lock requirements.txt
	$(LOCK) -o requirements-dev.lock -c requirements.lock requirements.txt requirements-dev.txt \
	  requirements-docs.txt

app: $(READY) ## install what is missing and open the app
	$(BIN)/streamlit run app/main.py

test: lint browser ## everything that must pass
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not soak and not package" -n $(WORKERS) --dist loadfile tests

package: $(DEV) browser ## install the wheel into a new environment; open, run and read all there
	TORCH_CPU=$(TORCH_CPU) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m package --durations=0 \
	  tests/browser/test_package.py

soak: $(DEV) browser ## long crash, fuzz and load tests; writes benchmarks/results/soak.json
	$(BIN)/python -m pytest -m soak tests --durations=0
	$(BIN)/python -m pytest -m "hypothesis and not soak" --hypothesis-profile soak tests

lint: $(DEV) ## style, import bans, types, and declared packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/deptry .

format: $(DEV) ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

notebooks: $(DEV) ## run every notebook with the network off; compare with what is stored
	OMP_NUM_THREADS=1 $(BIN)/python notebooks/source/run.py

lab: $(READY) ## open JupyterLab on the plan of the course
	$(BIN)/jupyter lab --notebook-dir=. --LabApp.default_url=/lab/tree/notebooks/README.md \
	  --LabApp.app_settings_dir=notebooks/source/lab $(if $(filter 0,$(shell id -u)),--allow-root)

handout: $(DEV) ## turn the notebooks into web pages in handout/, to read and print without Python
	$(BIN)/python notebooks/source/pages.py handout

docs: $(DEV) ## draw the results and build the documentation site into site/, offline
	$(BIN)/python -m results.tools.report --draw
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: $(DEV) ## run the benchmarks; writes benchmarks/results
	$(BIN)/python -m benchmarks.injection
	$(BIN)/python -m benchmarks.edit_to_prediction
	$(BIN)/python -m benchmarks.throughput
	$(BIN)/python -m benchmarks.knowbert
	$(BIN)/python -m benchmarks.systems
	$(BIN)/python -m benchmarks.graph_store

# Matplotlib keeps a list of fonts, which may be older than the Chinese one.
browser: ## Chromium and a Chinese font for the browser tests, where they may be installed
	@command -v chromium >/dev/null 2>&1 && fc-list 2>/dev/null | grep -qi "noto.*cjk" || \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	      chromium fonts-noto-cjk fontconfig >/dev/null && \
	    rm -f "$${XDG_CACHE_HOME:-$$HOME/.cache}"/matplotlib/fontlist-*.json; \
	  else \
	    echo "No Chromium: the browser tests will be skipped. Install chromium and fonts-noto-cjk."; \
	  fi

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis
