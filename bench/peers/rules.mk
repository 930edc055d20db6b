# Fila beside other brokers. Not part of `make test`: it fetches them, which takes the network and some minutes.

.PHONY: bench-peers check-peers

CHECK += check-peers

bench-peers: build $(VENV)/.dev ## Measure Fila beside other brokers (QUICK=1 PEERS=a,b WORKLOADS="full life" ANEW=1)
	python bench/peers/compare.py

check-peers:
	@test -z "$$(gofmt -l bench/peers/driver)" || { gofmt -d bench/peers/driver; exit 1; }
	go -C bench/peers/driver vet ./...
	go -C bench/peers/driver tool -modfile=../../../sdks/go/tools/go.mod staticcheck ./...
	@cd bench/peers/driver && go mod tidy -diff
