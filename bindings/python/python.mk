# The Python package, included by the Makefile. Nothing here is needed to build, run or test the C program.

PYTHON ?= python3
PYTHON_DIR := build/python

# For bindings/python/binding.py: builds the library; the last line says how to link it.
python-library:
	+@$(MAKE) --no-print-directory $(JOBS) library
	@echo "'$(CURDIR)/$B/lib/liblinnet.a' $(LDFLAGS) $(LDLIBS)"

# What the tests need, from the Python package index.
python-environment: $(PYTHON_DIR)/ready
$(PYTHON_DIR)/ready: bindings/python/python.mk
	@$(PYTHON) -m venv $(PYTHON_DIR)
	$(PYTHON_DIR)/bin/pip install -q 'setuptools>=65' wheel cffi numpy pytest 'mypy==2.4.1' matplotlib 'pandas<3'
	@touch $@

check-python: $B/linnet $B/tests/app/sound library $(PYTHON_DIR)/ready
	$(PYTHON_DIR)/bin/pip install -q --no-build-isolation --no-deps --force-reinstall ./bindings/python
	cd bindings/python && ../../$(PYTHON_DIR)/bin/mypy --cache-dir '$(CURDIR)/$(PYTHON_DIR)/mypy' linnet
	cd bindings/python && LINNET='$(CURDIR)/$B/linnet' SOUND='$(CURDIR)/$B/tests/app/sound' \
		../../$(PYTHON_DIR)/bin/pytest -q -p no:cacheprovider

# The examples on Ray and Spark too, with the engines from the package index (600 MB); Spark needs Java.
check-python-engines: check-python
	$(PYTHON_DIR)/bin/pip install -q 'ray[data]' pyspark 'pandas<3' pyarrow
	cd bindings/python && LINNET='$(CURDIR)/$B/linnet' SOUND='$(CURDIR)/$B/tests/app/sound' \
		../../$(PYTHON_DIR)/bin/pytest -q -rs -p no:cacheprovider tests/test_examples.py

# The wheel in an environment that has nothing else of this folder; no library of the system but libc's and zlib is used.
check-wheel: $B/linnet $B/tests/app/sound
	tools/package.sh wheel
	$(PYTHON) -m venv --clear $(PYTHON_DIR)/empty
	$(PYTHON_DIR)/empty/bin/pip install -q pytest build/package/*.whl
	! ldd $(PYTHON_DIR)/empty/lib/python3*/site-packages/linnet/_linnet.abi3.so | grep -v linnet.libs | \
		grep -E 'not found|sndfile|soxr|kissfft|cjson|utf8proc|gomp|FLAC|vorbis|opus|mpg|mp3'
	cd bindings/python && LINNET='$(CURDIR)/$B/linnet' SOUND='$(CURDIR)/$B/tests/app/sound' \
		../../$(PYTHON_DIR)/empty/bin/pytest -q -p no:cacheprovider

.PHONY: python-library python-environment check-python check-python-engines check-wheel
