# The developer's habits. `make demo` and `make test` need Python 3.11, make and pip, and nothing else.
PYTHON ?= python3
VENV ?= .venv
# Where modules may not be kept compiled, each of thousands of processes compiles them anew.
export PYTHONDONTWRITEBYTECODE :=
BIN := $(VENV)/bin
# As root the tests install Debian's Slurm; elsewhere they say what is missing and run the rest.
PYTEST_ARGS ?=
# Most tests wait, so more of them run side by side than there are cores; 0 is one after another.
WORKERS ?= 4

# Large packages that single tests need, each list in a folder of its own beside the packages.
BESIDE := hugging_face hydra logger_services
# pip talks much; what it said is shown where it failed.
install = $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt $(1) \
	> $(VENV)/pip.log 2>&1 || { cat $(VENV)/pip.log; exit 1; }

# Which mutants `make mutants` tries: the same seed gives the same; COUNT=0 tries all, for hours.
SEED ?= 1
COUNT ?= 120

.PHONY: demo test quick soak test-slurm-next test-gpu mutants lint types layers house config-page docs licences release-check
.PHONY: bench cluster-up cluster-down clean

demo: $(VENV)/.package
	@$(BIN)/hpc-train submit --cluster local --follow --wait configs/digits.yaml
	@echo "the command is $(BIN)/hpc-train; '. $(BIN)/activate' puts it on your PATH"

test: $(VENV)/.test
	@bash tests/cluster/install.sh
	@$(MAKE) --no-print-directory --jobs=2 lint types layers
	@$(BIN)/pytest --numprocesses $(WORKERS) $(PYTEST_ARGS)

# For while one writes: no Slurm, no torch, none that is marked slow; lint and layers take two seconds.
quick: $(VENV)/.test lint layers
	@$(BIN)/pytest --quick --numprocesses $(WORKERS) $(PYTEST_ARGS)

soak: $(VENV)/.test
	@bash tests/cluster/install.sh
	@HPC_TRAIN_SOAK=1 $(BIN)/pytest --timeout=3600 $(PYTEST_ARGS)

# The tests marked slurm against the Slurm of Debian 13, in a tree of its own outside of this one.
test-slurm-next: $(VENV)/.test
	@bash tests/cluster/install.sh
	@PYTHON=$(BIN)/python bash tests/cluster/in_slurm_next.sh $(BIN)/pytest -m slurm \
		--numprocesses $(WORKERS) $(PYTEST_ARGS)

# On a machine with NVIDIA GPUs: what runs nowhere else; the table goes to REPORT.
REPORT ?= gpu-report.md
test-gpu: $(VENV)/.test
	@$(BIN)/python -m tests.gpu --report $(REPORT) $(PYTEST_ARGS)

mutants: $(VENV)/.test
	@$(BIN)/python -m tests.mutants --seed $(SEED) --count $(COUNT)

lint: $(VENV)/.test
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .

types: $(VENV)/.test
	@$(BIN)/mypy --no-error-summary

layers: $(VENV)/.test
	@$(BIN)/lint-imports --no-cache > $(VENV)/layers.log || { cat $(VENV)/layers.log; exit 1; }

house: $(VENV)/.test
	@$(BIN)/python -m tests.house_report

# The tables of docs/config.md, from the schema.
config-page: $(VENV)/.test
	@$(BIN)/python -m tests.config_page

# The pages, complete in themselves, in site/.
docs: $(VENV)/.test
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "open site/index.html"

# docs/licences.md, from what is installed.
licences: $(VENV)/.test
	@$(BIN)/python -m tests.licences_page

# A wheel alone in a new venv of each Python of PYTHONS, and by `uv tool install`: trained with. What the
# installation consists of is then in dist/sbom.cdx.json.
release-check: $(VENV)-release/.tools
	@$(VENV)-release/bin/python -m tests.release_check $(PYTHONS)

bench: $(VENV)/.bench
	@bash tests/cluster/install.sh
	@$(BIN)/python -m benchmarks

cluster-up: $(VENV)/.test
	@bash tests/cluster/install.sh
	@$(BIN)/python -m tests.cluster up

# NUMBER=2 takes that one down, NUMBER=--all all that anybody has raised by hand; without it they are listed.
cluster-down: $(VENV)/.test
	@$(BIN)/python -m tests.cluster down $(NUMBER)

clean:
	rm -rf $(VENV) site .mypy_cache .ruff_cache .hypothesis build dist

# The venv is made once for each set of extras; constraints.txt pins what we test with, and its
# torch is the CPU build where one is at hand, instead of gigabytes of CUDA.
$(BIN)/python:
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.package: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing hpc-train into $(VENV)"
	@$(call install,--editable .)
	@touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml constraints.txt $(BESIDE:%=tests/%.txt)
	@echo "installing hpc-train[test] into $(VENV)"
	@$(call install,--editable '.[test]')
	@$(foreach it,$(BESIDE),$(call install,--upgrade --no-deps --target $(VENV)/$(subst _,-,$(it)) --requirement tests/$(it).txt);)
	@touch $@ $(VENV)/.package

$(VENV)/.bench: $(VENV)/.test benchmarks/peers.txt
	@echo "installing the peers that are measured into $(VENV)-bench"
	@$(PYTHON) -m venv $(VENV)-bench
	@$(VENV)-bench/bin/pip install --quiet --disable-pip-version-check --requirement benchmarks/peers.txt
	@touch $@

$(VENV)-release/.tools: constraints.txt
	@$(PYTHON) -m venv $(VENV)-release
	@$(VENV)-release/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt cyclonedx-bom hatchling uv
	@touch $@
