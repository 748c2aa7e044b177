// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/charttest"
)

// chartPipeline is a pipeline beside its source, with the build that is given.
func chartPipeline(build string) string {
	return "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web}\nspec:\n  source: {dir: {path: ../source}}\n  build:\n" + build +
		"\n  policies: [{builtIn: istio}]\n  publish: [{git: {url: \"https://git.example.com/a/b.git\", branch: rendered}}]\n"
}

const webTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-{{ .Chart.Name }}, namespace: {{ .Release.Namespace }}}\ndata: {version: {{ .Chart.Version | quote }}}\n"

func webChart(t *testing.T, version string) []byte {
	return charttest.Package(t, "web", version, map[string]string{"templates/web.yaml": webTemplate})
}

// chartCommands runs commands over one pipeline and its source.
type chartCommands struct {
	t              *testing.T
	dir, cache     string
	lockFile, file string
}

func newChartCommands(t *testing.T, build string) *chartCommands {
	c := &chartCommands{t: t, dir: t.TempDir(), cache: t.TempDir()}
	c.lockFile, c.file = filepath.Join(c.dir, "source/charts.lock.yaml"), filepath.Join(c.dir, "pipelines/web.yaml")
	c.write("source/README.md", "charts\n")
	c.write("pipelines/web.yaml", chartPipeline(build))
	return c
}

func (c *chartCommands) write(name, text string) {
	c.t.Helper()
	at := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chartCommands) run(want int, args ...string) string {
	c.t.Helper()
	code, out, err := prerig(c.t, append(args, "--pipelines", filepath.Join(c.dir, "pipelines"), "--cache", c.cache)...)
	if code != want {
		c.t.Fatalf("prerig %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, err)
	}
	return out + err
}

func (c *chartCommands) lock() string {
	c.t.Helper()
	text, err := os.ReadFile(c.lockFile)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
}

// A chart of a repository over HTTP, from the lock to the render and to a newer version.
func TestChartsOfRepository(t *testing.T) {
	repository := charttest.New(t)
	repository.Add("web", "1.0.0", webChart(t, "1.0.0"))
	repository.Add("web", "1.1.0", webChart(t, "1.1.0"))
	c := newChartCommands(t, "    helm: {repository: \""+repository.URL+"\", chart: web, version: ^1.0.0, namespace: shop, kubeVersion: 1.33.4}")
	contains(t, c.run(2, "render"), "the chart web of "+repository.URL+" is not locked, as there is no charts.lock.yaml in the source; run prerig lock")
	contains(t, c.run(1, "charts", "verify"), "missing  web of "+repository.URL+"  ^1.0.0")
	contains(t, c.run(0, "charts", "lock"), "1 chart locked", "added    web 1.1.0 of "+repository.URL)
	contains(t, c.lock(), "kind: ChartLock", "  - name: web\n    repository: "+repository.URL+"\n    range: ^1.0.0\n    version: 1.1.0\n    digest: "+charttest.Digest(webChart(t, "1.1.0"))+"\n    url: "+repository.URL+"/charts/web-1.1.0.tgz\n")
	contains(t, c.run(0, "render"), "name: web-web", "version: 1.1.0")
	contains(t, c.run(0, "charts", "verify"), "current  web 1.1.0 of ")

	// What is locked stays, although there is something newer.
	repository.Add("web", "1.2.0", webChart(t, "1.2.0"))
	repository.Add("web", "2.0.0", webChart(t, "2.0.0"))
	before := c.lock()
	c.run(0, "charts", "lock")
	if c.lock() != before {
		t.Errorf("the lock has moved:\n%s", c.lock())
	}
	contains(t, c.run(0, "charts", "verify"), "newer    web 1.1.0 of "+repository.URL+"  -> 1.2.0")
	contains(t, c.run(0, "render"), "version: 1.1.0")
	c.run(0, "charts", "update", "--chart", "other")
	if c.lock() != before {
		t.Errorf("the update of another chart has moved it:\n%s", c.lock())
	}
	contains(t, c.run(0, "charts", "update"), "moved    web 1.2.0 of ")
	contains(t, c.run(0, "render"), "version: 1.2.0")

	// Another range is another entry, and the old one goes.
	c.write("pipelines/web.yaml", chartPipeline("    helm: {repository: \""+repository.URL+"\", chart: web, version: ^2, namespace: shop, kubeVersion: 1.33.4}"))
	contains(t, c.run(2, "render"), "charts.lock.yaml has no chart web ^2 of "+repository.URL+"; run prerig lock")
	contains(t, c.run(0, "charts", "lock"), "added    web 2.0.0 of", "dropped  web 1.2.0 of")
}

// A replaced and a removed version are told from each other.
func TestChartsVerify(t *testing.T) {
	repository := charttest.New(t)
	repository.Add("web", "1.0.0", webChart(t, "1.0.0"))
	c := newChartCommands(t, "    helm: {repository: \""+repository.URL+"\", chart: web, namespace: shop, kubeVersion: 1.33.4}")
	c.run(0, "charts", "lock")
	other := charttest.Package(t, "web", "1.0.0", map[string]string{"templates/web.yaml": "# another\n" + webTemplate})
	repository.Add("web", "1.0.0", other)
	out := c.run(1, "charts", "verify", "-o", "json")
	var report struct {
		Charts []struct{ Name, Version, State, Now, Lock string }
	}
	if err := json.Unmarshal([]byte(out[:strings.LastIndex(out, "}")+1]), &report); err != nil || len(report.Charts) != 1 {
		t.Fatal(err, out)
	}
	if one := report.Charts[0]; one.State != "changed" || one.Now != charttest.Digest(other) || one.Version != "1.0.0" || one.Lock == "" {
		t.Errorf("got %+v", one)
	}
	// The archive of the render is refused, once it has to be fetched.
	refused := c.run(2, "render")
	contains(t, refused, "its archive does not have the digest "+charttest.Digest(webChart(t, "1.0.0"))+" that is locked")
	if strings.Contains(refused, charttest.Digest(other)) {
		t.Errorf("the digest of what a repository answers is shown: %s", refused)
	}
	repository.Remove("web", "1.0.0")
	contains(t, c.run(1, "charts", "verify"), "lost     web 1.0.0")
	repository.Intercept = func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "not now", http.StatusBadGateway)
		return true
	}
	contains(t, c.run(2, "charts", "verify"), "unknown  web 1.0.0", "answers 502 (Bad Gateway)", "1 chart could not be checked")
}

