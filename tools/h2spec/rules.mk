# What h2spec adds to the words of the Makefile.

.PHONY: h2spec

h2spec: build $(VENV)/.dev ## Ask h2spec how strictly the edge keeps HTTP/2
	$(BIN)/python -m tools.h2spec.check
