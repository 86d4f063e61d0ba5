# Tandem: what to type. `make help` lists it.

SWIFT ?= swift
# What the sources link against, and what the tests and measurements use.
DEPS := libwebsockets-dev libwebsockets-evlib-uv libuv1-dev libcurl4-openssl-dev libssl-dev libsimdjson-dev \
	libsqlite3-dev libpq-dev libnghttp2-dev libstdc++-12-dev pkg-config
TEST_DEPS := libxml2 python3 python3-venv curl openssl
# The Lua of the simulated Redis: whatever builds all targets, or the simulation, needs it.
SIMULATION_DEPS := liblua5.1-0-dev
# The servers that tests of stores, and of several nodes, start for themselves.
STORE_DEPS := postgresql pgbouncer
CLUSTER_DEPS := redis-server
# Compilers for the companions of Android apps, and the engine that evaluates alert rules.
COMPANION_DEPS := openjdk-17-jdk-headless kotlin
ALARM_DEPS := prometheus
BENCH_DEPS := valgrind strace binutils
# The servers that the hub is compared with; uWebSockets comes from PyPI.
COMPARE_DEPS := nginx-light libnginx-mod-nchan nats-server gcc libc6-dev
# For the Debian package, and to try it.
PACKAGE_DEPS := binutils dpkg-dev xz-utils python3
TRIAL_DEPS := debootstrap lintian systemd
# For `make fuzz`: how many inputs, and with which sanitizer (address, or none).
COUNT := 10000000
SANITIZER :=
FUZZ_SANITIZER = $(if $(SANITIZER),--sanitize=$(SANITIZER))
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: help deps simulation-deps test-deps test-python bench-deps build debug run demo cluster style check test test-stores \
	test-cluster test-browser test-companions test-libraries test-alarms test-sanitizers test-package package release fuzz \
	simulate bench bench-counted soak loadtest one-surface chaos nodes frozen-tab push-bench compare gateways pictures clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

deps: ## install the system packages that are missing
	@$(call install,$(DEPS))

simulation-deps: deps
	@$(call install,$(SIMULATION_DEPS))

test-deps: simulation-deps
	@$(call install,$(TEST_DEPS))

bench-deps: deps
	@$(call install,$(TEST_DEPS) $(BENCH_DEPS))

build: deps ## build the hub, optimised
	$(SWIFT) build -c release --product tandem

debug: deps ## build the hub as the tests do, in half the time
	$(SWIFT) build --product tandem

run: debug ## run the hub on 127.0.0.1:6001 with the defaults
	.build/debug/tandem serve

demo: debug ## show a hub on a page with four phones; Ctrl-C ends everything
	@.build/debug/tandem demo

cluster: build ## run three nodes as one hub on 127.0.0.1:6001, with Redis and PostgreSQL; Ctrl-C ends everything
	@$(call install,$(CLUSTER_DEPS) $(STORE_DEPS) python3)
	loadtest/cluster.sh

test-python: test-deps
	@Tests/HubIntegrationTests/python-env.sh .build/test-venv

style: ## check format, names, rooms, module edges, citations and prose
	@$(call install,python3)
	SWIFT='$(SWIFT)' Tests/Style/style.sh

check: simulation-deps style ## check style, and run the tests that need no socket and no other program
	$(SWIFT) build --build-tests
	SWIFT='$(SWIFT)' Tests/stages.sh computing

test: test-deps test-python ## run all tests
	$(SWIFT) build --build-tests
	SWIFT='$(SWIFT)' Tests/stages.sh all

test-stores: simulation-deps ## try SQLite, and PostgreSQL with and without PgBouncer, against the contract of the stores
	@$(call install,$(STORE_DEPS) python3)
	$(SWIFT) build --build-tests
	Tests/StoreTests/postgres.sh $(SWIFT) test --skip-build --disable-xctest --filter '^StoreTests\.'
	TANDEM=.build/debug/tandem Tests/StoreTests/postgres.sh python3 -B Tests/StoreTests/crashes.py server 20
	TANDEM=.build/debug/tandem Tests/StoreTests/postgres.sh python3 -B Tests/StoreTests/crashes.py hub 5
	TANDEM=.build/debug/tandem Tests/StoreTests/postgres.sh python3 -B Tests/StoreTests/crashes.py both 3
	OWNER=.build/debug/tandem-owner Tests/StoreTests/postgres.sh python3 -B Tests/StoreTests/owners.py direct 3
	OWNER=.build/debug/tandem-owner Tests/StoreTests/postgres.sh python3 -B Tests/StoreTests/owners.py pooled 3