// A registry, and dependencies of a chart in the source: locked ones, one of the source, and a packed one.
func TestChartsOfRegistryAndDependencies(t *testing.T) {
	host := charttest.Registry(t, nil)
	for _, version := range []string{"1.0.0", "1.3.0+a.b"} {
		charttest.Push(t, host, "team/charts", "web", version, webChart(t, version))
	}
	c := newChartCommands(t, "    chartRepositories: [{url: \"oci://"+host+"/team/*\", insecure: true}]\n    helm: {chart: apps/shop, namespace: shop, kubeVersion: 1.33.4}")
	c.write("source/apps/shop/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies:\n- {name: web, version: 1.x, repository: \"oci://"+host+"/team/charts\"}\n"+
		"- {name: web, version: 1.x, repository: \"oci://"+host+"/team/charts\", alias: api}\n- {name: near, version: '*', repository: \"file://../near\"}\n- {name: packed, version: '*', repository: \"https://charts.example.com\"}\n")
	c.write("source/apps/shop/charts/packed/Chart.yaml", "apiVersion: v2\nname: packed\nversion: 1.0.0\n")
	c.write("source/apps/shop/charts/packed/templates/a.yaml", webTemplate)
	c.write("source/apps/near/Chart.yaml", "apiVersion: v2\nname: near\nversion: 1.0.0\ndependencies:\n- {name: web, version: ^1.3.0-0, repository: \"oci://"+host+"/team/charts\", alias: deep}\n")
	c.write("source/apps/near/templates/a.yaml", webTemplate)
	contains(t, c.run(2, "render"), "rendering the chart apps/shop: its dependency web 1.x (oci://"+host+"/team/charts) is neither in its charts directory nor locked; run prerig lock")
	contains(t, c.run(0, "charts", "lock"), "2 charts locked")
	contains(t, c.lock(), "version: 1.3.0+a.b")
	out := c.run(0, "render")
	contains(t, out, "name: web-web", "name: web-api", "name: web-near", "name: web-packed", "name: web-deep", "version: 1.3.0+a.b")
	contains(t, c.run(0, "charts", "verify"), "current  web 1.3.0+a.b of oci://"+host+"/team/charts")

	// The source alone cannot name a repository.
	c.write("pipelines/web.yaml", chartPipeline("    helm: {chart: apps/shop, namespace: shop, kubeVersion: 1.33.4}"))
	for _, command := range [][]string{{"render"}, {"charts", "lock"}} {
		contains(t, c.run(2, command...), "apps/shop/Chart.yaml:5: the pipeline does not allow the chart repository oci://"+host+"/team/charts (spec.build.chartRepositories)")
	}
}

