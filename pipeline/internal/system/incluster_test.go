// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/prerig/prerig/internal/moduleroot"
	"github.com/prerig/prerig/internal/testprograms"
)

// Resources that the tests use.
var (
	renderPipelines = schema.GroupVersionResource{Group: "prerig.dev", Version: "v1alpha1", Resource: "renderpipelines"}
	policyObjects   = schema.GroupVersionResource{Group: "prerig.dev", Version: "v1alpha1", Resource: "injectionpolicies"}
	namespaceGVR    = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secretGVR       = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	eventGVR        = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	bindingGVR      = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	accountGVR      = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// inCluster is a real API server.
type inCluster struct {
	t          *testing.T
	root       string // of the module
	kubeconfig string // of the administrator
	config     *rest.Config
	dynamic    dynamic.Interface
}

// controlPlaneInput is held for as long as the control plane is to run: it ends with its input.
var controlPlaneInput io.WriteCloser

// controlPlane is one for all tests: it is ended with this process.
var controlPlane = sync.OnceValues(startControlPlane)

// startControlPlane starts an API server, and returns the path of its administrator's kubeconfig.
func startControlPlane() (string, error) {
	root, err := moduleroot.Dir()
	if err != nil {
		return "", err
	}
	dir, err := testprograms.Build(testprograms.ControlPlane)
	if err != nil {
		return "", err
	}
	cache, err := clusterCache()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(dir, testprograms.ControlPlane.Name), "-upstream", filepath.Join(root, "fn", "internal", "upstream"), "-cache", cache)
	var said bytes.Buffer
	cmd.Stderr = &said
	if controlPlaneInput, err = cmd.StdinPipe(); err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		return "", fmt.Errorf("starting the control plane: %w\n%s", err, said.String())
	}
	return strings.TrimSpace(line), nil
}

// clusterCache is where the programs of a cluster are kept.
func clusterCache() (string, error) {
	if cache := os.Getenv("PRERIG_CLUSTER_CACHE"); cache != "" {
		return cache, nil
	}
	caches, err := os.UserCacheDir()
	return filepath.Join(caches, "prerig-cluster"), err
}

// newInCluster returns the API server, with the definitions and roles of deploy and some namespaces, or skips the test where no cluster
// is asked for.
func newInCluster(t *testing.T, namespaces ...string) *inCluster {
	t.Helper()
	if os.Getenv("PRERIG_CLUSTER") == "" {
		t.Skip("PRERIG_CLUSTER is not set; make e2e-cluster runs this")
	}
	kubeconfig, err := controlPlane()
	if err != nil {
		t.Fatal(err)
	}
	root, err := moduleroot.Dir()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &inCluster{t: t, root: root, kubeconfig: kubeconfig, config: config, dynamic: client}
	c.kubectl("apply", "--server-side", "-k", filepath.Join(root, "deploy", "crds"))
	for _, gvr := range []schema.GroupVersionResource{renderPipelines, policyObjects} {
		c.await("the definition of "+gvr.Resource, func(ctx context.Context) error {
			_, err := c.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
			return err
		})
	}
	for _, name := range append([]string{"prerig"}, namespaces...) {
		c.apply(namespaceGVR, object("v1", "Namespace", "", name, nil))
	}
	c.kubectl("apply", "--server-side", "-n", "prerig", "-f", filepath.Join(root, "deploy", "base", "rbac.yaml"))
	return c
}

func object(apiVersion, kind, namespace, name string, more map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	for key, value := range more {
		o.Object[key] = value
	}
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// parse reads an object in YAML.
func (c *inCluster) parse(text string) *unstructured.Unstructured {
	c.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		c.t.Fatalf("%v\n%s", err, text)
	}
	return o
}

// apply applies an object as its user would.
func (c *inCluster) apply(gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	c.t.Helper()
	if _, err := c.tryApply(gvr, o); err != nil {
		c.t.Fatal(err)
	}
}

func (c *inCluster) tryApply(gvr schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	c.t.Helper()
	text, err := o.MarshalJSON()
	if err != nil {
		c.t.Fatal(err)
	}
	force := true
	return c.dynamic.Resource(gvr).Namespace(o.GetNamespace()).Patch(c.t.Context(), o.GetName(), types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: "user", Force: &force, FieldValidation: metav1.FieldValidationStrict})
}

