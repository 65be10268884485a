GO ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The costly checks of our own invariants are compiled into every test.
TAGS := invariants

# go runs the pinned linters without installing them.
GOLANGCI := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
STATICCHECK := $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

# DuckDB is C++. The linker finds the C++ library by a name that comes with g++; where only gcc is installed, the library
# itself is there all the same and is given that name.
ifeq ($(shell gcc -print-file-name=libstdc++.so),libstdc++.so)
$(shell mkdir -p .cache/lib && ln -sf "$$(gcc -print-file-name=libstdc++.so.6)" .cache/lib/libstdc++.so)
export CGO_LDFLAGS := -O2 -g $(CGO_LDFLAGS) -L$(CURDIR)/.cache/lib
endif

# How long the kills of `make soak` go on, and how many copies without a lock it takes, with GTIDs and without.
SOAK ?= 1h
SNAPSHOTS ?= 200

.PHONY: all build test test-sources race demo bench soak lint fmt mysql-image clean

all: build

build:
	$(GO) build -ldflags "-X main.version=$(VERSION)" -o bin/tidemark ./cmd/tidemark

# Two packages at a time: several of them run servers.
test:
	$(GO) test -tags $(TAGS) -p 2 -timeout 45m ./...

# The end-to-end tests once for each kind of account on the source, each with another lock plan forced.
test-sources:
	TIDEMARK_TEST_ACCOUNT=all TIDEMARK_TEST_SNAPSHOT_LOCK=global $(GO) test -tags $(TAGS) -count=1 -timeout 60m ./integration
	TIDEMARK_TEST_ACCOUNT=rds TIDEMARK_TEST_SNAPSHOT_LOCK=tables $(GO) test -tags $(TAGS) -count=1 -timeout 60m ./integration
	TIDEMARK_TEST_ACCOUNT=least TIDEMARK_TEST_SNAPSHOT_LOCK=none $(GO) test -tags $(TAGS) -count=1 -timeout 60m ./integration
	TIDEMARK_TEST_ACCOUNT=cloudsql $(GO) test -tags $(TAGS) -count=1 -timeout 60m ./integration

race:
	$(GO) test -race -tags $(TAGS) -p 1 -timeout 90m ./...

# KEEP=1 leaves both servers up.
demo: build
	$(GO) run ./integration/demo -tidemark bin/tidemark $(if $(KEEP),-keep)

bench: build
	$(GO) run ./bench -tidemark bin/tidemark

# The same tests as in `make test`, in their long mode.
soak:
	TIDEMARK_SOAK=$(SOAK) TIDEMARK_SNAPSHOTS=$(SNAPSHOTS) $(GO) test -tags $(TAGS) -count=1 -timeout 0 -v -run 'ExactlyOnce|CopiesWithoutLock|KilledCopy|ResyncKilled' ./integration/...

lint:
	@if $(GOLANGCI) --version >/dev/null 2>&1; then \
		echo "golangci-lint run"; $(GOLANGCI) run; \
	else \
		echo "golangci-lint can't be had; go vet and staticcheck instead"; \
		$(GO) vet -tags $(TAGS) ./... && $(STATICCHECK) -tags $(TAGS) ./...; \
	fi

fmt:
	gofmt -w $$(git ls-files '*.go')

# A MySQL image for the Testcontainers path, where no image registry is reachable.
mysql-image:
	$(GO) run ./integration/mysqltest/mkimage

clean:
	rm -rf bin
