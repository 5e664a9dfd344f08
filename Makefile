# make demo   builds Rayspin and runs the main job on simulated scans
# make test   format, lints, documentation and tests of the product: what must hold before a change is taken
# make test-ladders  the tests of ladders, gallery, primitives and planes, and every CUDA kernel compiled for three generations of GPUs
# make build  the program that reconstructs, target/release/rayspin
# make ladder the program of ladders and tuning, target/release/rayspin-ladder
# make wheel  the wheel of Python's package for this machine, in dist/wheels
# make wheel-release  the wheel for other machines too, with kernels compiled beforehand
# make python-gpu-pack  the tests of Python's package, for a machine with a GPU: dist/python-gpu
# make kernels  kernels compiled beforehand, target/kernels/rayspin.kernels
# make bench  peers beside Rayspin, on this machine

export PATH := $(CURDIR)/.tools/bin:$(PATH)
CARGO ?= cargo
DEMO_DIR ?= rayspin-demo

.PHONY: build ladder demo test test-ladders wheel wheel-release lint bench tools python kernels gpu-pack python-gpu-pack gpu-test gpu-bench clean

build: tools
	$(CARGO) build --release --locked --package rayspin-cli

ladder: tools
	$(CARGO) build --release --locked --package rayspin-ladder-cli

demo: build
	target/release/rayspin demo --out $(DEMO_DIR)

# With the package of Python the features of all dependencies are those of the whole workspace, so nothing is compiled anew.
LADDERS := rayspin-ladder-cli rayspin-gallery rayspin-lab rayspin-primitives rayspin-planes
CARGO_TEST = RAYSPIN_PYTHON=$(CURDIR)/.tools/venv/bin/python RAYSPIN_NVRTC_REQUIRED=1 \
	RAYSPIN_CUDA_PATH="$$(scripts/nvrtc.sh):$$RAYSPIN_CUDA_PATH" $(CARGO) test --locked --no-fail-fast

# Clippy checks the examples; the tests do not build them.
test: tools python lint
	$(CARGO_TEST) --workspace $(LADDERS:%=--exclude %) --tests
	$(CARGO) test --workspace $(LADDERS:%=--exclude %) --locked --doc
	scripts/wheel.sh test

test-ladders: tools python
	RAYSPIN_TEST_ARCHITECTURES=all $(CARGO_TEST) $(LADDERS:%=--package %) --package rayspin-python --tests
	RAYSPIN_TEST_ARCHITECTURES=all $(CARGO_TEST) --package rayspin-emu --package rayspin-python --test nvrtc
	$(CARGO) test $(LADDERS:%=--package %) --package rayspin-python --locked --doc

wheel: tools
	scripts/wheel.sh

wheel-release: tools
	scripts/wheel.sh release

# The tables of docs/performance.md are those of the raw files, the pictures of the course are those that their
# script draws, and text and comments wrap at 110 columns.
lint: tools
	python3 benches/tables.py --check
	python3 docs/course/pictures.py --check
	python3 scripts/width.py
	$(CARGO) fmt --all --check
	rustfmt --check --edition 2024 crates/ladders/gallery/src/*/mod.rs
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings
	RUSTDOCFLAGS=--deny=warnings $(CARGO) doc --workspace --no-deps --locked

# HDF5 is built from source and wants a recent cmake.
tools:
	@scripts/cmake.sh

# Other programs' readers and writers, for the interoperability tests, and the compiler of CUDA kernels.
python:
	@scripts/python.sh

# For machines with a driver and no NVRTC, and for the first run on the others.
kernels: tools
	scripts/kernels.sh

bench: tools python
	benches/peers/run.sh

# What a machine with a GPU needs, built here; the folder dist/gpu travels, and holds both scripts.
gpu-pack: tools
	scripts/gpu-pack.sh

# The same of Python's package: dist/python-gpu holds python-gpu-test.sh.
python-gpu-pack: tools
	scripts/python-gpu-pack.sh

# On a machine with a GPU; from dist/gpu where that is there.
gpu-test:
	@[ -d dist/gpu/tests ] || $(MAKE) gpu-pack
	scripts/gpu-test.sh

gpu-bench:
	@[ -d dist/gpu/bin ] || $(MAKE) gpu-pack
	scripts/gpu-bench.sh

clean:
	$(CARGO) clean
	rm -rf .tools dist $(DEMO_DIR)
