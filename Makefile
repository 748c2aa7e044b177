# SPDX-FileCopyrightText: The Prerig Authors
# SPDX-License-Identifier: Apache-2.0

# Needs Go, git and make. The images and `make e2e` also need a container runtime that answers to `docker`, and
# `make e2e` kpt; see .ci/tools for a way to get both.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
IMAGE ?= localhost/prerig-fn:dev
IMAGE_PIPELINE ?= localhost/prerig:dev
CORPUS ?= $(or $(PRERIG_CORPUS),../shared/istio)
FUZZTIME ?= 10s
DOCKER ?= docker

dist := dist
mains := $(patsubst ./%/main.go,./%,$(wildcard ./fn/cmd/*/main.go ./pipeline/cmd/*/main.go))
go_build := CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'

# Tests and tools are compiled with the flags of the binaries, so that all share one build cache.
go_test := CGO_ENABLED=0 go test -trimpath
go_run := CGO_ENABLED=0 go run -trimpath

# $(call build_prerig,DIRECTORY): prerig starts only the renderer of its own build, which it recognises by the build ID.
define build_prerig
$(go_build) -o $(1)/ ./pipeline/cmd/prerig-render
id=$$($(host) go tool buildid $(1)/prerig-render) && CGO_ENABLED=0 go build -trimpath -o $(1)/ \
  -ldflags "-s -w -X main.version=$(VERSION) -X $(module)/pipeline/render.builtWith=go:$$id" ./pipeline/cmd/prerig
endef

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build the static binaries into dist/.
	@mkdir -p $(dist)
	$(go_build) -o $(dist)/ ./fn/cmd/prerig-fn
	$(call build_prerig,$(dist))

# A separate module, since it links Kubernetes: six minutes of processor time the first time. The gate starts the one next to prerig.
# $(call build_validator,DIRECTORY)
build_validator = cd pipeline/cmd/prerig-validate && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(abspath $(1))/ .

.PHONY: validator
validator: ## Build dist/prerig-validate: Kubernetes' own validation, which prerig gate asks.
	@mkdir -p $(dist)
	$(call build_validator,$(dist))

.PHONY: demo
demo: build ## Run the daemon's demonstration on this machine until Ctrl-C; without a terminal it runs each step and exits.
	@$(dist)/prerig demo $(if $(CI),--exit,$$(test -t 1 || echo --exit))

# The race detector needs cgo and so a C compiler. With cgo, programs that could load Go plugins, as kustomize could, are linked by the
# C compiler and keep each method, which takes twice as long.
race = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# The race detector delays the exit of each process by a second, and tests start hundreds.
go_test_race = GORACE=atexit_sleep_ms=0 go test -tags=kustomize_disable_go_plugin_support $(race)

.PHONY: test
test: ## Run the tests; the longest are in e2e, e2e-pipeline, test-race and test-corpus.
	PRERIG_CORPUS=none $(go_test) -short $(test_flags) -p $(test_packages) -timeout 40m $(longest_tests) $(packages)
	cd internal/release && $(go_test) -short $(test_flags) -timeout 40m ./...

# The daemons' tests mostly wait, so they run in parallel with the others.
.PHONY: test-race
test-race: ## Run the packages with goroutines, and the daemon's in-process tests, with the race detector.
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-race-daemons test-race-packages

.PHONY: test-race-daemons
test-race-daemons:
	$(go_test_race) $(test_flags) -count=1 -timeout 40m $(daemon_tests)

.PHONY: test-race-packages
test-race-packages:
	PRERIG_CORPUS=none $(go_test_race) -short $(test_flags) -p $(test_packages) -timeout 40m $(filter-out $(daemon_tests),$(race_tests))

.PHONY: test-corpus
test-corpus: ## Test invariants on each of Istio's test cases, CORPUS=DIR: removal restores the input, ten runs are equal.
	@test -d "$(CORPUS)" || { echo "there is no corpus at $(CORPUS)" >&2; exit 1; }
	PRERIG_CORPUS=$(abspath $(CORPUS)) $(go_test) $(test_flags) -timeout 40m -run "Corpus|Test_" $(corpus_tests)

# Linking a hundred test binaries takes minutes, a third less without debug information; verify-lint runs vet.
test_flags = -vet=off -ldflags='-s -w' -skip '$(upstream_tests)'

# Comparisons with Kubernetes' own code take minutes even when it is built; only make defaults runs them.
upstream_tests = ^(TestDefaultsAreKubernetes|TestWrittenMeansInjected|TestQuotasAreKubernetes)$$

# The longest tests start first. Many tests mostly wait, so more packages run in parallel than processors exist.
longest_tests = ./pipeline/render/engine ./pipeline/source/git ./pipeline/cli ./examples
test_packages = $(shell echo $$(( 2 * $$(getconf _NPROCESSORS_ONLN) )))

# The race detector finds nothing where neither code nor tests start a goroutine. And over hundreds of cases, one after the other, it
# takes most of the time and finds nothing that the other tests do not reach: the cases of other injectors, those that are made up by
# the thousand, and those of Istio in the corpus, where it is there. Nor does it in the command line, as what goes on at once is in the
# packages that it calls. And it sees nothing of a program that runs by itself.
goroutines = '\bgo (func|[a-zA-Z_.]+\()|\.Parallel\(\)|RunParallel|httptest\.New|errgroup|\.Go\(func|AfterFunc|(testbed|gittest|daemon)\.'
concurrent = $(addprefix $(module)/,$(shell git grep --untracked -lE $(goroutines) -- '*.go' | xargs -n1 dirname | sort -u))
case_tests = $(addprefix $(module)/,examples policies fn/cmd/% fn/decide fn/internal/hermetic internal/reference pipeline/cli \
  pipeline/cli/% pipeline/review/diff/group pipeline/internal/demo pipeline/internal/interop pipeline/render/engine/helmchart pipeline/review)
