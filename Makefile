# `make help` lists the targets. Everything is plain go; the Makefile only remembers the flags.

GO      ?= go
T       ?= 60s
N       ?= 100
SEEDS   ?= 50000
FIRST   ?= $(shell date +%s)
B       ?= .
PKG     ?= ./...
# Packages run three at a time, on the yardstick of two cores: those with a JVM and a database wait more than they compute.
TESTFLAGS ?= -p 3 -timeout 45m
RACEFLAGS ?= -timeout 30m
# The packages that take longest start first; one that starts last would run alone.
LONGEST    = $(if $(filter ./...,$(PKG)),./connectors/kafka ./tests/crash ./tests/slt ./tests/chaos ./tests/restarts ./exec)

.DEFAULT_GOAL := help
.PHONY: help build lint check test test-flink test-nexmark race fuzz equivalence crash crash-matrix crash-servers disk network big sim bench bench-check nexmark nexmark-large kafka json microbench rewrite docs clean s3

help: ## print this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | while IFS='	' read -r t d; do printf '  make %-12s %s\n' "$$t" "$$d"; done

build: ## build bin/streamsql
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/streamsql ./cmd/streamsql

lint: ## formatting, vet, and the shape of the house (ARCHITECTURE.md)
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not gofmt'ed:"; echo "$$bad"; exit 1; fi
	$(GO) vet $(PKG)
	$(GO) test ./tests

check: lint ## lint and the tests that need nothing but Go; under a minute once built
	$(GO) test -short -timeout 10m $(PKG)

test: ## every test, with a real Kafka and a real PostgreSQL (started by the tests)
	$(GO) test $(TESTFLAGS) $(LONGEST) $(PKG)

test-flink: ## ask Apache Flink again for the answers of tests/flink and show what changed: make test-flink [T=join]
	cd tests/flink && ./record $(if $(filter 60s,$(T)),,$(T))
	git diff --stat -- tests/flink/testdata

test-nexmark: ## the Nexmark queries over 1,000,000 events on Flink and here (FLINK_HEAP=3g or more)
	cd tests/flink && ASK_SUFFIX=.1000000 ./record nexmark 1000000
	STREAMSQL_NEXMARK_EVENTS=1000000 $(GO) test ./tests/flink -run TestNexmark -count=1 -v -timeout 0

race: ## the tests of check under the race detector (needs a C compiler)
	$(GO) test -race -short $(RACEFLAGS) $(PKG)

