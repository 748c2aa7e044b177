// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/builtin"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/workload"
)

// config is what a comparison is made with: the built-in configuration or another one.
type config struct{ version, config, values, mesh string }

// builtIn is the configuration of the built-in policy for a version.
func builtIn(t *testing.T, v istio.Version) (config, v1alpha1.InjectionPolicySpec) {
	t.Helper()
	p, err := v1alpha1.Parse(builtin.Policy(v))
	if err != nil {
		t.Fatal(err)
	}
	i := p.Spec.Istio
	return config{i.Version, i.Injector.Config, i.Injector.Values, i.MeshConfig}, p.Spec
}

// newest is what the built-in policy follows by default.
var newest = istio.Version{Minor: builtin.DefaultMinor, Patch: -1}

// current is the default configuration of the newest version in the conformance corpus, which the built-in policy covers.
func current(t *testing.T) (c config, v istio.Version, dir string) {
	t.Helper()
	corpus := os.Getenv("PRERIG_CORPUS")
	if corpus == "" {
		corpus = filepath.Join("..", "..", "shared", "istio")
	}
	found, err := filepath.Glob(filepath.Join(corpus, "1.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range found {
		if of, ok := istio.ParseVersion(filepath.Base(at)); ok && of.Minor > v.Minor && builtin.Covers(of) {
			v, dir = istio.Version{Minor: of.Minor, Patch: -1}, at
		}
	}
	if dir == "" {
		t.Skipf("the conformance corpus at %s has no version that the built-in policy covers", corpus)
	}
	c.version = v.String()
	for _, object := range objects(t, filepath.Join(dir, "configmaps.yaml")) {
		data := object["data"].(map[string]any)
		if text, ok := data["mesh"].(string); ok {
			c.mesh = text
			continue
		}
		c.config, c.values = data["config"].(string), data["values"].(string)
	}
	return c, v, dir
}

// setting is a way to set up a mesh: the same for both configurations.
type setting struct {
	overrides   map[string]any
	options     istio.Options // what is not of the configuration
	annotations map[string]string
	mesh        string // appended to the mesh configs
	theirMesh   string // appended to the other mesh config only
	theirValues map[string]any
	ourValues   map[string]any
}

// options makes the injector's options.
func (s setting) injector(t *testing.T, c config, mesh string, values map[string]any) *istio.Injector {
	t.Helper()
	o := s.options
	o.Version, o.Config, o.Values, o.Mesh = c.version, c.config, c.values, c.mesh
	mc := map[string]any{}
	for _, text := range []string{c.mesh, s.mesh, mesh} {
		var more map[string]any
		if err := yaml.Unmarshal([]byte(text), &more); err != nil {
			t.Fatal(err)
		}
		mc = merge(mc, more)
	}
	text, err := yaml.Marshal(mc)
	if err != nil {
		t.Fatal(err)
	}
	o.Mesh = string(text)
	o.Overrides = merge(merge(dig("registry.example.com/istio", "global", "hub"), dig("1.31.0", "global", "tag")), merge(s.overrides, values))
	in, err := istio.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// dig makes a value at a path.
func dig(value any, path ...string) map[string]any {
	for i := len(path) - 1; i > 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return map[string]any{path[0]: value}
}

// merge merges maps, b over a.
func merge(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range b {
		below, ok := out[k].(map[string]any)
		if over, isMap := v.(map[string]any); ok && isMap {
			out[k] = merge(below, over)
		} else {
			out[k] = v
		}
	}
	return out
}

// settings are those that both configurations must make the same pods with.
var settings = map[string]setting{
	"as it comes":           {},
	"native":                {options: istio.Options{Native: istio.NativeEnabled}},
	"not native":            {options: istio.Options{Native: istio.NativeDisabled}},
	"hold":                  {options: istio.Options{Native: istio.NativeDisabled}, overrides: dig(true, "global", "proxy", "holdApplicationUntilProxyStarts")},
	"hold by mesh config":   {options: istio.Options{Native: istio.NativeDisabled}, mesh: "defaultConfig: {holdApplicationUntilProxyStarts: true}"},
	"CNI":                   {overrides: dig(true, "pilot", "cni", "enabled")},
	"CNI, native":           {options: istio.Options{Native: istio.NativeEnabled}, overrides: dig(true, "pilot", "cni", "enabled")},
	"CNI by multus":         {overrides: dig(map[string]any{"enabled": true, "provider": "multus"}, "pilot", "cni")},
	"revision":              {options: istio.Options{Revision: "canary"}, theirValues: dig("canary", "revision"), theirMesh: "defaultConfig: {discoveryAddress: istiod-canary.istio-system.svc:15012}"},
	"namespace of istiod":   {overrides: dig("mesh", "global", "istioNamespace"), theirMesh: "defaultConfig: {discoveryAddress: istiod.mesh.svc:15012}"},
	"drain":                 {ourValues: dig(map[string]any{"drainDuration": "60s", "terminationDrainDuration": "25s"}, "global", "proxy"), theirMesh: "defaultConfig: {drainDuration: 60s, terminationDrainDuration: 25s}"},
	"cluster and network":   {options: istio.Options{Cluster: "tokyo", Network: "east"}},
	"cluster by values":     {overrides: merge(dig("tokyo", "global", "multiCluster", "clusterName"), merge(dig("east", "global", "network"), dig("shop", "global", "meshID")))},
	"resources":             {overrides: dig(map[string]any{"requests": map[string]any{"cpu": "1", "memory": nil}, "limits": nil}, "global", "proxy", "resources")},
	"log":                   {overrides: merge(dig(true, "global", "logAsJson"), merge(dig("debug", "global", "proxy", "logLevel"), dig("ads:debug", "global", "logging", "level")))},
	"images":                {overrides: merge(dig("registry.example.com/proxy:1", "global", "proxy", "image"), merge(dig("proxyinit", "global", "proxy_init", "image"), dig("Always", "global", "imagePullPolicy")))},
	"image variant":         {overrides: dig("distroless", "global", "variant")},
	"pull secrets":          {overrides: dig([]any{"one", "two"}, "global", "imagePullSecrets")},
	"certificate authority": {overrides: dig("istio-csr.cert-manager.svc:443", "global", "caAddress")},
	"lifecycle":             {overrides: dig(map[string]any{"preStop": map[string]any{"sleep": map[string]any{"seconds": 5}}}, "global", "proxy", "lifecycle")},
	"no startup probe":      {overrides: dig(false, "global", "proxy", "startupProbe", "enabled")},
	"readiness":             {overrides: dig(map[string]any{"readinessInitialDelaySeconds": 3, "readinessPeriodSeconds": 5, "readinessFailureThreshold": 7}, "global", "proxy")},
	"privileged":            {overrides: dig(true, "global", "proxy", "privileged")},
	"seccomp":               {overrides: dig("RuntimeDefault", "global", "proxy", "seccompProfile", "type")},
	"traffic":               {overrides: dig(map[string]any{"includeIPRanges": "10.0.0.0/8", "excludeIPRanges": "10.1.0.0/16", "includeOutboundPorts": "80,443", "excludeOutboundPorts": "25", "includeInboundPorts": "8080", "excludeInboundPorts": "22"}, "global", "proxy")},
	"traffic, CNI":          {overrides: merge(dig(true, "pilot", "cni", "enabled"), dig(map[string]any{"includeIPRanges": "10.0.0.0/8", "excludeIPRanges": "10.1.0.0/16", "includeOutboundPorts": "80,443", "excludeOutboundPorts": "25", "includeInboundPorts": "8080", "excludeInboundPorts": "22"}, "global", "proxy"))},
	"nftables":              {overrides: merge(dig(true, "global", "nativeNftables"), dig(true, "global", "proxy_init", "forceApplyIptables"))},
	"status port":           {overrides: dig(15099, "global", "proxy", "statusPort"), mesh: "defaultConfig: {statusPort: 15099}"},
	"no probe rewrite":      {overrides: dig(false, "sidecarInjectorWebhook", "rewriteAppHTTPProbe")},
	"metadata":              {mesh: "defaultConfig: {proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\", B: x y}}"},
	"mesh config":           {mesh: "{trustDomain: shop.example.com, proxyListenPort: 15011, proxyInboundListenPort: 15016, inboundTrafficPolicy: {mode: LOCALHOST}, defaultConfig: {interceptionMode: TPROXY, concurrency: 4}}"},
	"compliance":            {options: istio.Options{IstiodEnv: map[string]string{"COMPLIANCE_POLICY": "fips-140-3"}}},

	"annotated resources":     {annotations: map[string]string{"sidecar.istio.io/proxyCPU": "200m", "sidecar.istio.io/proxyMemoryLimit": "2Gi"}},
	"annotated log":           {annotations: map[string]string{"sidecar.istio.io/logLevel": "trace", "sidecar.istio.io/componentLogLevel": "misc:info", "sidecar.istio.io/agentLogLevel": "all:debug"}},
	"annotated image":         {annotations: map[string]string{"sidecar.istio.io/proxyImage": "registry.example.com/proxy@sha256:1234"}},
	"annotated image type":    {annotations: map[string]string{"sidecar.istio.io/proxyImageType": "debug"}},
	"annotated NONE":          {annotations: map[string]string{"sidecar.istio.io/interceptionMode": "NONE"}},
	"annotated NONE, native":  {options: istio.Options{Native: istio.NativeEnabled}, annotations: map[string]string{"sidecar.istio.io/interceptionMode": "NONE"}},
	"annotated TPROXY":        {annotations: map[string]string{"sidecar.istio.io/interceptionMode": "TPROXY"}},
	"annotated TPROXY, CNI":   {overrides: dig(true, "pilot", "cni", "enabled"), annotations: map[string]string{"sidecar.istio.io/interceptionMode": "TPROXY"}},
	"annotated low ports":     {annotations: map[string]string{"sidecar.istio.io/capNetBindService": "true"}},
	"annotated native":        {options: istio.Options{Native: istio.NativeDisabled}, annotations: map[string]string{"sidecar.istio.io/nativeSidecar": "true"}},
	"annotated not native":    {options: istio.Options{Native: istio.NativeEnabled}, annotations: map[string]string{"sidecar.istio.io/nativeSidecar": "false"}},
	"annotated status port 0": {annotations: map[string]string{"status.sidecar.istio.io/port": "0"}},
	"annotated readiness":     {annotations: map[string]string{"status.sidecar.istio.io/port": "15098", "readiness.status.sidecar.istio.io/initialDelaySeconds": "1", "readiness.status.sidecar.istio.io/periodSeconds": "2", "readiness.status.sidecar.istio.io/failureThreshold": "3"}},
	"annotated proxy config":  {annotations: map[string]string{"proxy.istio.io/config": "{holdApplicationUntilProxyStarts: true, terminationDrainDuration: 30s, tracing: {sampling: 5}}"}},
	"annotated traffic":       {annotations: map[string]string{"traffic.sidecar.istio.io/includeOutboundIPRanges": "", "traffic.sidecar.istio.io/excludeOutboundIPRanges": "10.0.0.0/8", "traffic.sidecar.istio.io/includeInboundPorts": "", "traffic.sidecar.istio.io/excludeInboundPorts": "22,23", "traffic.sidecar.istio.io/includeOutboundPorts": "", "traffic.sidecar.istio.io/excludeOutboundPorts": "25", "traffic.sidecar.istio.io/excludeInterfaces": "eth1", "traffic.sidecar.istio.io/kubevirtInterfaces": "net0"}},
	"annotated traffic, CNI":  {overrides: dig(true, "pilot", "cni", "enabled"), annotations: map[string]string{"traffic.sidecar.istio.io/includeOutboundIPRanges": "", "traffic.sidecar.istio.io/includeInboundPorts": "", "traffic.sidecar.istio.io/excludeOutboundPorts": "25", "traffic.sidecar.istio.io/excludeInterfaces": "eth1", "istio.io/reroute-virtual-interfaces": "net0"}},
	"annotated volumes":       {annotations: map[string]string{"sidecar.istio.io/userVolume": `{"certs":{"secret":{"secretName":"certs"}}}`, "sidecar.istio.io/userVolumeMount": `{"certs":{"mountPath":"/etc/certs","readOnly":true}}`, "sidecar.istio.io/bootstrapOverride": "bootstrap"}},
	"annotated containers":    {annotations: map[string]string{"kubectl.kubernetes.io/default-container": "cache"}},
}

// TestSamePodsAsIstioOfTheCorpus compares the pods of the built-in policy with those of Istio's default configuration, for our own
// workloads in every setting.
func TestSamePodsAsIstioOfTheCorpus(t *testing.T) {
	theirs, v, _ := current(t)
	ours, _ := builtIn(t, v)
	for name, s := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := s.injector(t, ours, "", s.ourValues), s.injector(t, theirs, s.theirMesh, s.theirValues)
			for _, path := range inputs(t) {
				for _, object := range objects(t, path) {
					s.compare(t, filepath.Base(path), object, a, b)
				}
			}
		})
	}
}