// What a repository calls a chart must be in the archive, when it is locked and when it is rendered.
func TestChartOfAnotherName(t *testing.T) {
	repository := charttest.New(t)
	repository.Add("web", "1.0.0", charttest.Package(t, "other", "1.0.0", nil))
	c := newChartCommands(t, "    helm: {repository: \""+repository.URL+"\", chart: web, namespace: shop, kubeVersion: 1.33.4}")
	contains(t, c.run(2, "charts", "lock"), "holds another chart than web 1.0.0, which is locked")
	entry := func(version string, archive []byte) {
		repository.Add("web", version, archive)
		c.write("source/charts.lock.yaml", "apiVersion: prerig.dev/v1alpha1\nkind: ChartLock\nmetadata: {name: charts}\nspec:\n  charts:\n  - {name: web, repository: \""+repository.URL+
			"\", version: "+version+", digest: \""+charttest.Digest(archive)+"\", url: \""+repository.URL+"/charts/web-"+version+".tgz\"}\n")
	}
	entry("1.0.0", charttest.Package(t, "other", "1.0.0", nil))
	contains(t, c.run(2, "render"), "holds another chart than web 1.0.0, which is locked")
	entry("1.0.1", webChart(t, "1.0.0"))
	contains(t, c.run(2, "render"), "holds another chart than web 1.0.1, which is locked")
	entry("1.0.2", []byte("no archive"))
	contains(t, c.run(2, "render"), "is not an archive that helm package made")
	bomb := charttest.Package(t, "web", "1.0.3", map[string]string{"zeros": strings.Repeat("\x00", 65<<20)})
	entry("1.0.3", bomb)
	contains(t, c.run(2, "render"), "web-1.0.3.tgz: it holds more than 67108864 bytes when it is unpacked")
	entry("1.0.4", charttest.Package(t, "/etc/web", "1.0.4", nil))
	contains(t, c.run(2, "render"), "leads out of the archive")
	c.write("source/charts.lock.yaml", "apiVersion: prerig.dev/v1alpha1\nkind: ChartLock\nmetadata: {name: charts}\nspec:\n  charts:\n  - {name: ../web, repository: \"file:///etc\", version: x, digest: y, uri: z}\n")
	contains(t, c.run(2, "render"), "charts.lock.yaml: ", "line 6", "uri")
}

// helmCharts of kustomizations are locked and rendered as other charts are, in bases too.
func TestChartsOfKustomizations(t *testing.T) {
	repository := charttest.New(t)
	repository.Add("web", "1.0.0", webChart(t, "1.0.0"))
	c := newChartCommands(t, "    path: app\n    helmCharts: {kubeVersion: 1.33.4}")
	c.write("source/app/kustomization.yaml", "namePrefix: my-\nresources: [../base]\n")
	c.write("source/base/kustomization.yaml", "helmCharts:\n- {name: web, repo: \""+repository.URL+"\", version: 1.x, releaseName: shop, namespace: team}\n")
	contains(t, c.run(2, "render"), "base/kustomization.yaml:2: helmCharts: web: ", "the chart web 1.x of "+repository.URL+" is not locked; run prerig lock")
	contains(t, c.run(2, "charts", "lock"), "base/kustomization.yaml:2: the pipeline does not allow the chart repository "+repository.URL)
	c.write("pipelines/web.yaml", chartPipeline("    path: app\n    helmCharts: {kubeVersion: 1.33.4}\n    chartRepositories: [{url: \""+repository.URL+"\"}]"))
	contains(t, c.run(0, "charts", "lock"), "added    web 1.0.0 of")
	contains(t, c.run(0, "render"), "name: my-shop-web", "version: 1.0.0", "namespace: team")
}
