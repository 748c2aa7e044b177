// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/policies"
)

var webhookGVR = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}

// injector is a webhook that istiod's chart installs, without a server.
const injector = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector, labels: {istio.io/rev: default, app: sidecar-injector}}
webhooks:
- name: namespace.sidecar-injector.istio.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {name: istiod, namespace: istio-system, path: /inject}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  namespaceSelector: {matchExpressions: [{key: istio-injection, operator: In, values: [enabled]}]}
`

// installMesh puts into the cluster what a control plane leaves there, and lets the daemon read it as the component does.
func (c *inCluster) installMesh(meshConfig string) {
	c.t.Helper()
	c.grant("mesh")
	text, _ := policies.Get("istio")
	p, err := policyv1alpha1.Parse(text)
	if err != nil {
		c.t.Fatal(err)
	}
	c.apply(mapGVR, object("v1", "ConfigMap", "istio-system", "istio-sidecar-injector", map[string]any{"data": map[string]any{
		"config": p.Spec.Istio.Injector.Config, "values": p.Spec.Istio.Injector.Values,
	}}))
	c.setMeshConfig(meshConfig)
	c.apply(webhookGVR, c.parse(injector))
	c.t.Cleanup(func() {
		if err := c.dynamic.Resource(webhookGVR).Delete(context.Background(), "istio-sidecar-injector", deleteNow); err != nil {
			c.t.Error(err)
		}
	})
}

func (c *inCluster) setMeshConfig(text string) {
	c.t.Helper()
	c.apply(mapGVR, object("v1", "ConfigMap", "istio-system", "istio", map[string]any{"data": map[string]any{"mesh": text}}))
}

func (c *inCluster) labelNamespace(name string, labels map[string]any) {
	c.t.Helper()
	c.apply(namespaceGVR, object("v1", "Namespace", "", name, map[string]any{"metadata": map[string]any{"labels": labels}}))
}

// lastRun is the id of a pipeline's last run.
func (c *inCluster) lastRun(namespace, name string) string {
	if run := statusOf(c.t, c.pipeline(namespace, name)).LastRun; run != nil {
		return run.ID
	}
	return ""
}

const fromCluster = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: mesh, namespace: meshed}
spec:
  from: Cluster
  istio: {}
`

