# Each target is a script in .ci/, which installs what it lacks.
#
# A recipe is one exec: make waits for that process alone and hands a Ctrl-C
# or SIGTERM to it.

.DEFAULT_GOAL := help
.PHONY: help demo build test test-loaded fresh test-cli-versions test-forge chaos race machines lint fmt bench fuzz attack page pictures clean

ARGS ?=
PKG ?=
BENCH ?= .
RUN ?= .
FUZZTIME ?= 20s
REQUIRE ?= 1
RACE ?=
CLI_VERSIONS ?= 1
N ?= 20
SEEDS ?= 20
ATTACKS ?= 4500
SEED ?= 1
CLI ?=
LOAD ?=

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | while IFS='	' read -r name what; do printf '  make %-18s %s\n' "$$name" "$$what"; done

demo: ## the bot, a Slack and a model on this machine; ARGS='--fresh --listen 127.0.0.1:8065'
	@exec .ci/demo $(ARGS)

build: ## bin/bot
	@.ci/setup build && exec .ci/build

test: ## all tests; PKG=./internal/store/... for some, REQUIRE=0 to skip what lacks its tool, RACE=1 as CI does
	@DECKHAND_TEST_REQUIRE=$(REQUIRE) exec .ci/test $(if $(RACE),--some-race,$(PKG))

test-loaded: N = 10
test-loaded: ## the tests N times beside busy loops, until a run is red; N=10, LOAD=6 for so many loops, PKG
	@DECKHAND_TEST_REQUIRE=$(REQUIRE) exec .ci/test-loaded '$(N)' '$(LOAD)' $(PKG)

fresh: ## demo and test on bare machines, as root and as an ordinary user; takes root
	@exec .ci/fresh $(PKG)

test-cli-versions: ## the CLI's protocol on older versions too, all that it opens and offers; CLI_VERSIONS=2.1.37,2.1.150 for some
	@DECKHAND_TEST_CLI_VERSIONS='$(CLI_VERSIONS)' exec .ci/test -run '^TestCLI(Versions|Opens|Tools)$$' -count=1 -timeout 30m ./internal/agent/claude

test-forge: ## the client of forges on a real Gitea, which is built first; ARGS=-v
	@exec .ci/test-forge $(ARGS)

chaos: ## what people were promised, and the ledger against the model's bill, over SEEDS random histories with accidents from SEED on; CLI=2.1.330 for a newer Claude Code
	@exec .ci/chaos '$(SEEDS)' '$(SEED)' '$(CLI)'

race: ## all tests with the race detector; RUN=regexp PKG=./internal/store/... for some
	@exec .ci/test --race '$(RUN)' $(PKG)

machines: ## replicas and database servers on machines of their own: unplugged, failed over, one Slack; takes root for networks and users
	@exec .ci/machines

lint: ## golangci-lint, go vet for macOS, tidy go.mod
	@exec .ci/lint

fmt: ## gofumpt, by golangci-lint
	@.ci/setup fmt && exec "$$(.ci/tool golangci-lint)" fmt

bench: ## benchmarks; BENCH=regexp PKG=./internal/...
	@BENCH='$(BENCH)' exec .ci/bench $(PKG)

fuzz: ## every fuzz target for FUZZTIME
	@exec .ci/fuzz $(FUZZTIME)

attack: ## evasions against the policy, composed and run; canaries in the sandbox; ATTACKS=4500 SEED=1
	@exec .ci/attack '$(ATTACKS)' '$(SEED)'

page: ## rebuild the page that the binary embeds (internal/playground/page)
	@exec .ci/page build

pictures: ## ten stories before and now, who was notified of what, and the pictures of README and docs
	@exec .ci/pictures

clean: ## remove what was built; the caches and the demo's data stay
	@rm -rf bin internal/playground/page/node_modules
