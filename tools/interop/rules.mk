# What grpc-go's interoperability client adds to the words of the Makefile.

.PHONY: interop

interop: build $(VENV)/.dev ## Ask grpc-go's interoperability client what it thinks of the edge
	$(BIN)/python -m tools.interop.check