// TestSamePodsAsIstioOverTheCorpus does so for every workload of the corpus, whatever it is annotated with.
func TestSamePodsAsIstioOverTheCorpus(t *testing.T) {
	theirs, v, dir := current(t)
	ours, _ := builtIn(t, v)
	found, err := filepath.Glob(filepath.Join(dir, "inputs", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, name := range []string{"native", "not native", "CNI", "hold"} {
		s := settings[name]
		a, b := s.injector(t, ours, "", nil), s.injector(t, theirs, "", nil)
		for _, path := range found {
			if strings.HasSuffix(path, ".iop.yaml") {
				continue
			}
			for _, object := range objects(t, path) {
				pods += s.compare(t, name+", "+filepath.Base(path), object, a, b)
			}
		}
	}
	t.Logf("%d pods are the same", pods)
	if pods < 300 {
		t.Errorf("only %d pods were compared", pods)
	}
}

// compare compares the pods that two injectors make of an object, and counts those that both made.
func (s setting) compare(t *testing.T, name string, object map[string]any, a, b *istio.Injector) int {
	t.Helper()
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	templates, err := registry.Templates(object)
	if err != nil {
		return 0 // Not every input of the corpus is an object.
	}
	same := 0
	for _, tmpl := range templates {
		pod := tmpl.Pod
		if len(s.annotations) > 0 {
			set := map[string]any{}
			for k, v := range s.annotations {
				set[k] = v
			}
			pod = merge(pod, dig(set, "metadata", "annotations"))
		}
		if wantsOther(pod) {
			continue
		}
		req := inject.Request{Pod: pod, Owner: tmpl.Owner, Namespace: inject.Namespace{Name: "shop"}}
		ours, errA := inject.Istio(a, req)
		theirs, errB := inject.Istio(b, req)
		if (errA == nil) != (errB == nil) {
			t.Errorf("%s: error %v, Istio's configuration %v", name, errA, errB)
			continue
		}
		if errA != nil {
			continue
		}
		same++
		want, got := typed(t, theirs.Pod), typed(t, ours.Pod)
		if diff := cmp.Diff(takeBootstrap(t, want), takeBootstrap(t, got)); diff != "" {
			t.Errorf("%s: the configuration of gRPC (-Istio's +ours):\n%s", name, diff)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-Istio's +ours):\n%s", name, diff)
		}
		if diff := cmp.Diff(theirs.Warnings, ours.Warnings); diff != "" {
			t.Errorf("%s: warnings:\n%s", name, diff)
		}
	}
	return same
}

// takeBootstrap takes the script out of a pod that writes the configuration of gRPC's own client, and gives what it writes:
// two scripts may write the same in different ways.
func takeBootstrap(t *testing.T, pod *corev1.PodTemplateSpec) (written map[string]any) {
	t.Helper()
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name != "grpc-bootstrap-init" {
			continue
		}
		const path = "/var/lib/grpc/data/bootstrap.json"
		file := filepath.Join(t.TempDir(), "bootstrap.json")
		cmd := exec.Command(c.Command[0], c.Command[1], strings.ReplaceAll(c.Command[2], path, file))
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "INSTANCE_IP=10.0.0.1", "POD_NAME=web-1", "POD_NAMESPACE=shop"}
		for _, e := range c.Env {
			if e.ValueFrom == nil {
				cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
			}
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("running the script: %v\n%s", err, out)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// The namespace has a line end in it, which Istio's script makes a blank within the address.
		data = bytes.ReplaceAll(data, []byte(" .svc:15010"), []byte(".svc:15010"))
		if err := json.Unmarshal(data, &written); err != nil {
			t.Fatalf("reading what the script has written: %v\n%s", err, data)
		}
		c.Command = nil
	}
	return written
}

// wantsOther says whether a pod asks for a template that is not among the built-in policy's.
func wantsOther(pod map[string]any) bool {
	meta, _ := pod["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	names, ok := annotations[istio.TemplatesAnnotationName].(string)
	for name := range strings.SplitSeq(names, ",") {
		if ok && !slices.Contains([]string{"sidecar", "gateway", "grpc-agent", "grpc-simple"}, strings.TrimSpace(name)) {
			return true
		}
	}
	return false
}

// typed reads a pod as Kubernetes does.
func typed(t *testing.T, pod map[string]any) *corev1.PodTemplateSpec {
	t.Helper()
	out := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(pod, out, false); err != nil {
		t.Fatal(err)
	}
	return out
}

// objects reads the objects of a file.
func objects(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for doc := range bytes.SplitSeq(data, []byte("\n---")) {
		value, err := manifest.Decode(doc)
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", path, err))
		}
		object, ok := value.(map[string]any)
		if !ok {
			continue
		}
		if items, ok := object["items"].([]any); ok {
			for _, item := range items {
				out = append(out, item.(map[string]any))
			}
			continue
		}
		out = append(out, object)
	}
	return out
}