packages = $(shell go list ./...)

race_tests = $(filter-out $(case_tests),$(filter $(concurrent),$(packages)))
daemon_tests = $(module)/pipeline/internal/system
corpus_tests = $(addprefix $(module)/,$(shell git grep -l 'corpustest\.Dir\|PRERIG_CORPUS' -- '*_test.go' | xargs -n1 dirname | sort -u))
module := $(shell go list -m)

.PHONY: generate
generate: ## Regenerate the generated files.
	go generate ./...
	$(go_run) ./schemas/generate
	$(go_run) ./internal/reference/generate
	$(go_run) ./internal/picture/generate

.PHONY: kubernetes-schemas
kubernetes-schemas: ## Regenerate the schemas of Kubernetes from the releases that the generator lists (downloads 200 MB).
	cd pipeline/render/engine/apiserver/openapi && $(go_run) ./generate

# PRODUCTS names some of the products in generate/sources.go; all of them download 500 MB.
.PHONY: definitions
definitions: ## Regenerate the built-in CustomResourceDefinitions, PRODUCTS="istio gateway-api".
	cd pipeline/render/engine/apiserver/definitions && $(go_run) ./generate $(PRODUCTS)

.PHONY: news
news: ## Look for new releases of Istio, Kubernetes and the projects of definitions, update the sources, and list the rest.
	$(go_run) ./internal/news/cmd/news

.PHONY: verify
verify: verify-format verify-lint verify-systems verify-workflows verify-generated verify-licenses verify-tidy ## Run all checks that are not tests.

.PHONY: verify-format
verify-format: ## Check that all sources are formatted, carry a licence header and follow the style guide.
	@files=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$files" ]; then echo "not formatted with gofmt:"; echo "$$files"; exit 1; fi
	@files=$$(git grep --untracked -L 'SPDX-License-Identifier: Apache-2.0' -- '*.go' Makefile Dockerfile .ci ':!*.sum'); \
	if [ -n "$$files" ]; then echo "without the SPDX header:"; echo "$$files"; exit 1; fi
	$(go_run) ./internal/style/cmd/style -check

# golangci-lint has a separate module file, so that its dependencies are not ours. Building it the first time
# takes a minute or two.
.PHONY: style
style: ## Print figures of the sources' style: words of comments and pages, names, methods per type, long lines.
	@$(go_run) ./internal/style/cmd/style

.PHONY: verify-lint
verify-lint: ## Check the sources with the linters of .golangci.yml.
	CGO_ENABLED=0 GOFLAGS="$(GOFLAGS) -trimpath" go tool -modfile=.ci/golangci-lint.mod golangci-lint run ./...

# Compiling their dependencies takes some minutes of processor time the first time. Tests of Linux features are excluded.
.PHONY: verify-systems
verify-systems: ## Check that the command and the function build on Windows.
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go vet -trimpath ./fn/cmd/prerig-fn ./pipeline/cmd/prerig ./pipeline/cmd/prerig-render ./fn/version ./pipeline/internal/process/filelock ./pipeline/internal/process/disk

