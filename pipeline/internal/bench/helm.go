// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// releases are applications that are released by Helm, each with values of its own, from one chart of a repository.
type releases struct {
	*benchRun
	r        *testbed.Repository
	d        *testbed.Daemon
	charts   string // the directory that is served as the chart repository
	url      string // of the chart repository
	versions int
}

// measureHelm compares with helm template: what it costs to render one chart, one release and all.
func (b *benchRun) measureHelm() error {
	if err := b.measureChart(); err != nil {
		return err
	}
	h := &releases{benchRun: b, charts: filepath.Join(b.dir, "charts")}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("opening a port for the chart repository: %w", err)
	}
	h.url = "http://" + listener.Addr().String()
	server := &http.Server{Handler: http.FileServer(http.Dir(h.charts)), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	if err := h.prepareReleases(); err != nil {
		return err
	}
	h.d, err = testbed.Serve(b.ctx, b.prerig, filepath.Join(b.dir, "helm"), releasePipelines(b.apps, h.r.URL, h.url))
	if err != nil {
		return err
	}
	if err := h.waitForTexts(h.r, b.apps, "nginx:1.0."); err != nil {
		return fmt.Errorf("%w\n%s", err, h.d.Problems())
	}
	if err := h.waitUntilQuiet(h.d, h.r, "first"); err != nil {
		return err
	}
	if err := h.measureOneRelease(); err != nil {
		return err
	}
	if err := h.measureChartVersion(); err != nil {
		return err
	}
	return h.d.Stop()
}

// helmScript renders one release as one would do it by hand: $1 is the repository, $2 the application, $3 the branch,
// $4 the chart repository, $5 the chart's version. Charts are taken from the archive that an earlier run has brought,
// as Helm's own cache would.
const helmScript = `
git clone -q --depth 1 "$1" source
git clone -q --depth 1 -b "$3" "$1" rendered
mkdir -p "rendered/$2"
helm pull app --repo "$4" --version "$5"
helm template "$2" "app-$5.tgz" --namespace shop --kube-version 1.33.4 -f "source/apps/$2/values.yaml" > "rendered/$2/manifests.yaml"
cd rendered
git add -A
git commit -q -m "Render $2"
git push -q origin HEAD
`

// allHelmScript renders several releases, and clones, pulls the chart and pushes once for all: as helmScript, with the
// applications at the end.
const allHelmScript = `
repository=$1 branch=$2 charts=$3 version=$4
shift 4
git clone -q --depth 1 "$repository" source
git clone -q --depth 1 -b "$branch" "$repository" rendered
helm pull app --repo "$charts" --version "$version" --untar
for app; do
  mkdir -p "rendered/$app"
  helm template "$app" app --namespace shop --kube-version 1.33.4 -f "source/apps/$app/values.yaml" > "rendered/$app/manifests.yaml"
done
cd rendered
git add -A
git commit -q -m "Render"
git push -q origin HEAD
`

// prepareReleases makes the chart that helm create makes, in its first version, and a repository with values for each
// application.
func (h *releases) prepareReleases() (err error) {
	if err := os.MkdirAll(h.charts, 0o755); err != nil {
		return fmt.Errorf("making the chart repository: %w", err)
	}
	if err := h.runHelm("create", "app"); err != nil {
		return err
	}
	if h.r, err = h.git.Repository(h.ctx, "releases"); err != nil {
		return err
	}
	content, err := h.nextVersion()
	if err != nil {
		return err
	}
	for i := range h.apps {
		content["apps/"+appName(i)+"/values.yaml"] = releaseValues("0")
	}
	if _, err := h.r.Commit(h.ctx, "first", content); err != nil {
		return err
	}
	return h.branchByHand(h.r)
}

// releaseValues are the values of one application.
func releaseValues(round string) string {
	return "replicaCount: 3\npodAnnotations: {example.com/round: \"round-" + round + "\"}\ningress: {enabled: true}\n" +
		"autoscaling: {enabled: true, minReplicas: 2, maxReplicas: 9}\nresources: {requests: {cpu: 250m, memory: 256Mi}}\n"
}

// newestChartVersion returns the chart's newest one. Its images have it as their tag.
func (h *releases) newestChartVersion() string { return fmt.Sprintf("1.0.%d", h.versions) }

// nextVersion publishes another version of the chart, and returns the lock that names it.
func (h *releases) nextVersion() (map[string]string, error) {
	h.versions++
	version := h.newestChartVersion()
	if err := h.runHelm("package", "app", "--version", version, "--app-version", version); err != nil {
		return nil, err
	}
	if err := h.runHelm("repo", "index", "."); err != nil {
		return nil, err
	}
	archive, err := os.ReadFile(filepath.Join(h.charts, "app-"+version+".tgz"))
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	sum := sha256.Sum256(archive)
	return map[string]string{"charts.lock.yaml": fmt.Sprintf(`apiVersion: prerig.dev/v1alpha1
kind: ChartLock
metadata: {name: charts}
spec:
  charts:
  - {name: app, repository: %q, range: ^1.0.0, version: %s, digest: "sha256:%s", url: "%[1]s/app-%[2]s.tgz"}
`, h.url, version, hex.EncodeToString(sum[:]))}, nil
}

