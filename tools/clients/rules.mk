# What the clients that others' generators make add to the words of the Makefile.

CLIENTS := tools/clients
CLIENTS_INSTALLED := $(CLIENTS)/node_modules/.installed

SETUP += setup-clients
CHECK += check-clients

.PHONY: setup-clients clients check-clients

setup-clients: $(CLIENTS_INSTALLED) ## Install the generators of clients in TypeScript and Go

clients: build setup-clients $(VENV)/.dev ## Make clients of the OpenAPI document in Python, TypeScript and Go, and every call with each
	FILA_SOAK=1 $(PYTEST) tests/http/test_generated_clients.py

# A slice of them makes these clients.
soak-slices: setup-clients

check-clients: ## Format of the Go program that calls a client
	@test -z "$$(gofmt -l $(CLIENTS))" || { gofmt -d $(CLIENTS); exit 1; }

$(CLIENTS_INSTALLED): $(CLIENTS)/package.json $(CLIENTS)/package-lock.json $(CLIENTS)/go/go.sum $(VENV)/.system-dev
	npm ci --prefix $(CLIENTS) --no-fund --no-audit --ignore-scripts --loglevel=error
	go -C $(CLIENTS)/go mod download
	@touch $@
