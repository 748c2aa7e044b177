// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/internal/oracle"
	"github.com/prerig/prerig/internal/testprograms"
)

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return n
}

// chosenKubernetes names the variable with the minor of an older control plane.
const chosenKubernetes = "PRERIG_CLUSTER_KUBERNETES"

// kubernetesVersion is that of the clusters.
func kubernetesVersion() string {
	if minor := os.Getenv(chosenKubernetes); minor != "" {
		return otherKubernetes[minor]
	}
	return KubernetesVersion
}

// programs builds what a cluster is made of, or those of it that are named, or skips the test where no cluster is asked for.
func programs(t *testing.T, names ...string) *Programs {
	t.Helper()
	if os.Getenv("PRERIG_CLUSTER") == "" {
		t.Skip("PRERIG_CLUSTER is not set; make e2e-cluster runs this")
	}
	dir := os.Getenv("PRERIG_CLUSTER_CACHE")
	if dir == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(caches, "prerig-cluster")
	}
	builder := Builder{Upstream: filepath.Join("..", "upstream"), Cache: dir, Kubernetes: os.Getenv(chosenKubernetes), Say: t.Logf}
	p, err := builder.Build(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// builtPrerig builds prerig and returns its path.
func builtPrerig(t *testing.T) string {
	t.Helper()
	path, err := testprograms.Prerig.Path()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// started starts a cluster that ends with the test.
func started(t *testing.T, p *Programs, options Options) *Cluster {
	t.Helper()
	options.Say = t.Logf
	c, err := Start(t.Context(), p, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// installations are those of the oracle's that run on a cluster too, with which part of the workloads that are asked for.
var installations = map[string]float64{"default": 1, "cni": 0.1, "native-off": 0.1, "revision": 0.1}

// left are those in which Prerig's output is also applied with the webhook left on: with and without CNI other marks keep it away.
var left = []string{"default", "cni", "native-off", "revision"}

// leftOnAtMost is how many workloads are enough for that.
const leftOnAtMost = 200

func TestWorkloads(t *testing.T) {
	p := programs(t)
	program := builtPrerig(t)
	chosen := map[string]float64{}
	for _, name := range strings.Fields(os.Getenv("PRERIG_CLUSTER_INSTALLATIONS")) {
		chosen[name] = 1
	}
	if len(chosen) == 0 {
		chosen = installations
	}
	for _, i := range oracle.Installations() {
		if part := chosen[i.Name]; part > 0 {
			t.Run(i.Name, func(t *testing.T) { testInstallation(t, p, program, i, part, nil) })
		}
	}
}

// TestAdmission has the API server fill in more than defaults before it calls the webhook, and templates print what they see.
func TestAdmission(t *testing.T) {
	p := programs(t)
	i := oracle.Installation{Name: "admission", Kubelet: p.Kubernetes, Values: map[string]any{
		"global": map[string]any{"imagePullSecrets": []any{"of-istio"}},
		"sidecarInjectorWebhook": map[string]any{"defaultTemplates": []any{"sidecar", "seen"}, "templates": map[string]any{"seen": `
metadata:
  annotations:
    seen: '{{ .Spec.ServiceAccountName }}{{ range .Spec.ImagePullSecrets }},{{ .Name }}{{ end }}'
    resources: '{{ range .Spec.Containers }}{{ .Name }}{{ toYaml .Resources | quote }}{{ end }}'
`}},
	}}
	testInstallation(t, p, builtPrerig(t), i, 0.3, func(c *Cluster) error { return c.AddLimits(t.Context(), "shop", "default", "web") })
}

// testInstallation compares over an installation. add, if there is one, adds more to both clusters. Prerig knows of it what it imports.
func testInstallation(t *testing.T, p *Programs, program string, i oracle.Installation, part float64, add func(*Cluster) error) {
	options := Options{Kubelet: i.Kubelet}
	webhook, plain := started(t, p, options), started(t, p, options)
	for _, c := range []*Cluster{webhook, plain} {
		var names []string
		for _, n := range i.Namespaces() {
			if err := c.AddNamespace(t.Context(), n.Name, n.Labels, n.Annotations); err != nil {
				t.Fatal(err)
			}
			names = append(names, n.Name)
		}
		// Those that the generator's pods refer to.
		if err := c.Furnish(t.Context(), names, []string{"web", "old-name"}, "own"); err != nil {
			t.Fatal(err)
		}
		if add != nil {
			if err := add(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	var configs []*unstructured.Unstructured
	for _, p := range i.ProxyConfigs {
		configs = append(configs, newUnstructuredObject(p.Object()))
	}
	if err := webhook.InstallIstio(t.Context(), i.Values, configs...); err != nil {
		t.Fatal(err)
	}
	prerig, err := Import(t.Context(), webhook, program, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	imported(t, webhook, prerig)
	// The webhook injects each pod, also one that was injected before.
	prerig.Policy = withField(t, prerig.Policy, "Follow", "spec", "jobs")
	workloads := generated(t, plain, i.Name, part)
	began := time.Now()
	parity, err := CompareClusters(t.Context(), webhook, plain, prerig, workloads)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, after %s\n%s", i.Name, time.Since(began).Round(time.Second), parity)
	report(t, i.Name, parity)
	if slices.Contains(left, i.Name) {
		testWebhookLeftOn(t, webhook, plain, prerig, i, workloads[:min(len(workloads), leftOnAtMost, max(30, len(workloads)/5))])
	}
}

// imported compares what prerig import reads of a cluster by itself with what it makes of the objects that are piped into it, and
// has it notice when the committed policy is another.
func imported(t *testing.T, c *Cluster, prerig *Prerig) {
	t.Helper()
	piped, err := os.ReadFile(prerig.Policy)
	if err != nil {
		t.Fatal(err)
	}
	read, said, err := prerig.run(t.Context(), nil, "import", "--kubeconfig", c.Kubeconfig)
	if err != nil || string(read) != string(piped) {
		t.Errorf("prerig import --kubeconfig makes another policy than the pipe: %v\n%s\n%s", err, said, oracle.Differences(string(piped), string(read)))
	}
	watch := func(policy string) (string, int) {
		out, said, err := prerig.run(t.Context(), nil, "import", "-q", "--kubeconfig", c.Kubeconfig, "--watch-diff", policy)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if exit == nil {
			return string(out), 0
		}
		return string(out) + string(said), exit.ExitCode()
	}
	if out, exit := watch(prerig.Policy); exit != 0 || out != "" {
		t.Errorf("the policy that was just imported differs, exit code %d:\n%s", exit, out)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	changed := strings.Replace(string(piped), "name: shop", "name: shop-of-before", 1) + "\n"
	if changed == string(piped)+"\n" {
		t.Fatal("the policy has no namespace shop to rename")
	}
	if err := os.WriteFile(other, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, exit := watch(other); exit != 1 || !strings.Contains(out, "shop-of-before") {
		t.Errorf("another policy gives exit code %d and\n%s", exit, out)
	}
}

// generated draws workloads until there are as many as are asked for that the API server takes.
func generated(t *testing.T, c *Cluster, installation string, part float64) []*unstructured.Unstructured {
	t.Helper()
	n := setting(t, "PRERIG_CLUSTER_N", 300)
	return generatedN(t, c, installation, int(math.Ceil(float64(n)*part)))
}

// generatedN draws so many.
func generatedN(t *testing.T, c *Cluster, installation string, n int) []*unstructured.Unstructured {
	t.Helper()
	seed := setting(t, "PRERIG_CLUSTER_SEED", 1)
	var out []*unstructured.Unstructured
	drawn, names := 0, map[string]bool{}
	for ; len(out) < n; drawn++ {
		text, err := json.Marshal(oracle.Generate(uint64(seed), installation, drawn))
		if err != nil {
			t.Fatal(err)
		}
		w := newUnstructuredObject(nil)
		if err := w.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		if err := Prompt(w); err != nil {
			t.Fatal(err)
		}
		// Jobs have a name out of few, as their digits matter: the second one of a name would be refused for that alone.
		name := w.GetKind() + "/" + w.GetNamespace() + "/" + w.GetName()
		if w.GetName() != "" {
			if names[name] {
				continue
			}
			names[name] = true
		}
		if c.Takes(t.Context(), w) {
			out = append(out, w)
		}
	}
	t.Logf("seed %d: %d workloads were drawn, of which the API server takes these %d", seed, drawn, n)
	return out
}

// report fails the test for each case that is not as it should be, and writes those, and what both refuse, to the directory
// that PRERIG_CLUSTER_REPORT names.
func report(t *testing.T, installation string, parity *Parity) {
	t.Helper()
	dir := os.Getenv("PRERIG_CLUSTER_REPORT")
	shown := 0
	for i, c := range parity.Cases {
		if dir != "" && (!c.Good() || c.Verdict == BothRefuse) {
			if err := write(filepath.Join(dir, installation, string(c.Verdict), fmt.Sprint(i)), c); err != nil {
				t.Fatal(err)
			}
		}
		if c.Good() {
			continue
		}
		if shown++; shown <= 20 {
			t.Errorf("%s %s/%s: %s\nwebhook: %s\nprerig: %s%s", c.Workload.GetKind(), c.Workload.GetNamespace(), c.Workload.GetName(), c.Verdict,
				c.Webhook, c.Prerig, c.Refused)
			for _, d := range c.Differences {
				t.Log(d)
			}
		}
	}
	if shown > 20 {
		t.Errorf("and %d more", shown-20)
	}
}

func write(dir string, c Case) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	said := fmt.Sprintf("%s\nwebhook: %s\nprerig: %s %s\n", c.Verdict, c.Webhook, c.Prerig, c.Refused)
	for _, d := range c.Differences {
		said += d.String() + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "differences"), []byte(said), 0o644); err != nil {
		return err
	}
	for name, obj := range map[string]*unstructured.Unstructured{"workload": c.Workload, "webhook": c.Webhook.Pod, "prerig": c.Prerig.Pod} {
		if obj == nil {
			continue
		}
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