// runHelm runs Helm in the directory of the charts.
func (b *benchRun) runHelm(args ...string) error {
	command := exec.CommandContext(b.ctx, b.helm, args...)
	command.Dir, command.Env = filepath.Join(b.dir, "charts"), b.helmEnvironment()
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("running helm %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// helmEnvironment keeps Helm from what the user has configured.
func (b *benchRun) helmEnvironment() []string {
	return append(testbed.Environment(), "PATH="+b.path, "HOME="+b.dir,
		"HELM_CACHE_HOME="+filepath.Join(b.dir, "helm-cache"),
		"HELM_CONFIG_HOME="+filepath.Join(b.dir, "helm-config"), "HELM_DATA_HOME="+filepath.Join(b.dir, "helm-data"))
}

// releasePipelines returns a RenderPipeline for each of n applications, in one file.
func releasePipelines(n int, url, charts string) map[string]string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `---
apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %[1]s}
spec:
  source: {git: {url: %[2]s, ref: {branch: main}}}
  build:
    helm: {chart: app, repository: %[3]q, version: ^1.0.0, namespace: shop, kubeVersion: 1.33.4, valuesFiles: [apps/%[1]s/values.yaml]}
  publish: [{git: {branch: rendered}}]
`, appName(i), url, charts)
	}
	return map[string]string{"releases.yaml": b.String()}
}

// measureOneRelease changes the values of one application.
func (h *releases) measureOneRelease() error {
	var hands, ours []time.Duration
	for round := range h.rounds + 1 {
		app := appName(round % h.apps)
		commit, err := h.r.Commit(h.ctx, "values",
			map[string]string{"apps/" + app + "/values.yaml": releaseValues(fmt.Sprint(round + 1))})
		if err != nil {
			return err
		}
		time.Sleep(pause)
		mark := h.d.Mark()
		took, err := h.timePublished(h.d, h.r, commit)
		if err != nil {
			return err
		}
		planned, err := h.d.Entry(h.ctx, mark, func(e testbed.Entry) bool { return e.Message == "planned" && e.Fields["reason"] != "interval" })
		if err != nil {
			return err
		}
		if planned.Fields["to run"] != 1.0 {
			return fmt.Errorf("changing the values of one application: it runs %v pipelines", planned.Fields["to run"])
		}
		if err := h.waitUntilQuiet(h.d, h.r, app); err != nil {
			return err
		}
		hand, err := h.runScript(helmScript, h.r.URL, app, byHand, h.url, h.newestChartVersion())
		if err != nil {
			return err
		}
		if round > 0 {
			hands, ours = append(hands, hand), append(ours, took)
		}
	}
	ratio := benchmark.Median(ours...).Seconds() / benchmark.Median(hands...).Seconds()
	return h.report.Table(fmt.Sprintf("an event that touches the values of one of %d releases; %d rounds", h.apps, h.rounds),
		[]string{"", "time", ""},
		[]string{"script: clone, helm pull, helm template, commit, push", benchmark.Millis(benchmark.Median(hands...)),
			""},
		[]string{"prerig serve, from the event to the pushed commit: one render",
			benchmark.Millis(benchmark.Median(ours...)), fmt.Sprintf("%.2f of the script", ratio)})
}

// measureChartVersion locks another version of the chart that all applications use.
func (h *releases) measureChartVersion() error {
	var ours, together []time.Duration
	rounds := max(1, h.rounds/3)
	stop := watchMemory(h.d.PID)
	for range rounds {
		lock, err := h.nextVersion()
		if err != nil {
			return err
		}
		commit, err := h.r.Commit(h.ctx, "chart "+h.newestChartVersion(), lock)
		if err != nil {
			return err
		}
		time.Sleep(pause)
		begin := time.Now()
		if err := h.sendEvent(h.d, h.r, commit); err != nil {
			return err
		}
		if err := h.waitForTexts(h.r, h.apps, "nginx:"+h.newestChartVersion()); err != nil {
			return fmt.Errorf("%w\n%s", err, h.d.Problems())
		}
		ours = append(ours, time.Since(begin))
		if err := h.waitUntilQuiet(h.d, h.r, h.newestChartVersion()); err != nil {
			return err
		}
		args := []string{h.r.URL, byHand, h.url, h.newestChartVersion()}
		for i := range h.apps {
			args = append(args, appName(i))
		}
		hand, err := h.runScript(allHelmScript, args...)
		if err != nil {
			return err
		}
		together = append(together, hand)
	}
	all := stop()
	ratio := benchmark.Median(ours...).Seconds() / benchmark.Median(together...).Seconds()
	h.report.Require(ratio <= 0.25, "another version of a chart takes %.2f times as long as by the script, not at most 0.25", ratio)
	return h.report.Table(fmt.Sprintf("another version of the chart of %d releases; %d rounds", h.apps, rounds),
		[]string{"", "time", ""},
		[]string{"script: clone, helm pull, helm template for each, commit, push, once for all",
			benchmark.Seconds(benchmark.Median(together...)), ""},
		[]string{"prerig serve, from the event to the last pushed commit", benchmark.Seconds(benchmark.Median(ours...)),
			fmt.Sprintf("%.2f of the script", ratio)},
		[]string{"prerig serve, most memory, without and with its renderers", benchmark.Megabytes(peakMemory(h.d.PID)),
			benchmark.Megabytes(all)})
}

// chartFiles reads a chart's directory.
func chartFiles(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		at, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(at)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart %s: %w", dir, err)
	}
	return files, nil
}