// annotate sets an annotation as the flux command does.
func (c *inCluster) annotate(namespace, name, key, value string) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if _, err := c.dynamic.Resource(renderPipelines).Namespace(namespace).Patch(c.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// pipeline returns an object as it is now, nil where it is gone.
func (c *inCluster) pipeline(namespace, name string) *unstructured.Unstructured {
	c.t.Helper()
	o, err := c.dynamic.Resource(renderPipelines).Namespace(namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return o
}

// reads waits until Flux and kubectl, by kstatus, find an object to be in a state, with a text in its message.
func (c *inCluster) reads(gvr schema.GroupVersionResource, namespace, name string, want kstatus.Status, text string) *unstructured.Unstructured {
	c.t.Helper()
	var found *unstructured.Unstructured
	c.await(fmt.Sprintf("%s/%s to be %s with %q", namespace, name, want, text), func(ctx context.Context) error {
		o, err := c.dynamic.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		got, err := kstatus.Compute(o)
		if err != nil {
			return err
		}
		ready := condition(o, "Ready")
		if got.Status != want || ready == nil || !strings.Contains(fmt.Sprint(ready["message"]), text) {
			return fmt.Errorf("it is %s: %s; %v", got.Status, got.Message, o.Object["status"])
		}
		found = o
		return nil
	})
	return found
}

// condition returns a condition of an object, nil where it has none of the kind.
func condition(o *unstructured.Unstructured, kind string) map[string]any {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range all {
		if c, ok := one.(map[string]any); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}

// await asks until there is no error, for as long as a busy machine may need.
func (c *inCluster) await(what string, ask func(context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 4*time.Minute)
	defer cancel()
	defer func(began time.Time) { c.t.Logf("waited %s for %s", time.Since(began).Round(time.Millisecond), what) }(time.Now())
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("waiting for %s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// schemaOf names a resource of the core group.
func schemaOf(version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: version, Resource: resource}
}

// serviceAccount returns the path of a kubeconfig with a token of the daemon's ServiceAccount, as the daemon has it in a pod.
func (c *inCluster) serviceAccount(namespace, name string) string {
	c.t.Helper()
	answer, err := c.dynamic.Resource(accountGVR).Namespace(namespace).Create(c.t.Context(), object("authentication.k8s.io/v1", "TokenRequest", "", name, map[string]any{
		"spec": map[string]any{"expirationSeconds": int64(3600)},
	}), metav1.CreateOptions{}, "token")
	if err != nil {
		c.t.Fatal(err)
	}
	token, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: c.config.Host, CertificateAuthority: c.config.CAFile}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// bindSecrets lets the daemon read the secrets of a namespace, as docs say.
func (c *inCluster) bindSecrets(namespace string) {
	c.t.Helper()
	c.apply(bindingGVR, object("rbac.authorization.k8s.io/v1", "RoleBinding", namespace, "prerig-secrets", map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "prerig-secrets"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "prerig", "namespace": "prerig"}},
	}))
}

// bindArtifacts lets the daemon write ExternalArtifacts of a namespace, as docs say.
func (c *inCluster) bindArtifacts(namespace string) {
	c.t.Helper()
	c.apply(bindingGVR, object("rbac.authorization.k8s.io/v1", "RoleBinding", namespace, "prerig-externalartifacts", map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "prerig-externalartifacts"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "prerig", "namespace": "prerig"}},
	}))
}

// kubectl runs the real kubectl as the administrator.
func (c *inCluster) kubectl(args ...string) string {
	c.t.Helper()
	out, err := c.tryKubectl(args...)
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (c *inCluster) tryKubectl(args ...string) (string, error) {
	cmd := exec.CommandContext(c.t.Context(), "kubectl", append([]string{"--kubeconfig", c.kubeconfig, "--cache-dir", filepath.Join(c.t.TempDir(), "cache")}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// use has a fixture's daemon read its pipelines from the cluster.
func (c *inCluster) use(f *fixture, namespaces ...string) {
	f.c.Pipelines, f.c.Kubernetes.Pipelines, f.c.Kubernetes.Kubeconfig, f.c.Kubernetes.Namespaces = "", true, c.serviceAccount("prerig", "prerig"), namespaces
}

// examples returns the texts of all RenderPipelines and InjectionPolicies among the examples.
func (c *inCluster) examples() map[string]string {
	c.t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(c.root), "examples", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(c.root, path))
		if err != nil {
			return err
		}
		for i, doc := range strings.Split(string(text), "\n---\n") {
			var kind struct{ APIVersion, Kind string }
			if yaml.Unmarshal([]byte(doc), &kind) == nil && kind.APIVersion == "prerig.dev/v1alpha1" && (kind.Kind == "RenderPipeline" || kind.Kind == "InjectionPolicy") {
				out[fmt.Sprintf("%s#%d", path, i)] = doc
			}
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}
