# Contiv: build, test, try out. `make help` lists the targets.

GO       ?= go
BIN      := bin
COMPLETION := cmd/netctl/internal/commands/completion
DESTDIR  ?=
PREFIX   ?= /usr/local
# Packages that run together: more only fight over the processors.
JOBS     ?= 2
PACKAGES ?= ./...
FUZZTIME ?= 30s
# System tests in which the daemons do most at the same time. Not TestBGP: GoBGP 4.8 marks paths
# as stale while its ListPath reads the mark, which the race detector ends an agent for.
RACED    ?= TestPolicy|TestServices|TestFlows|TestAuditMode|TestDoctor|TestMasters|TestStoreOfOnesOwn|TestSupportBundle|TestTooManyChanges|TestDNS
# The tools of lint and fmt have a module of their own.
TOOL     := $(GO) tool -modfile=scripts/tools/go.mod
# Whether what the tests with a cluster of Kubernetes need has been built.
CLUSTER  := scripts/kubernetes --complete && scripts/containerd --complete

# Binaries and tests are compiled alike, so that nothing is compiled twice.
export CGO_ENABLED := 0
export GOFLAGS     := $(GOFLAGS) -trimpath -buildvcs=false
# Tests that need the binaries find them here instead of building their own.
export CONTIV_BIN  := $(CURDIR)/$(BIN)

.PHONY: build image v2plugin test test-ovs test-long long race fuzz bench demo demo-down lint vulncheck sbom diagrams deps consul otelcol dockerd kubernetes containerd vm test-vm k8s-tests test-k8s conformance scale ui fmt install install-files clean help
.DEFAULT_GOAL := build

build: ## build the binaries into bin/
	@mkdir -p $(BIN)
	$(GO) build -ldflags "$$(scripts/version-flags)" -o $(BIN)/ ./cmd/... ./test/lab/contiv-lab

image: build ## make the container image, without a container engine, as dist/contiv-netplugin.tar
	$(GO) run ./scripts/image

v2plugin: build ## make the managed plugin of the Docker Engine, for docker plugin create, in dist/v2plugin
	rm -rf dist/v2plugin
	$(GO) run ./scripts/image -plugin dist/v2plugin

test: deps consul otelcol build ## run all tests (as root), in about 40 minutes
	$(GO) run ./scripts/gotest -alone /test/ $$($(CLUSTER) && echo -tags kubernetes) -p $(JOBS) -timeout 45m $(PACKAGES)
	@$(CLUSTER) || echo "not run: the tests with a real cluster of Kubernetes; make test-k8s builds it, once, and runs them"

test-k8s: deps kubernetes containerd build ## run the tests with a real cluster of Kubernetes
	$(GO) test -count=1 -tags kubernetes -p 1 -timeout 25m ./test/kubernetes

test-vm: deps vm build ## run system tests on the kernel's datapath, in the emulated machine, and write docs/tested.md
	scripts/test-vm

conformance: deps kubernetes k8s-tests build ## run Kubernetes' own end-to-end tests of the network, and write docs/conformance.md
	$(GO) run ./test/conformance

scale: deps build ## measure clusters of up to 1,000 hosts (as root), in about an hour, and write docs/scale.md
	$(GO) run ./test/scale

test-long: kubernetes containerd long race fuzz test-vm ## run all tests, long ones included, then the race detector, fuzzing, and the tests on the kernel's datapath, in about five hours

long: deps consul otelcol build ## run all tests, those that can take longer, longer
	scripts/deps long
	CONTIV_LONG=1 $(GO) run ./scripts/gotest -alone /test/ $$($(CLUSTER) && echo -tags kubernetes) -p $(JOBS) -timeout 240m $(PACKAGES)

test-ovs: build ## run the tests of the switch with the Open vSwitch of other releases of Debian
	@for release in trixie sid; do ovs=$$(scripts/ovs $$release) || exit; echo "== $$release"; \
		PATH=$$ovs:$$PATH $(GO) test -count=1 ./ofnet || exit; \
		CONTIV_OVS=$$ovs $(GO) test -count=1 -timeout 30m -run 'TestExpired|TestOnePort|TestChurn|TestSwitchIsKilled|TestServices' ./test/systemtests || exit; done

# System tests are about other processes: it is the daemons that have the race detector there.
race: deps consul otelcol build ## run the tests with the race detector, and system tests with daemons that have it
	scripts/deps long
	CGO_ENABLED=1 $(GO) run ./scripts/gotest -alone /test/ -race -p $(JOBS) -timeout 60m $$($(GO) list $(PACKAGES) | grep -v /test/systemtests)
	mkdir -p $(BIN)/race && cp $(BIN)/contivk8s $(BIN)/contiv-lab $(BIN)/race/
	CGO_ENABLED=1 $(GO) build -race -o $(BIN)/race/ $$($(GO) list ./cmd/... | grep -v /contivk8s)
	CONTIV_BIN=$(CURDIR)/$(BIN)/race GORACE=halt_on_error=1 CONTIV_TEST_TIME_SCALE=4 $(GO) test -timeout 60m -run '$(RACED)' ./test/systemtests

