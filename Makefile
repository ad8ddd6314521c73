# make demo   builds Weft and tells the types of some files with a real model
# make test   builds everything and runs all tests (LABELS=quick for the short ones)
# Both install what is missing from deps/*.txt first, ask nothing, and have nothing to do a second time.

PRESET ?= release
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc)
LABELS ?=
PYTHON := .venv/bin/python
MAGIKA := .deps/zoo/magika.onnx

.PHONY: demo test build deps venv clean
.DELETE_ON_ERROR:

build: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

test: build venv
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS) $(if $(LABELS),-L '$(LABELS)') </dev/null

demo: $(BUILD)/build.ninja $(MAGIKA)
	cmake --build $(BUILD) -j $(JOBS) --target weft-magika
	$(BUILD)/weft-magika $(MAGIKA)

deps: .deps/debian

venv: .deps/python

clean:
	rm -rf build

.deps/debian: deps/debian.txt deps/install.sh
	deps/install.sh
	@mkdir -p .deps && touch $@

.deps/python: deps/python.txt .deps/debian
	test -x $(PYTHON) || python3 -m venv .venv
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-input -r deps/python.txt
	@touch $@

$(MAGIKA): zoo/zoo.py zoo/wheels.json .deps/python
	$(PYTHON) zoo/zoo.py fetch magika $(@D)
	@touch $@

# Configured once; CMake itself looks for changes from then on.
$(BUILD)/build.ninja: .deps/debian .deps/python CMakePresets.json
	cmake --preset $(PRESET)
	@touch $@