# Go would spend up to a minute on making one interesting input smaller, which is all of T.
fuzz: ## run every fuzzer for T each: make fuzz T=60s [PKG=./sql]
	@set -e; $(GO) list -f '{{.ImportPath}} {{.Dir}}' $(PKG) | while read -r pkg dir; do \
	  for f in $$(cat "$$dir"/*_test.go 2>/dev/null | sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p'); do \
	    echo "== $$pkg $$f"; $(GO) test "$$pkg" -run '^$$' -fuzz "^$$f\$$" -fuzztime $(T) -fuzzminimizetime 10x; done; done

equivalence: ## random queries against a naive evaluation for T, with random seeds; prints those that fail: make equivalence T=10m
	$(GO) test ./tests/equivalence -run 'TestEquivalence$$' -count=1 -timeout 0 -for $(T)

disk: ## faults of the disk under jobs from files to files, N of them or 1000: make disk [N=5000]
	STREAMSQL_TEST_DISK_FAULTS=$(if $(filter 100,$(N)),1000,$(N)) $(GO) test ./tests/disk -run TestDiskFaults -count=1 -v -timeout 0

crash: ## kill jobs on real parts: the matrix of every point, sink and kind of barriers (600 kills), and N times at random: make crash N=100
	STREAMSQL_TEST_CRASHES=$(N) $(GO) test ./tests/... -run 'Crash|Zombie' -count=1 -v -timeout 0

crash-matrix: ## only the matrix of make crash; prints the table of docs/exactly-once.md
	STREAMSQL_TEST_CRASHES=1 $(GO) test ./tests/crash -run TestCrashMatrix -count=1 -v -timeout 0

crash-servers: N = 50
crash-servers: ## kill the broker and the database N times each below live jobs: make crash-servers N=50
	STREAMSQL_TEST_SERVER_CRASHES=$(N) $(GO) test ./tests/crash -run IsKilledAndRestarted -count=1 -v -timeout 0

.PHONY: chaos
chaos: N = 50
chaos: ## streamsql chaos over the examples and other jobs, N faults each, with kills of the broker and the database: make chaos N=50
	STREAMSQL_TEST_CHAOS=$(N) $(GO) test ./tests/chaos -run TestCampaign -count=1 -v -timeout 0

network: ## break the network of running jobs N times, on real parts: make network N=300
	STREAMSQL_TEST_NETWORK_FAULTS=$(N) $(GO) test ./tests/network -count=1 -v -timeout 0

sim: ## a million runs of the protocol's simulation, from a random first seed: make sim [SEEDS=50000 per configuration]
	$(GO) test ./exec -run 'TestSimulation$$' -count=1 -v -timeout 0 -sim.seeds=$(SEEDS) -sim.first=$(FIRST)

s3: ## the tests of checkpoints in a bucket, against a real S3 server, which is built first (minutes)
	@mkdir -p bin/s3/data/chk
	GOBIN=$(CURDIR)/bin/s3 $(GO) install github.com/versity/versitygw/cmd/versitygw@v1.8.0
	@bin/s3/versitygw --access key --secret secret --port 127.0.0.1:7071 posix bin/s3/data >bin/s3/log 2>&1 & \
	  trap "kill $$!" EXIT; sleep 2; \
	  STREAMSQL_TEST_S3=http://127.0.0.1:7071 $(GO) test ./checkpoint/s3 ./tests/crash -run 'TestBucket|AnotherMachine|OldMachine' -count=1 -timeout 30m

big: ## 20 million groups under 512 MiB, killed twice; minutes (docs/benchmarks.md)
	STREAMSQL_BIG=1 $(GO) test ./tests/bigstate -count=1 -v -timeout 0

bench: ## Kafka to Kafka and to PostgreSQL, operators alone, starting, latency, restart, idle state, growth: writes tables into bin
	@mkdir -p bin
	STREAMSQL_BENCH=$(CURDIR)/bin $(GO) test ./tests/bench -skip TestGuaranteeCost -count=1 -v -timeout 0

.PHONY: eos soak
eos: ## what exactly once costs: at-least-once beside it, aligned and unaligned, checkpoints every 100 ms, 1 s, 10 s: writes bin/eos*.md and .json (20 min)
	@mkdir -p bin
	STREAMSQL_BENCH=$(CURDIR)/bin $(GO) test ./tests/bench -run TestGuaranteeCost -count=1 -v -timeout 0

soak: ## two jobs for SOAK_TIME (30m), one killed every SOAK_KILL (20s) and rescaled every SOAK_RESCALE (3m): exact, nothing grows: writes bin/soak.md and .json
	@mkdir -p bin
	STREAMSQL_SOAK=$(CURDIR)/bin $(GO) test ./tests/soak -count=1 -v -timeout 0

nexmark: ## the Nexmark queries here and on Flink in turn: writes bin/nexmark.md and .json (docs/benchmarks.md has the settings)
	@mkdir -p bin
	STREAMSQL_NEXMARK=$(CURDIR)/bin $(GO) test ./tests/nexmark -run TestNexmark -count=1 -v -timeout 0

nexmark-large: ## q7, q9, q18, q19 and q20 over 100 million events in 4 GiB of memory, here and on Flink, results compared: writes bin/nexmark-large.md
	@mkdir -p bin
	NEXMARK_FLINK_JVM="$${NEXMARK_FLINK_JVM:--Xmx2g}" NEXMARK_FLINK_MANAGED=$${NEXMARK_FLINK_MANAGED:-2g} STREAMSQL_NEXMARK=$(CURDIR)/bin \
	  $(GO) test ./tests/nexmark -run TestLarge -count=1 -v -timeout 0 $(if $(RECORD),-record)

kafka: ## Kafka to Kafka, exactly once, here and on Flink in turn, records of 100, 250 and 1,024 bytes: writes bin/kafka.md and .json
	@mkdir -p bin
	STREAMSQL_NEXMARK=$(CURDIR)/bin $(GO) test ./tests/nexmark -run TestKafka -count=1 -v -timeout 0

json: ## reading and writing JSON beside a scanner and an encoder by hand, in turn: writes bin/json.md
	@mkdir -p bin
	STREAMSQL_BENCH=$(CURDIR)/bin $(GO) test ./connectors/format -run TestShareOfLimit -count=1 -v

bench-check: ## processor time of eight Nexmark queries against the figures recorded last; RECORD=1 records
	STREAMSQL_NEXMARK=$(CURDIR)/bin $(GO) test ./tests/nexmark -run TestCheck -count=1 -v -timeout 0 $(if $(RECORD),-record)

microbench: ## Go benchmarks matching B: make microbench B=JSON [PKG=./exec/...]
	$(GO) test -run '^$$' -bench '$(B)' -benchmem -timeout 0 $(PKG)

rewrite: ## record the golden files anew; read the difference before you commit it
	$(GO) test $(TESTFLAGS) $$($(GO) list -f '{{$$p := .ImportPath}}{{range .TestImports}}{{if eq . "github.com/cockroachdb/datadriven"}}{{$$p}} {{end}}{{end}}{{range .XTestImports}}{{if eq . "github.com/cockroachdb/datadriven"}}{{$$p}} {{end}}{{end}}' $(PKG)) ./tests/docs -rewrite

docs: ## regenerate what is generated from the code (kernels, reference pages)
	$(GO) generate $(PKG)

clean: ## remove what build made and what the tests cached
	rm -rf bin "$${STREAMSQL_TEST_CACHE:-$${XDG_CACHE_HOME:-$$HOME/.cache}/streamsql-test}"