fuzz: ## fuzz every target for FUZZTIME
	scripts/fuzz $(FUZZTIME)

bench: deps consul build ## run the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem $$($(CLUSTER) && echo -tags kubernetes) -p 1 -timeout 60m $(PACKAGES)

demo: deps build ## bring up three hosts and show containers talking across them
	scripts/demo

demo-down: ## remove what make demo made
	scripts/demo down

lint: ## go mod tidy, vet, staticcheck, gofumpt, the project's own rules
	$(GO) mod tidy -diff
	$(GO) vet ./...
	$(GO) vet -tags kubernetes ./test/kubernetes ./test/bench
	$(GO) vet -tags vm ./test/systemtests
	$(TOOL) staticcheck ./...
	$(TOOL) staticcheck -tags kubernetes ./test/kubernetes ./test/bench
	@unformatted="$$($(TOOL) gofumpt -l .)"; test -z "$$unformatted" || { echo "run make fmt, these files are not formatted:"; echo "$$unformatted"; exit 1; }
	$(GO) run ./scripts/housecheck
	bash -n cmd/netctl/internal/commands/completion/netctl.bash scripts/consul scripts/dockerd scripts/kubernetes scripts/kubernetes-module scripts/k8s-tests scripts/containerd scripts/cached scripts/demo scripts/diagrams scripts/ovs scripts/vm scripts/vm-image scripts/vm-init scripts/test-vm scripts/vulncheck scripts/otelcol scripts/deps scripts/fuzz scripts/version-flags .ci/run
	sh -n install/image/entrypoint

vulncheck: ## look for known vulnerabilities in Go modules; VULNDB is the database's URL
	scripts/vulncheck

sbom: build ## write what binaries and image consist of to dist/sbom, as CycloneDX JSON
	$(GO) run ./scripts/sbom

diagrams: ## draw docs/diagrams/*.svg from their texts, with Graphviz
	scripts/diagrams

deps: ## install the Debian packages that are missing
	scripts/deps

consul: ## build the Consul server that tests use into a cache, once
	scripts/consul

kubernetes: ## build the programs of Kubernetes that tests use into a cache, once
	scripts/kubernetes

containerd: ## build the containerd 2.3 that tests use into a cache, once
	scripts/containerd

vm: ## make the emulated machine with the kernel's datapath that scripts/vm starts, once
	scripts/deps vm
	scripts/vm-image

k8s-tests: ## build Kubernetes' own end-to-end tests into a cache, once
	scripts/k8s-tests

ui: ## build the page of netmaster, netmaster/ui/dist, from its source; needs Node and npm
	cd netmaster/ui && npm ci && npm run check && npm run build

otelcol: ## build the OpenTelemetry collector that tests use into a cache, once
	scripts/otelcol

dockerd: ## build the Docker Engine 28 that tests use into a cache, once
	scripts/dockerd

fmt: ## format the source
	$(TOOL) gofumpt -w .

install: build install-files ## install binaries, units and sample settings below DESTDIR

install-files: # the same with what is in bin/ already
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)/opt/cni/bin $(DESTDIR)/etc/contiv $(DESTDIR)/usr/lib/systemd/system $(DESTDIR)/usr/lib/sysusers.d
	install -m 755 $(BIN)/netmaster $(BIN)/netplugin $(BIN)/netctl $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(BIN)/contivk8s $(BIN)/netcontiv $(DESTDIR)/opt/cni/bin/
	sed 's|@BIN@|$(PREFIX)/bin|' scripts/systemd/netmaster.service > $(DESTDIR)/usr/lib/systemd/system/netmaster.service
	sed 's|@BIN@|$(PREFIX)/bin|' scripts/systemd/netplugin.service > $(DESTDIR)/usr/lib/systemd/system/netplugin.service
	sed 's|@BIN@|$(PREFIX)/bin|' scripts/systemd/contiv-docker-relay.service > $(DESTDIR)/usr/lib/systemd/system/contiv-docker-relay.service
	install -D -m 644 scripts/systemd/ovs-vswitchd.conf $(DESTDIR)/usr/lib/systemd/system/ovs-vswitchd.service.d/contiv.conf
	install -m 644 scripts/systemd/contiv.sysusers $(DESTDIR)/usr/lib/sysusers.d/contiv.conf
	install -D -m 644 scripts/systemd/contiv.tmpfiles $(DESTDIR)/usr/lib/tmpfiles.d/contiv.conf
	install -D -m 644 $(COMPLETION)/netctl.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/netctl
	install -D -m 644 $(COMPLETION)/netctl.zsh $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_netctl
	install -D -m 644 $(COMPLETION)/netctl.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/netctl.fish
	@for f in netmaster netplugin; do \
		if [ -e $(DESTDIR)/etc/contiv/$$f.env ]; then echo "$(DESTDIR)/etc/contiv/$$f.env is kept as it is"; \
		else install -m 640 scripts/systemd/$$f.env $(DESTDIR)/etc/contiv/$$f.env; fi; done

clean: ## remove what was built
	rm -rf $(BIN) dist

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12
