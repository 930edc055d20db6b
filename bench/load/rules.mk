# What the load generator adds to the words of the Makefile.

LOAD := build/fila-load

.PHONY: $(LOAD) test-load check-load

TEST += test-load
CHECK += check-load

# Always asked for: go itself knows what is current.
$(LOAD):
	go -C bench/load build -o ../../$@ .

test-load: ## Run the tests of the load generator
	go -C bench/load test ./...

check-load:
	@test -z "$$(gofmt -l bench/load)" || { gofmt -d bench/load; exit 1; }
	go -C bench/load vet ./...
	go -C bench/load tool -modfile=../../sdks/go/tools/go.mod staticcheck ./...