// TestInClusterMesh renders with policies that are completed from the cluster: a label of a namespace and the mesh config make the pipelines
// run that they touch, and no other; an API server that lists nothing, or is away, changes nothing and is told; and what was published is made
// again from its snapshot, to the byte, when the cluster has something else.
func TestInClusterMesh(t *testing.T) {
	c := newInCluster(t, "meshed", "istio-system", "mesh-a", "mesh-b")
	c.installMesh("defaultConfig: {concurrency: 3}\n")
	c.labelNamespace("mesh-a", map[string]any{"istio-injection": "enabled"})
	f := prepareAlone(t, nil)
	in := func(namespace, name string) string {
		return strings.Replace(deployment(name, name+":1"), "namespace: shop", "namespace: "+namespace, 1)
	}
	f.repository.Commit("first", map[string]string{"apps/a/a.yaml": in("mesh-a", "a"), "apps/b/b.yaml": in("mesh-b", "b")})
	c.use(f, "meshed")
	f.c.Kubernetes.Mesh, f.c.Kubernetes.MeshNamespaces = true, []string{"istio-system"}
	between := newBetween(t, c, f)
	f.start()
	c.apply(policyObjects, c.parse(fromCluster))
	pipelineOf := func(name string) string {
		text := strings.Replace(pipelineYAML(name, f.repository.URL), "namespace: team", "namespace: meshed", 1)
		return strings.Replace(text, "[{builtIn: istio}]", "[{name: mesh}]", 1)
	}
	for _, name := range []string{"a", "b"} {
		c.apply(renderPipelines, c.parse(pipelineOf(name)))
		c.reads(renderPipelines, "meshed", name, kstatus.CurrentStatus, "1 object")
	}
	const a, b = "a/mesh-a/deployment-a.yaml", "b/mesh-b/deployment-b.yaml"
	if first := f.rendered(a); !strings.Contains(first, "istio-proxy") || strings.Contains(f.rendered(b), "istio-proxy") {
		t.Fatalf("a is\n%s\nb is\n%s", first, f.rendered(b))
	}
	published := statusOf(t, c.pipeline("meshed", "a")).Published[0]
	firstText, firstRun := f.rendered(a), c.lastRun("meshed", "a")

	t.Run("a label of a namespace", func(t *testing.T) {
		c.labelNamespace("mesh-b", map[string]any{"istio-injection": "enabled"})
		f.shows(b, "istio-proxy")
		if got := c.lastRun("meshed", "a"); got != firstRun {
			t.Errorf("a has run again: %s, before %s", got, firstRun)
		}
	})
	t.Run("the mesh config", func(t *testing.T) {
		c.setMeshConfig("defaultConfig: {concurrency: 5}\n")
		c.await("a to run again", func(context.Context) error {
			if f.rendered(a) == firstText {
				return errors.New("it is what it was")
			}
			return nil
		})
		f.shows(b, `"concurrency":5`)
	})
	t.Run("a ProxyConfig", func(t *testing.T) { c.readsProxyConfigs(f, between, a, b) })
	t.Run("made again", func(t *testing.T) { c.makesAgain(t, f, pipelineOf("a"), published, firstText) })
	now := f.rendered(a)
	for _, tc := range []struct {
		name, says string
		answer     int32
	}{{"an API server that lists nothing", "lists no", answersNothing}, {"an API server that is away", "cannot be read now", answersError}} {
		t.Run(tc.name, func(t *testing.T) {
			between.answers(tc.answer)
			c.reads(policyObjects, "meshed", "mesh", kstatus.CurrentStatus, tc.says)
			f.repository.Commit(tc.name, map[string]string{"apps/b/b.yaml": strings.Replace(in("mesh-b", "b"), "b:1", fmt.Sprintf("b:%d", 2+tc.answer), 1)})
			c.annotate("meshed", "b", v1alpha1.RequestAnnotation, tc.name)
			f.shows(b, fmt.Sprintf("image: b:%d", 2+tc.answer))
			if got := f.rendered(b); !strings.Contains(got, "istio-proxy") || f.rendered(a) != now {
				t.Errorf("it was taken for a cluster without a mesh:\n%s", got)
			}
			between.answers(answersTruth)
			c.reads(policyObjects, "meshed", "mesh", kstatus.CurrentStatus, "it can be used")
		})
	}
}

var (
	definitionGVR  = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	proxyConfigGVR = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1beta1", Resource: "proxyconfigs"}
)

// readsProxyConfigs installs the definition of ProxyConfigs, which the cluster did not have when the daemon began to follow it. One in a
// namespace is for the pipelines with workloads there, one in the root namespace for all. An API server that does not know the resource any
// more is not believed; one that lists none is.
func (c *inCluster) readsProxyConfigs(f *fixture, between *betweenServer, a, b string) {
	c.t.Helper()
	definition := c.parse(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: proxyconfigs.networking.istio.io}
spec:
  group: networking.istio.io
  names: {kind: ProxyConfig, listKind: ProxyConfigList, plural: proxyconfigs, singular: proxyconfig}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`)
	c.apply(definitionGVR, definition)
	c.t.Cleanup(func() {
		if err := c.dynamic.Resource(definitionGVR).Delete(context.Background(), definition.GetName(), deleteNow); err != nil {
			c.t.Error(err)
		}
	})
	config := func(namespace, name, variable string) {
		one := c.parse(fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1beta1","kind":"ProxyConfig","metadata":{"name":%q,"namespace":%q},
			"spec":{"environmentVariables":{%q:"told"}}}`, name, namespace, variable))
		c.await("a ProxyConfig to be taken", func(context.Context) error {
			_, err := c.tryApply(proxyConfigGVR, one)
			return err
		})
	}
	before := f.rendered(a)
	config("mesh-b", "own", "OF_THE_NAMESPACE")
	f.shows(b, "OF_THE_NAMESPACE")
	if got := f.rendered(a); got != before {
		c.t.Errorf("a is another one:\n%s", got)
	}
	config("istio-system", "all", "OF_THE_MESH")
	f.shows(a, "OF_THE_MESH")
	f.shows(b, "OF_THE_MESH")
	between.answers(answersAbsent)
	c.reads(policyObjects, "meshed", "mesh", kstatus.CurrentStatus, "reading proxyconfigs")
	if !strings.Contains(f.rendered(a), "OF_THE_MESH") {
		c.t.Errorf("a is\n%s", f.rendered(a))
	}
	between.answers(answersTruth)
	c.reads(policyObjects, "meshed", "mesh", kstatus.CurrentStatus, "it can be used")
	for namespace, name := range map[string]string{"istio-system": "all", "mesh-b": "own"} {
		if err := c.dynamic.Resource(proxyConfigGVR).Namespace(namespace).Delete(c.t.Context(), name, deleteNow); err != nil {
			c.t.Fatal(err)
		}
	}
	c.await("a without what no ProxyConfig says any more", func(context.Context) error {
		if strings.Contains(f.rendered(a), "OF_THE_MESH") {
			return errors.New("it is there still")
		}
		return nil
	})
}

