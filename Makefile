# tlsd. `make help` lists what there is to do.

GO      ?= go
# internal/e2e takes five minutes, on a busy machine more than the ten of go test.
GOTEST   = $(GO) test -timeout 40m
TIERS   := sunx509 pkix pkixcached
TOOLS   := $(CURDIR)/.tools
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Without git, or in somebody else's checkout, go build can't stamp a version.
STAMP   := -buildvcs=$(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)

# For instance: make test GOTESTFLAGS='-v -run Reload'
GOTESTFLAGS ?=
FUZZTIME    ?= 1m
SOAK        ?= 30m

.DEFAULT_GOAL := help
.PHONY: help build test test-faults soak deps race lint vuln fuzz fuzz-short bench examples openssl generate dist ci clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | awk -F '\t' '{printf "  make %-12s %s\n", $$1, $$2}'

build: ## build tlsd and the tiers as separate executables into bin/
	CGO_ENABLED=0 $(GO) build -trimpath $(STAMP) -o bin/ ./cmd/tlsd $(foreach t,$(TIERS),./plugins/$t/cmd/tlsd-keymanager-$t)

test: deps ## run all tests, after installing what they need (Debian)
	CGO_ENABLED=0 $(GOTEST) $(GOTESTFLAGS) ./...
	cd examples && CGO_ENABLED=0 $(GOTEST) $(GOTESTFLAGS) ./...
	cd internal/kubernetes && CGO_ENABLED=0 $(GOTEST) -count=1 $(GOTESTFLAGS) ./...

test-faults: deps ## kill, freeze, starve and upgrade a running tlsd; part of make test
	CGO_ENABLED=0 $(GOTEST) -count=1 -v $(GOTESTFLAGS) -run '^TestFault' ./internal/e2e

soak: ## SOAK (30m) of load while keystores rotate and key processes die
	TLSD_SOAK=$(SOAK) CGO_ENABLED=0 $(GO) test -count=1 -v -timeout 0 ./internal/soak

deps: ## install what the tests need (Debian), or say what is missing
	@.ci/deps

race: deps ## run the tests of all but internal/ under the race detector (needs gcc)
	CGO_ENABLED=1 $(GOTEST) -race $(GOTESTFLAGS) $$($(GO) list ./... | grep -v /internal/)

lint: $(TOOLS)/stamp ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo 'run: gofmt -w .'; exit 1; }
	$(GO) vet ./...
	$(TOOLS)/staticcheck ./...
	cd examples && $(GO) vet ./... && $(TOOLS)/staticcheck ./...
	cd internal/kubernetes && $(GO) vet ./... && $(TOOLS)/staticcheck ./...

vuln: $(TOOLS)/stamp ## look for known vulnerabilities (asks vuln.go.dev)
	@.ci/vuln $(TOOLS)/govulncheck

fuzz: ## run each fuzz target for FUZZTIME (1m)
	@.ci/fuzz $(FUZZTIME)

fuzz-short: ## run each fuzz target for five seconds
	@.ci/fuzz 5s

bench: ## measure against the budgets (half an hour of a quiet machine); writes bench/results, README.md, docs/performance.md
	@.ci/bench-deps
	$(GO) run ./bench/cmd/tlsbench all

examples: ## build and test the example plugins, a module of their own
	cd examples && CGO_ENABLED=0 $(GO) build ./... && CGO_ENABLED=0 $(GOTEST) $(GOTESTFLAGS) ./...

openssl: deps $(TOOLS)/stamp ## build into bin/ and test the plugin that signs by OpenSSL, a module of its own (needs gcc, libssl-dev)
	cd plugins/openssl && CGO_ENABLED=1 $(GO) build -trimpath $(STAMP) -o $(CURDIR)/bin/ ./cmd/tlsd-keymanager-openssl
	cd plugins/openssl && $(GO) vet ./... && $(TOOLS)/staticcheck ./...
	cd plugins/openssl && CGO_ENABLED=1 $(GOTEST) $(GOTESTFLAGS) ./...
	cd plugins/openssl && CGO_ENABLED=1 $(GOTEST) -race -short .

generate: $(TOOLS)/stamp ## generate code from the .proto file (needs protoc)
	PATH="$(TOOLS):$$PATH" $(GO) generate ./...

dist: ## static linux archives and SHA256SUMS into dist/
	@VERSION=$(VERSION) TIERS="$(TIERS)" .ci/dist

ci: ## what the continuous integration runs
	@.ci/run

clean: ## remove what make has built
	rm -rf bin dist .tools

# The tools are pinned in tools/go.mod, apart from the main module.
$(TOOLS)/stamp: tools/go.mod tools/go.sum
	cd tools && GOBIN=$(TOOLS) GOFLAGS= $(GO) install tool
	@touch $@