test-browser: simulation-deps ## try what the hub gives to browsers in Chromium; skipped where it cannot start
	@$(call install,$(CLUSTER_DEPS) $(STORE_DEPS) python3)
	-@$(call install,chromium)
	$(SWIFT) build
	Tests/StoreTests/postgres.sh python3 -B Tests/BrowserTests

# Cases of the fault tests; none: all but the long ones. `FAULTS='redis-empty-60 one-surface-*'` runs others.
FAULTS ?=
test-cluster: test-deps test-python ## try the ways between nodes on Redis, Pusher's protocol over three nodes, and faults of them: FAULTS=
	@$(call install,$(CLUSTER_DEPS) $(STORE_DEPS))
	$(SWIFT) build --build-tests
	TANDEM_TEST_CLUSTER=1 $(SWIFT) test --skip-build --disable-xctest --filter '^ClusterTests\.'
	TANDEM=$(CURDIR)/.build/debug/tandem CHANNELS=$(CURDIR)/channels CONFORMANCE_NODES=3 Tests/StoreTests/postgres.sh \
		$(CURDIR)/.build/test-venv/bin/python -B Tests/HubIntegrationTests/Python/conformance run c lib n
	TANDEM=$(CURDIR)/.build/debug/tandem CHANNELS=$(CURDIR)/channels Tests/StoreTests/postgres.sh \
		$(CURDIR)/.build/test-venv/bin/python -B Tests/ClusterTests/faults run $(foreach case,$(FAULTS),'$(case)')

test-companions: test-deps test-python ## try the companions for Swift, Java and Kotlin on real sockets
	@$(call install,$(COMPANION_DEPS))
	$(SWIFT) build --build-tests
	Tests/Companions/uikit.sh
	TANDEM_TEST_COMPANIONS=1 $(SWIFT) test --skip-build --disable-xctest --filter '\.CompanionTests'

test-libraries: simulation-deps ## run the real client libraries that PyPI has against a hub, and print what each was seen to do
	@$(call install,python3 python3-venv)
	$(SWIFT) build
	@[ -x .build/libraries-venv/bin/pip ] || python3 -m venv .build/libraries-venv
	@.build/libraries-venv/bin/pip install --quiet --disable-pip-version-check -r Tests/ClientLibraries/requirements.txt
	.build/libraries-venv/bin/python -B Tests/ClientLibraries

test-alarms: simulation-deps ## fire each alert rule once on a real hub, and ask a real Prometheus the dashboard's queries
	@$(call install,$(CLUSTER_DEPS) $(STORE_DEPS) $(ALARM_DEPS) python3 openssl)
	$(SWIFT) build
	Tests/StoreTests/postgres.sh python3 -B Tests/Alarms

package: deps ## build the Debian package into .build/deb: VERSION= is yours to set
	@$(call install,$(PACKAGE_DEPS))
	SWIFT='$(SWIFT)' docs/deploy/debian/package.sh $(if $(VERSION),--version $(VERSION))

release: deps ## make a release's files into .build/release-files: package, bill of materials, notes, checksums
	@$(call install,$(PACKAGE_DEPS))
	SWIFT='$(SWIFT)' docs/deploy/release/release.sh

test-package: test-python ## try the package on a Debian 12 without Swift: first push, upgrade under 2,000 clients, purge; needs root
	@$(call install,$(PACKAGE_DEPS) $(TRIAL_DEPS))
	.build/test-venv/bin/python -B Tests/Package/manifests.py
	$(SWIFT) build --product tandem-gateways
	SWIFT='$(SWIFT)' Tests/Package/package.sh $(if $(OLD),$(OLD))

test-sanitizers: test-deps test-python ## run all tests under the address and the thread sanitizer
	Tests/Sanitizers/sanitizers.sh address
	Tests/Sanitizers/sanitizers.sh thread

