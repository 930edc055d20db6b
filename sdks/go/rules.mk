# What the Go SDK adds to the words of the Makefile.

.PHONY: build-go test-go test-go-oldest check-go

GENERATED += sdks/go/v1
TEST += test-go test-go-oldest
CHECK += check-go

# Programs that use the SDK compile it themselves; this builds the driver of the conformance suite.
build-go:
	go -C sdks/go build -o ../../build/fila-go-driver ./conformance

test-go: build ## Run the tests of the Go SDK
	go -C sdks/go test ./...

test-go-oldest: ## Build the Go SDK with the oldest Go it allows
	GOTOOLCHAIN=go$$(sed -n 's/^go //p' sdks/go/go.mod) go -C sdks/go vet ./...

check-go: ## Format, vet and lint the Go SDK
	@test -z "$$(gofmt -l sdks/go)" || { gofmt -d sdks/go; exit 1; }
	go -C sdks/go vet ./...
	go -C sdks/go tool -modfile=tools/go.mod staticcheck ./...
	@cd sdks/go && go mod tidy -diff