.PHONY: verify-workflows
verify-workflows: ## Check the GitHub workflows, those of the examples too.
	go tool -modfile=.ci/actionlint.mod actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml examples/*/github-actions.yaml

# Generating must not change the tree's hash. It need not be clean, so the check also works before a commit.
tree_hash = git ls-files -co --exclude-standard -z | xargs -0 sha256sum 2>/dev/null | sha256sum

.PHONY: verify-generated
verify-generated: ## Check that the generated files are up to date.
	@before=$$($(tree_hash)); $(MAKE) --no-print-directory generate && after=$$($(tree_hash)); \
	if [ "$$before" != "$$after" ]; then echo "generated files were not up to date; they are now:"; git status --short; exit 1; fi

.PHONY: verify-licenses
verify-licenses: ## Check the licences of the modules that the binaries link.
	$(go_run) ./fn/internal/licenses $(mains)

.PHONY: verify-tidy
verify-tidy: ## Check that go.mod and go.sum are tidy and match the downloaded modules.
	go mod tidy -diff
	cd internal/release && go mod tidy -diff
	cd pipeline/cmd/prerig-validate && go mod tidy -diff
	go mod verify

# Separate modules with the programs that tests compare with: see the head of each go.mod.
upstream := fn/internal/upstream

.PHONY: defaulter
defaulter: ## Build dist/upstream/defaulter: the defaults of the newest Kubernetes, for comparisons.
	cd $(upstream)/kubernetes && CGO_ENABLED=0 go build -trimpath -o $(abspath $(dist))/upstream/ ./defaulter

# Older versions of Kubernetes, with other defaults.
.PHONY: defaulters
defaulters: defaulter
	cd $(upstream)/kubernetes && for version in $$(ls versions); do \
	  CGO_ENABLED=0 go build -trimpath -tags novalidation -modfile versions/$$version/go.mod -o $(abspath $(dist))/upstream/defaulter-$$version ./defaulter || exit 1; \
	done

.PHONY: defaults
defaults: defaulters ## Compare the defaults that templates see, and the defaults that Prerig omits, with Kubernetes' own code.
	$(go_test) -count=1 -run '$(upstream_tests)' -v ./fn/admission ./fn/inject ./fn/lint

.PHONY: injector
injector: ## Build dist/upstream/injector and charts: Istio's own webhook and charts, for comparisons.
	cd $(upstream)/istio && CGO_ENABLED=0 go build -trimpath -o $(abspath $(dist))/upstream/ ./injector ./charts

# About five minutes. UPDATE=-update rewrites the pods of testdata/operator after a change of the documents or the version.
.PHONY: operator
operator: injector ## Compare imports of IstioOperator documents with the results of istioctl and Istio's webhook.
	$(go_test) -count=1 -timeout 20m -run 'TestOperator' -v ./pipeline/cli/importer -args -istio-tools $(abspath $(dist))/upstream $(UPDATE)

.PHONY: analyzer
analyzer:
	cd $(upstream)/istio && CGO_ENABLED=0 go build -trimpath -o $(abspath $(dist))/upstream/ ./analyzer

# UPDATE=-update rewrites fn/lint/testdata/analyze/answers.json after a change of the version.
.PHONY: analyze
analyze: analyzer ## Compare lint with the findings of istioctl analyze in its own test data.
	$(go_test) -count=1 -run 'TestAnalyzer|TestNothingFurther|TestCommandReadsLess' -v ./fn/lint -args -analyzer $(abspath $(dist))/upstream/analyzer $(UPDATE)

# Older versions of Istio. The tag chooses the sources that fit the minor.
.PHONY: injectors
injectors: injector
	cd $(upstream)/istio && for version in $$(ls versions); do \
	  CGO_ENABLED=0 go build -trimpath -tags istio$${version%.*} -modfile versions/$$version/go.mod -o $(abspath $(dist))/upstream/injector-$$version ./injector || exit 1; \
	done

# A few minutes the first time. UPDATE=-update rewrites the answers after a change of the cases or the version.
.PHONY: dapr
dapr: ## Compare the policy for Dapr with Dapr's own injector.
	cd $(upstream)/dapr && CGO_ENABLED=0 go build -trimpath -o $(abspath $(dist))/upstream/dapr-patcher ./patcher
	$(go_test) -count=1 -run 'TestDapr' -v ./policies $(if $(UPDATE),-args $(UPDATE))

# A few minutes the first time.
SOPS := v3.13.3
.PHONY: sops
sops: ## Decrypt the output of secrets: Encrypt with SOPS itself.
	GOBIN=$(abspath $(dist))/upstream CGO_ENABLED=0 go install -trimpath github.com/getsops/sops/v3/cmd/sops@$(SOPS)
	$(go_test) -count=1 -run 'TestSOPSDecrypts' -v ./pipeline/secret/sops

# About five minutes the first time: kustomize-controller links the clients of many clouds.
.PHONY: flux-decryptor
flux-decryptor: ## Decrypt the output of secrets: Encrypt with the decryptor of Flux' kustomize-controller.
	cd $(upstream)/flux && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(abspath $(dist))/upstream/flux-decryptor ./decryptor
	$(go_test) -count=1 -run 'TestFluxDecrypts' -v ./pipeline/secret/sops

# CHARTS holds checked out repositories, as OWNER+NAME. UPDATE=-update rewrites pipeline/render/engine/helmchart/CHARTS.md. Building
# Helm takes some minutes the first time.
HELM4 := v4.3.1
HELM3 := v3.22.0
helms = $(HELM4:v%=%)=$(abspath $(dist))/upstream/helm4/helm,$(HELM3:v%=%)=$(abspath $(dist))/upstream/helm3/helm
.PHONY: helm
helm: helm-programs ## Compare renders of charts with Helm itself, CHARTS=DIR.
	$(go_test) -count=1 -timeout 30m -run 'TestChartsOfOthers' -v ./pipeline/render/engine/helmchart -args -charts $(abspath $(CHARTS)) $(UPDATE) \
	  -helms $(helms)
	$(go_test) -count=1 -run 'TestChosenAsHelmChooses' -v ./pipeline/source/chart -args -helms $(helms)
	$(go_test) -count=1 -run 'TestHelmChartsAsKustomize' ./pipeline/render/engine -args -helms $(helms)

# Gitea reads its templates and translations from the module. SQLite needs a C compiler.
.PHONY: gitea
gitea: ## Build dist/upstream/gitea, a Git host for tests of pull requests.
	cd $(upstream)/gitea && CGO_ENABLED=1 go build -trimpath -tags 'sqlite sqlite_unlock_notify' -ldflags '-s -w' -o $(abspath $(dist))/upstream/gitea code.gitea.io/gitea

# About ten minutes the first time, and twenty more with PRERIG_E2E=full.
.PHONY: e2e-gitea
e2e-gitea: gitea ## Open, update, merge and close pull requests on Gitea itself, also across kills of the daemon.
	$(go_test) -count=1 -timeout 60m -p 1 -run 'TestGitea' -v ./pipeline/promotion/pullrequest ./pipeline/internal/system -args \
	  -gitea $(abspath $(dist))/upstream/gitea -gitea-root $$(cd $(upstream)/gitea && go list -m -f '{{.Dir}}' code.gitea.io/gitea)

# Needs Chromium, which .ci/tools installs. PRERIG_SCREENSHOTS=DIR keeps screenshots.
.PHONY: e2e-page
e2e-page: ## Work with the daemon's page in Chromium: by keyboard, narrow, in the dark, without scripts.
	cd $(upstream)/chromium && CGO_ENABLED=0 go build -trimpath -o $(abspath $(dist))/upstream/chromium ./driver
	$(go_test) -count=1 -timeout 30m -run 'TestPageByKeyboard|TestPageUpdatesItself|TestPagesInEveryWindow|TestUpgradeInEveryWindow|TestLinksOfOtherSites' -v ./pipeline/server -args \
	  -browser $(abspath $(dist))/upstream/chromium

# Needs Chromium, as e2e-page. PRERIG_SCREENSHOTS=DIR keeps screenshots.
.PHONY: e2e-site
e2e-site: site ## Use the documentation's site in Chromium: search by keyboard, narrow, in the dark, without scripts.
	cd $(upstream)/chromium && CGO_ENABLED=0 go build -trimpath -o $(abspath $(dist))/upstream/chromium ./driver
	$(go_test) -count=1 -timeout 20m -run 'TestSite' -v ./internal/site -args -browser $(abspath $(dist))/upstream/chromium -site $(abspath $(dist))/site

.PHONY: helm-programs
helm-programs: ## Build dist/upstream/helm4 and helm3: Helm itself, for comparisons.
	GOBIN=$(abspath $(dist))/upstream/helm4 CGO_ENABLED=0 go install -trimpath helm.sh/helm/v4/cmd/helm@$(HELM4)
	GOBIN=$(abspath $(dist))/upstream/helm3 CGO_ENABLED=0 go install -trimpath helm.sh/helm/v3/cmd/helm@$(HELM3)

.PHONY: helm-post-renderer
helm-post-renderer: helm-programs ## Run prerig as the post-renderer of Helm itself.
	$(go_test) -count=1 -run 'TestHelm' -v ./pipeline/internal/interop -args -helms $(helms)

# INJECTOR=PROGRAM compares the stored answers with those of a program that answers as Linkerd's injector of one version; with
# UPDATE=-update it rewrites them. policies/testdata/linkerd/README.md describes its input and output.
.PHONY: linkerd
linkerd: ## Compare the policy for Linkerd with the answers of Linkerd's own injectors.
	$(go_test) -count=1 -run 'TestLinkerd' -v ./policies -args $(if $(INJECTOR),-linkerd-injector=$(INJECTOR)) $(UPDATE)

# The answers are data in policies/testdata/opentelemetry-sidecar/*.operator.json, whose README describes the input and output of OPERATOR=program.
.PHONY: opentelemetry
opentelemetry: ## Compare the policies for OpenTelemetry with the answers of its operator.
	$(go_test) -count=1 -run 'TestOpenTelemetry' -v ./policies -args $(if $(OPERATOR),-opentelemetry-operator=$(OPERATOR)) $(UPDATE)

# INJECTOR and UPDATE as for Linkerd; policies/testdata/vault-agent/README.md describes input and output of the program.
.PHONY: vault
vault: ## Compare the policy for Vault's agent with the answers of Vault's own injectors.
	$(go_test) -count=1 -run 'TestVault' -v ./policies -args $(if $(INJECTOR),-vault-injector=$(INJECTOR)) $(UPDATE)

# INJECTOR and UPDATE as for Linkerd; policies/testdata/cloud-sql-operator/README.md describes input and output of the program.
.PHONY: cloud-sql
cloud-sql: ## Compare the policy cloud-sql-operator with the answers of the Cloud SQL Auth Proxy Operator.
	$(go_test) -count=1 -run 'TestCloudSQL' -v ./policies -args $(if $(INJECTOR),-cloud-sql-operator=$(INJECTOR)) $(UPDATE)

# VAULT, CLOUD_SQL and OPENTELEMETRY are programs like INJECTOR and OPERATOR above; each is optional; UPDATE as for Linkerd.
.PHONY: istio-order
istio-order: defaulter injector ## Compare pods with Istio's proxy and another sidecar with the results of both webhooks.
	PRERIG_CORPUS=$(abspath $(CORPUS)) $(go_test) -count=1 -run 'TestOrderWithIstio' -v ./policies -args $(if $(VAULT),-vault-injector=$(VAULT)) \
	  $(if $(CLOUD_SQL),-cloud-sql-operator=$(CLOUD_SQL)) $(if $(OPENTELEMETRY),-opentelemetry-operator=$(OPENTELEMETRY)) $(UPDATE)

ORACLE_N ?= 500
ORACLE_SEED ?= 1

# 20,000 workloads take about twenty minutes on two cores: make oracle ORACLE_N=20000 ORACLE_SEED=2.
.PHONY: oracle
oracle: defaulter injector ## Compare with Istio's own injector on random workloads, ORACLE_N=500 ORACLE_SEED=1.
	$(go_run) ./fn/internal/oracle/cmd/oracle -tools $(dist)/upstream -n $(ORACLE_N) -seed $(ORACLE_SEED)

.PHONY: oracle-built-in
oracle-built-in: defaulter injector ## Compare the built-in policy istio with Istio's own injector, ORACLE_N=500 ORACLE_SEED=1.
	$(go_run) ./fn/internal/oracle/cmd/oracle -tools $(dist)/upstream -built-in -n $(ORACLE_N) -seed $(ORACLE_SEED)

# CHARTS is the directory manifests of Istio's sources at a release, and VERSION the release, such as 1.30.3.
.PHONY: oracle-built-in-chart
oracle-built-in-chart: defaulter injector ## Compare the built-in policy istio with the chart of a release, CHARTS=DIR VERSION=1.30.3 ORACLE_N=500 ORACLE_SEED=1.
	$(go_run) ./fn/internal/oracle/cmd/oracle -tools $(dist)/upstream -built-in -by-chart -charts $(abspath $(CHARTS)) -version $(VERSION) \
	  -n $(ORACLE_N) -seed $(ORACLE_SEED)

# Each version installs its own charts, which are in its module.
.PHONY: oracle-older
oracle-older: defaulter injectors ## Compare with the injectors of older versions of Istio, ORACLE_N=500 ORACLE_SEED=1.
	for version in $$(ls $(upstream)/istio/versions); do \
	  charts=$$(cd $(upstream)/istio && go list -m -modfile versions/$$version/go.mod -f '{{.Dir}}' istio.io/istio)/manifests && \
	  $(go_run) ./fn/internal/oracle/cmd/oracle -tools $(dist)/upstream -injector $(dist)/upstream/injector-$$version -charts $$charts \
	    -version $$version -n $(ORACLE_N) -seed $(ORACLE_SEED) || exit 1; \
	done

APPLIED_N ?= 1000
APPLIED_SEED ?= 1

AMBIENT_SETS ?= 200
AMBIENT_SEED ?= 39

.PHONY: authorizer
authorizer:
	cd $(upstream)/istio && CGO_ENABLED=0 go build -trimpath -o $(abspath $(dist))/upstream/ ./authorizer

# With UPDATE=-update AMBIENT_SETS=24 it rewrites pipeline/ambient/testdata/decisions.json after a change of the steps or the version.
.PHONY: ambient-oracle
ambient-oracle: authorizer ## Compare enforcement before and after the move to ambient mode with istiod's own configuration, AMBIENT_SETS=200 AMBIENT_SEED=39.
	$(go_test) -count=1 -timeout 60m -run 'TestEnforcementIsIstios' -v ./pipeline/ambient -args \
	  -authorizer $(abspath $(dist))/upstream/authorizer -sets $(AMBIENT_SETS) -seed $(AMBIENT_SEED) $(UPDATE)

.PHONY: ambient-server
ambient-server: ## Create what the steps to ambient mode write at a real API server with istiod's validation: AMBIENT_SETS=200 AMBIENT_SEED=39.
	rm -rf $(dist)/ambient-sets
	$(go_test) -count=1 -run TestWriteSets ./pipeline/ambient -args -to $(abspath $(dist))/ambient-sets -sets $(AMBIENT_SETS) -seed $(AMBIENT_SEED)
	PRERIG_CLUSTER=full PRERIG_AMBIENT_SETS=$(abspath $(dist))/ambient-sets $(go_test) -count=1 -timeout 60m -run TestServerAcceptsAmbientSteps -v ./fn/internal/cluster

.PHONY: test-validator
test-validator: ## Run the tests of prerig-validate, which is a separate module.
	cd pipeline/cmd/prerig-validate && CGO_ENABLED=0 go test -trimpath -vet=off -ldflags '-s -w' ./...

# 40,000 pods and more take about an hour on two cores: make applied APPLIED_N=20000 APPLIED_SEED=2.
.PHONY: applied
applied: validator injector ## Check that injected objects can be applied, created and updated: APPLIED_N=1000 APPLIED_SEED=1 CORPUS=DIR:DIR.
	$(go_run) ./fn/internal/applied/cmd/applied -validator $(dist)/prerig-validate -charts $(dist)/upstream/charts \
	  -corpora "$(CORPUS)" -examples examples -n $(APPLIED_N) -seed $(APPLIED_SEED)

# The programs that oracle, applied, defaults, analyze, ambient-oracle and e2e-cluster compare with. Tests build missing and outdated ones.
.PHONY: upstream-programs
upstream-programs: injector defaulters analyzer authorizer validator ## Build the programs that tests compare with: a quarter of an hour on two processors the first time.
	$(go_run) ./fn/internal/cluster/cmd/controlplane -build -upstream $(upstream) -cache $(cluster_cache)

cluster_cache = $(or $(PRERIG_CLUSTER_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/prerig-cluster)

CLUSTER_N ?= 300
CLUSTER_SEED ?= 1
CLUSTER_KUBERNETES ?=

# Building the cluster takes about a quarter of an hour the first time; PRERIG_CLUSTER_CACHE is the directory of its programs. CLUSTER_KUBERNETES is
# the minor of another control plane, one of fn/internal/upstream/kubernetes/clusters. Names of
# the oracle's installations in PRERIG_CLUSTER_INSTALLATIONS replace the default ones; differences are written to the directory
# PRERIG_CLUSTER_REPORT.
# TestGateFindsMistakes compares prerig gate with the dry run of 500 broken objects; PRERIG_BROKEN_N=2000 and PRERIG_BROKEN_SEED choose
# others.
# PRERIG_POLICIES names a directory with further ValidatingAdmissionPolicies to evaluate, such as a checkout of
# kubescape/cel-admission-library; `go test ./fn/internal/cluster -run TestPolicies -args -update` records the answers for the gate's tests.
.PHONY: e2e-cluster
e2e-cluster: ## Compare with a real cluster on random workloads, CLUSTER_N=300 CLUSTER_SEED=1 CLUSTER_KUBERNETES=1.30.
	PRERIG_CLUSTER=full PRERIG_CLUSTER_N=$(CLUSTER_N) PRERIG_CLUSTER_SEED=$(CLUSTER_SEED) PRERIG_CLUSTER_KUBERNETES=$(CLUSTER_KUBERNETES) \
	  $(go_test) -count=1 -timeout 60m -v ./fn/internal/cluster
	$(if $(CLUSTER_KUBERNETES),,PRERIG_CLUSTER=full $(go_test) -count=1 -timeout 30m -run 'TestInCluster' -v ./pipeline/internal/system)

# Beyond the 300 pods of `make e2e-cluster`: more pods, other versions, and removal of the causes that prerig admit --why names.
ADMIT_PODS ?= $(or $(ADMIT_N),2000)
ADMIT_SEED ?= 1
.PHONY: e2e-admit
e2e-admit: ## Compare prerig admit with dry runs of a real API server and istiod: ADMIT_N=2000 ADMIT_SEED=1 CLUSTER_KUBERNETES=1.34.
	PRERIG_CLUSTER=full PRERIG_ADMIT=full PRERIG_ADMIT_N=$(ADMIT_PODS) PRERIG_ADMIT_SEED=$(ADMIT_SEED) PRERIG_CLUSTER_KUBERNETES=$(CLUSTER_KUBERNETES) \
	  $(go_test) -count=1 -timeout 120m -run 'TestAdmit|TestCaptureReplacesTheCluster' -v ./fn/internal/cluster

.PHONY: e2e-upgrade
e2e-upgrade: ## Upgrade the mesh under the workloads of a real cluster, also through Flux: PRERIG_UPGRADE_N=300.
	PRERIG_CLUSTER=full PRERIG_UPGRADE=full $(go_test) -count=1 -timeout 60m -run TestUpgradeIsPredicted -v ./fn/internal/cluster
	PRERIG_CLUSTER=full PRERIG_UPGRADE=full $(go_test) -count=1 -timeout 60m -run TestInClusterFluxUpgradesTheMesh -v ./pipeline/internal/system

# 10,000 workloads for the comparison and a tenth of them for each further one; about 1,000 untouched pods for prerig verify on
# each version of Kubernetes, and 50 of each kind of tampering. It takes hours.
CLUSTER_FULL_N ?= 10000

.PHONY: e2e-cluster-full
e2e-cluster-full: ## Compare with real clusters of all versions at full size, CLUSTER_FULL_N=10000 CLUSTER_SEED=1.
	for kubernetes in "" $$(ls $(upstream)/kubernetes/clusters); do \
	  PRERIG_CLUSTER=full PRERIG_CLUSTER_N=$(CLUSTER_FULL_N) PRERIG_CLUSTER_PODS=2000 PRERIG_CLUSTER_TAMPERED=50 PRERIG_CLUSTER_SEED=$(CLUSTER_SEED) \
	  PRERIG_CLUSTER_KUBERNETES=$$kubernetes $(go_test) -count=1 -timeout 12h -v ./fn/internal/cluster || exit 1; \
	done

# About 1,000 pods, made by real controllers; five runs of prerig verify over them.
.PHONY: bench-verify
bench-verify: ## Measure prerig verify over the pods of a real cluster, CLUSTER_KUBERNETES=1.34.
	PRERIG_CLUSTER=full PRERIG_CLUSTER_PODS=2000 PRERIG_CLUSTER_RUNS=5 PRERIG_CLUSTER_KUBERNETES=$(CLUSTER_KUBERNETES) \
	  $(go_test) -count=1 -timeout 60m -run TestVerifyFindsNothing -v ./fn/internal/cluster

# Redis is Debian's, unpacked without installation, or the program PRERIG_REDIS. Building Argo CD takes five minutes of
# processor time the first time.
redis := $(abspath $(dist))/upstream/redis
$(redis)/redis:
	mkdir -p $(redis)/deb && cd $(redis)/deb && apt-get download redis-server redis-tools liblzf1 libjemalloc2
	for package in $(redis)/deb/*.deb; do dpkg -x $$package $(redis) || exit 1; done
	printf '#!/bin/sh\nLD_LIBRARY_PATH=$$(echo %s/usr/lib/*-linux-gnu) exec %s/usr/bin/redis-server "$$@"\n' $(redis) $(redis) > $@ && chmod +x $@

.PHONY: e2e-argocd
e2e-argocd: $(if $(PRERIG_REDIS),,$(redis)/redis) ## Have Argo CD itself apply the daemon's output, and run the plugin, on a real API server.
	PRERIG_CLUSTER=full PRERIG_REDIS=$(or $(PRERIG_REDIS),$(redis)/redis) \
	  $(go_test) -count=1 -timeout 60m -run 'TestArgoCDSyncs|TestArgoCDRunsThePlugin' -v ./pipeline/internal/system

.PHONY: conformance
conformance: ## Compare with Istio's own injector over a corpus, CORPUS=DIR.
	$(go_run) ./fn/internal/conformance/cmd/conformance -corpus $(CORPUS)

# Run it in two trees, or with PRERIG=FILE for another binary: equal digests are equal output, to the byte.
PRERIG ?= $(dist)/prerig
.PHONY: digests
digests: build ## Print digests of the output for corpora and examples, CORPUS=DIR:DIR.
	$(go_run) ./fn/internal/conformance/cmd/digests -prerig $(PRERIG) -corpora $(CORPUS) -examples examples

.PHONY: repositories
repositories: ## Inject into public manifests and remove the injection again, REPOSITORIES=DIR:DIR.
	PRERIG_REPOSITORIES=$(REPOSITORIES) $(go_test) -count=1 -timeout 60m -v -run TestRepositories ./pipeline/cli

# REPOSITORIES are clones named OWNER+NAME. ARGO_CD is a checkout of Argo CD: if it is set, the comparison includes its generators, and needs helm and
# kustomize in PATH. Building it takes ten minutes the first time.
.PHONY: repositories-gitops
repositories-gitops: $(if $(ARGO_CD),argocd-generate) ## Compare the deployments of Flux and Argo CD repositories with Flux and Argo CD, REPOSITORIES=DIR:DIR ARGO_CD=DIR.
	PRERIG_REPOSITORIES=$(REPOSITORIES) $(if $(ARGO_CD),PRERIG_ARGOCD_GENERATE=$(abspath $(dist))/upstream/argocd-generate) \
	  $(go_test) -count=1 -timeout 60m -v -run TestGitOpsRepositories ./pipeline/cli

.PHONY: argocd-generate
argocd-generate: ## Build dist/upstream/argocd-generate in a checkout of Argo CD, ARGO_CD=DIR.
	mkdir -p $(dist)/upstream
	printf '{"Replace": {"%s/prerig-generate/main.go": "%s/argocd/generate/main.go"}}' $(abspath $(ARGO_CD)) $(abspath $(upstream)) > $(dist)/upstream/argocd-generate.json
	cd $(ARGO_CD) && CGO_ENABLED=0 go build -trimpath -tags argocd -overlay $(abspath $(dist))/upstream/argocd-generate.json \
	  -o $(abspath $(dist))/upstream/argocd-generate ./prerig-generate

.PHONY: matrix
matrix: ## Set every injected field in pods before injection, for all policies of corpora, CORPUS=DIR:DIR.
	PRERIG_MATRIX=full PRERIG_CORPUS=$(CORPUS) $(go_test) -count=1 -timeout 180m -v -run TestOwnFieldsMatrixOfCorpus ./fn/engine

BENCH_TRIPLES ?= 5000
BENCH_KUSTOMIZE ?= 100

# BENCH_BESIDE="istioctl kube-inject -f - --revision default --injectConfigFile FILE --meshConfigFile FILE --valuesFile FILE" measures
# prerig inject beside that command, and nothing else.
.PHONY: bench
bench: build ## Measure against a function that does nothing, lint against inject, and the engine per pod.
	$(go_run) ./fn/internal/bench -binary $(dist)/prerig-fn -triples $(BENCH_TRIPLES) -kustomize $(BENCH_KUSTOMIZE) -beside "$(BENCH_BESIDE)"
	$(if $(BENCH_BESIDE),,$(go_test) -run '^$$' -bench . -benchmem ./fn/...)

ADMIT_WORKLOADS ?= $(or $(ADMIT_N),5000)
ADMIT_ROUNDS ?= 3
.PHONY: bench-admit
bench-admit: build ## Measure the processor time of prerig admit beside prerig inject, ADMIT_N=5000 workloads, ADMIT_ROUNDS=3 in turn.
	$(go_run) ./fn/internal/bench -binary $(dist)/prerig-fn -triples $(ADMIT_WORKLOADS) -rounds $(ADMIT_ROUNDS) -admit

.PHONY: bench-pipeline
bench-pipeline: build ## Measure the pipeline against a shell script with git and kustomize.
	$(go_run) ./pipeline/internal/bench -prerig $(dist)/prerig -function $(dist)/prerig-fn

BENCH_FLEET ?= 1000 10000
BENCH_FLEET_LIMIT ?= 12m
.PHONY: bench-fleet
bench-fleet: build ## Measure fleets of applications, BENCH_FLEET="100 1000 10000", for at most BENCH_FLEET_LIMIT.
	$(go_run) ./pipeline/internal/bench -prerig $(dist)/prerig -fleet "$(BENCH_FLEET)" -limit $(BENCH_FLEET_LIMIT)

BENCH_FILES ?= 100000
.PHONY: bench-large
bench-large: build ## Measure one application in a repository of BENCH_FILES files, with a tenth as many commits.
	$(go_run) ./pipeline/internal/bench -prerig $(dist)/prerig -files $(BENCH_FILES)

BENCH_RELEASES ?= 300

# The chart is that of istiod in the module that the comparison with Istio's webhook pins. A few minutes; BENCH_RELEASES=20 takes one.
.PHONY: bench-helm
bench-helm: build helm-programs ## Measure charts against helm template and a shell script with it, BENCH_RELEASES=300.
	$(go_run) ./pipeline/internal/bench -prerig $(dist)/prerig -helm $(dist)/upstream/helm4/helm -apps $(BENCH_RELEASES) \
	  -chart $$(cd $(upstream)/istio && go mod download istio.io/istio && go list -m -f '{{.Dir}}' istio.io/istio)/manifests/charts/istio-control/istio-discovery

# The content of the image: the Dockerfile copies it from here or builds it in the same way, perhaps for another architecture (GOARCH),
# for which the tool that collects the licences is not built.
host = GOOS=$(shell go env GOHOSTOS) GOARCH=$(shell go env GOHOSTARCH)

# $(call image_files,DIRECTORY,PACKAGE)
define image_files
rm -rf $(1)
mkdir -p $(1)/etc $(1)/usr/local/bin $(1)/usr/share/licenses/prerig
printf 'nobody:x:65534:65534:nobody:/:/sbin/nologin\n' > $(1)/etc/passwd
printf 'nobody:x:65534:\n' > $(1)/etc/group
cp LICENSE $(1)/usr/share/licenses/prerig/
$(host) $(go_run) ./fn/internal/licenses -o $(1)/usr/share/licenses/prerig/THIRD-PARTY $(2)
endef

.PHONY: dist-image
dist-image: ## Lay out the function's image in dist/image, with the binary of this machine.
	$(call image_files,$(dist)/image,./fn/cmd/prerig-fn)
	$(go_build) -o $(dist)/image/usr/local/bin/ ./fn/cmd/prerig-fn

# The system's trusted certificates, which the pipeline's image includes.
CA_CERTIFICATES ?= $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem))

.PHONY: dist-image-pipeline
dist-image-pipeline: ## Lay out the pipeline's image in dist/image-pipeline, with the binary of this machine.
	@if [ ! -f "$(CA_CERTIFICATES)" ]; then echo "no CA certificates found on this machine: set CA_CERTIFICATES=FILE"; exit 1; fi
	$(call image_files,$(dist)/image-pipeline,./pipeline/cmd/prerig ./pipeline/cmd/prerig-validate)
	$(call build_prerig,$(dist)/image-pipeline/usr/local/bin)
	$(call build_validator,$(dist)/image-pipeline/usr/local/bin)
	mkdir -p $(dist)/image-pipeline/etc/ssl/certs $(dist)/image-pipeline/etc/prerig $(dist)/image-pipeline-state/prerig
	cp $(CA_CERTIFICATES) $(dist)/image-pipeline/etc/ssl/certs/ca-certificates.crt

.PHONY: image
image: dist-image ## Build the function's image from the binary of this machine, without a registry.
	$(DOCKER) build --target fn-prebuilt --build-arg VERSION=$(VERSION) -t $(IMAGE) .

.PHONY: image-pipeline
image-pipeline: dist-image-pipeline ## Build the pipeline's image in the same way.
	$(DOCKER) build --target pipeline-prebuilt --build-arg VERSION=$(VERSION) -t $(IMAGE_PIPELINE) .

# The release tool is a separate module, so that its dependencies are not ours.
release_tool := $(abspath $(dist))/upstream/release
RELEASE_OUT ?= $(dist)/release/$(VERSION)
RELEASE_IMAGES ?= localhost

.PHONY: release-tool
release-tool:
	cd internal/release && CGO_ENABLED=0 go build -trimpath -o $(release_tool) ./cmd/release

# docs/releasing.md describes the output and the variables. Building for six platforms takes some minutes for each the
# first time.
.PHONY: release
release: release-tool ## Make a release: VERSION=v0.2.0 RELEASE_KEY=FILE (or RELEASE_UNSIGNED=1).
	$(release_tool) -root . -out $(RELEASE_OUT) -version "$(if $(filter command line environment,$(origin VERSION)),$(VERSION))" \
	  -images "$(RELEASE_IMAGES)" -key "$(RELEASE_KEY)" -url "$(RELEASE_URL)" -platforms "$(RELEASE_PLATFORMS)" \
	  $(if $(RELEASE_UNSIGNED),-unsigned) $(if $(RELEASE_BUILDER),-builder "$(RELEASE_BUILDER)")

# RELEASE_PLATFORMS= selects all of them.
.PHONY: release-check
release-check: release-tool ## Build a release twice, in different places and as different users, and compare all bytes.
	.ci/release-check $(release_tool) $(if $(filter undefined,$(origin RELEASE_PLATFORMS)),linux/$(shell go env GOHOSTARCH),$(RELEASE_PLATFORMS))

# Tests of a release build an unsigned one for this machine unless RELEASE_OUT holds one, such as dist/release/v0.2.0.
made_release = $(if $(wildcard $(RELEASE_OUT)/checksums.txt),,$(MAKE) release RELEASE_PLATFORMS=linux/$(shell go env GOHOSTARCH) $(if $(RELEASE_KEY),,RELEASE_UNSIGNED=1))

.PHONY: e2e-release
e2e-release: ## Follow the quick start with the files of a release alone, without a network: VERSION=v0.2.0.
	$(made_release)
	$(go_test) -count=1 -timeout 20m -run 'TestRelease$$' -v ./examples -args -release $(abspath $(RELEASE_OUT))

# Other projects' programs, built from their modules in about ten minutes the first time. syft examines a whole release, which is
# built unless RELEASE_OUT holds one.
COSIGN := v3.1.3
SYFT := v1.57.0
.PHONY: e2e-release-proofs
e2e-release-proofs: ## Have cosign and syft check signatures, provenance and bills of materials of a release: VERSION=v0.2.0.
	GOBIN=$(abspath $(dist))/upstream CGO_ENABLED=0 go install -trimpath -ldflags '-s -w' github.com/sigstore/cosign/v3/cmd/cosign@$(COSIGN)
	GOBIN=$(abspath $(dist))/upstream CGO_ENABLED=0 go install -trimpath -ldflags '-s -w' github.com/anchore/syft/cmd/syft@$(SYFT)
	$(made_release)
	cd internal/release && $(go_test) -count=1 -timeout 20m -run 'TestCosignVerifies|TestSyftFindsTheSame' -v . -args \
	  -cosign $(abspath $(dist))/upstream/cosign -syft $(abspath $(dist))/upstream/syft -made $(abspath $(RELEASE_OUT))

# Needs a container runtime that answers to docker, and builds a control plane as e2e-cluster does.
.PHONY: e2e-release-cluster
e2e-release-cluster: ## Install the chart of a release on a real API server, and run its image according to the pod: VERSION=v0.2.0.
	$(made_release)
	PRERIG_CLUSTER=full $(go_test) -count=1 -timeout 60m -run 'TestInClusterRelease$$' -v ./pipeline/internal/system -args -release $(abspath $(RELEASE_OUT))

.PHONY: release-push
release-push: release-tool ## Push the images of a release and their signatures: VERSION=v0.2.0 RELEASE_IMAGES=ghcr.io/prerig.
	$(release_tool) push -out $(RELEASE_OUT) -images "$(RELEASE_IMAGES)"

.PHONY: e2e
e2e: ## Run the examples and the images under kustomize, kpt and containers.
	$(go_test) -count=1 -timeout 20m ./examples/... ./fn/internal/hermetic/...
	$(go_test) -count=1 -timeout 20m -run 'TestPipelineImage|TestArgoCDPluginInTheImage' -v ./pipeline/internal/interop

E2E_KILLS ?= 30
.PHONY: e2e-pipeline
e2e-pipeline: ## Test the daemon at full size: E2E_KILLS=30, ten times as many pushes under each failure, a thousand pipelines; needs git.
	PRERIG_E2E=full PRERIG_E2E_KILLS=$(E2E_KILLS) $(go_test) -count=1 -timeout 60m -v ./pipeline/internal/system
	$(MAKE) e2e-hostile

.PHONY: e2e-hostile
e2e-hostile: ## Run a daemon with 100 hostile sources next to 100 honest ones for ten minutes, and measure memory and delays; needs git.
	PRERIG_E2E=hostile $(go_test) -count=1 -timeout 40m -v -run TestHonestSourcesBesideHostileOnes ./pipeline/internal/system

LONG ?= 2h
.PHONY: e2e-long
e2e-long: ## Run a daemon with 500 pipelines and hostile sources of each kind for LONG=2h, and check that it leaks nothing; needs git.
	PRERIG_E2E_LONG=$(LONG) $(go_test) -count=1 -timeout 12h -v -run TestALongRunKeepsNothing ./pipeline/internal/system

# Hugo has a separate module file. Building it the first time takes two minutes, and the site then a second.
.PHONY: site
site: ## Build the documentation as a site in dist/site, and check all of its links.
	$(go_run) ./internal/site/cmd/site -gather $(dist)/site-pages
	CGO_ENABLED=0 go tool -modfile=.ci/hugo.mod hugo --source site --contentDir ../$(dist)/site-pages --destination ../$(dist)/site \
	  --cleanDestinationDir --noBuildLock --quiet
	cp -r docs/images $(dist)/site/
	$(go_run) ./internal/site/cmd/site -finish $(dist)/site

.PHONY: fuzz
fuzz: ## Run each fuzz test for a short time, FUZZTIME=10s.
	@FUZZTIME=$(FUZZTIME) .ci/fuzz

.PHONY: clean
clean: ## Remove the build output.
	rm -rf $(dist)