fuzz: deps ## attack the parsers with seeded inputs: SEED=1 COUNT=10000000 SANITIZER=address are yours to set
	$(SWIFT) build -c release --product tandem-fuzz --scratch-path .build/fuzz$(SANITIZER) $(FUZZ_SANITIZER)
	ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16 .build/fuzz$(SANITIZER)/release/tandem-fuzz --count $(COUNT) $(if $(SEED),--seed $(SEED))

PAIRS ?= 1000000
simulate: simulation-deps ## try delivery against crashes, bad networks and people: SEED=, PAIRS=, NODES=, EVERY=MILLISECONDS, PART=, BREAK=RULE
	SWIFT_DETERMINISTIC_HASHING=1 $(SWIFT) run -c release tandem-simulate $(if $(SEED),--seed $(SEED)) --pairs $(PAIRS) $(if $(NODES),--nodes $(NODES)) $(if $(EVERY),--faults $(EVERY)) $(if $(PART),--part $(PART)) $(if $(BREAK),--break $(BREAK))

bench: bench-deps build ## measure instructions, writes, allocations and memory against their gates
	loadtest/bench/bench.sh

bench-counted: bench-deps build ## measure the instructions, writes and allocations alone, which need no quiet machine
	loadtest/bench/bench.sh counted

SCENARIO ?= fanout
loadtest: build ## load a hub of its own: SCENARIO="rooms --connections 2000 --html rooms.html"
	$(SWIFT) build -c release --product tandem-loadtest
	$(SWIFT) build -c release --product tandem-gateways
	loadtest/load.sh $(SCENARIO)

soak: build ## an hour at half load: does anything grow? FOLDER gets the report
	$(SWIFT) build -c release --product tandem-loadtest
	loadtest/soak.sh $(FOLDER)

one-surface: test-deps build ## try on real sockets that nobody is missed and nobody told twice
	$(SWIFT) build -c release --product tandem-gateways
	loadtest/one-surface.sh

chaos: test-deps test-python build ## try three nodes under random faults: MINUTES=30 PEOPLE=2000 SEED= are yours to set, OUT=FOLDER keeps the report
	@$(call install,$(CLUSTER_DEPS) $(STORE_DEPS))
	$(SWIFT) build -c release --product tandem-gateways
	loadtest/chaos.sh

nodes: test-deps build ## measure three nodes as one hub beside one node: ROUNDS=5 is yours to set
	@$(call install,$(CLUSTER_DEPS) $(STORE_DEPS) gcc libc6-dev)
	$(SWIFT) build -c release --product tandem-loadtest
	loadtest/nodes.sh

frozen-tab: test-deps build ## try a visible, a hidden and a frozen tab of a real browser, where there is Chromium
	$(SWIFT) build -c release --product tandem-gateways
	loadtest/frozen-tab.sh

push-bench: test-deps build ## measure what a push costs beside a bare libcurl loop
	loadtest/push.sh

compare: test-deps build ## put the hub beside nchan, nats-server, uWebSockets and a bare broadcaster: OUT=FOLDER keeps the report
	@$(call install,$(COMPARE_DEPS))
	@[ -x .build/compare-venv/bin/pip ] || python3 -m venv .build/compare-venv
	@.build/compare-venv/bin/pip install --quiet --disable-pip-version-check -r loadtest/compare/requirements.txt
	$(SWIFT) build -c release --product tandem-loadtest
	loadtest/compare.sh $(if $(OUT),--out $(OUT))

gateways: deps ## run simulated FCM and APNs ends; then: . gateways/gateways.env
	$(SWIFT) run tandem-gateways --data gateways

pictures: deps ## draw the pictures of the documents again, and take those of the running demo and console
	@$(call install,python3 chromium fonts-dejavu-core pngquant)
	$(SWIFT) build --product tandem
	$(SWIFT) build --product tandem-gateways
	docs/pictures/make.py
	python3 -B docs/pictures

clean: ## remove what was built
	rm -rf .build

# Asks dpkg first, which takes milliseconds, so that a machine with everything on it never waits for apt.
define install
missing=""; for package in $(1); do \
	dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; \
done; \
if [ -n "$$missing" ]; then \
	echo "installing$$missing"; \
	$(SUDO) apt-get update -qq && DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq $$missing >/dev/null; \
fi
endef