// makesAgain has prerig make a published result again from its snapshot, with what the daemon keeps.
func (c *inCluster) makesAgain(t *testing.T, f *fixture, pipeline string, published v1alpha1.Published, want string) {
	t.Helper()
	if len(published.Snapshots) != 1 {
		t.Fatalf("published is %+v", published)
	}
	message := f.repository.Git("show", "-s", "--format=%B", published.Revision[strings.LastIndex(published.Revision, ":")+1:])
	if !strings.Contains(message, "Prerig-Cluster-Snapshot: "+published.Snapshots[0]) || !strings.Contains(message, " --snapshot "+published.Snapshots[0]) {
		t.Errorf("the commit says\n%s", message)
	}
	programs, err := testprograms.Build(testprograms.Prerig)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f.write(filepath.Join(dir, "pipelines", "a.yaml"), pipeline)
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), filepath.Join(programs, testprograms.Prerig.Name), args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "XDG_CACHE_HOME="+dir)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("prerig %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("daemon", "snapshot", published.Snapshots[0], "--state", f.c.State, "--to", "mesh.yaml")
	for _, snapshot := range [][]string{{"--snapshot", "mesh.yaml"}, {"--snapshot", published.Snapshots[0], "--state", f.c.State}} {
		got := run(append([]string{"render", "meshed/a", "--revision", published.SourceRevision, "--cache", filepath.Join(dir, "cache")}, snapshot...)...)
		if strings.TrimSpace(got) != strings.TrimSpace(want) { // as git show is trimmed
			t.Errorf("it made\n%s\nwant\n%s", got, want)
		}
	}
}

// Answers of what stands between the daemon and the API server.
const (
	answersTruth int32 = iota
	answersNothing
	answersError
	answersAbsent // of ProxyConfigs
)

// newBetween stands between a fixture's daemon and the API server, and answers for what decides about injection as it is told.
func newBetween(t *testing.T, c *inCluster, f *fixture) *betweenServer {
	t.Helper()
	var answer atomic.Int32
	at, err := url.Parse(c.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(c.config.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(at) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		FlushInterval: -1,
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mesh := false
		for _, resource := range []string{"/namespaces", "/nodes", "/mutatingwebhookconfigurations", "/configmaps", "/deployments", "/serviceaccounts", "/limitranges", "/proxyconfigs"} {
			mesh = mesh || strings.HasSuffix(r.URL.Path, resource)
		}
		now := answer.Load()
		switch {
		case !mesh || now == answersTruth || now == answersAbsent && !strings.HasSuffix(r.URL.Path, "/proxyconfigs"):
			proxy.ServeHTTP(w, r)
		case now == answersAbsent:
			http.NotFound(w, r)
		case now == answersError || r.URL.Query().Get("watch") != "":
			http.Error(w, "away", http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(&unstructured.UnstructuredList{Object: map[string]any{
				"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": "1"},
			}, Items: []unstructured.Unstructured{}})
		}
	}))
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	config, err := clientcmd.LoadFromFile(f.c.Kubernetes.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthority, cluster.InsecureSkipTLSVerify = server.URL, "", true
	}
	if err := clientcmd.WriteToFile(*config, f.c.Kubernetes.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	return &betweenServer{answer: &answer, server: server}
}

// betweenServer is what stands between.
type betweenServer struct {
	answer *atomic.Int32
	server *httptest.Server
}

// answers changes the answers, and ends watches that were begun before.
func (b *betweenServer) answers(now int32) {
	b.answer.Store(now)
	b.server.CloseClientConnections()
}
