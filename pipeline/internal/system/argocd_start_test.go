// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	applicationGVR = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	projectGVR     = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "appprojects"}
)

// argoCDPrograms are Argo CD and the directories of its manifests.
var argoCDPrograms = sync.OnceValues(func() ([]string, error) { return upstreamPrograms("-argocd") })

// argoCD is a running Argo CD, with our example in a repository and a daemon that is not started yet.
type argoCD struct {
	*inCluster
	f         *fixture
	dir       string            // short, as sockets are in it
	example   map[string]string // files of examples/argo-cd, with the repository's URL
	processes map[string]*os.Process
}

// newArgoCD starts Redis, Argo CD's repo server and its application controller, or skips the test where no Redis is given.
func newArgoCD(t *testing.T, namespaces ...string) *argoCD {
	t.Helper()
	redis := os.Getenv("PRERIG_REDIS")
	if redis == "" {
		t.Skip("PRERIG_REDIS is not set; make e2e-argocd runs this")
	}
	programs, err := argoCDPrograms()
	if err != nil {
		t.Fatal(err)
	}
	a := &argoCD{inCluster: newInCluster(t, append(namespaces, "argocd")...), f: prepareAlone(t, nil), processes: map[string]*os.Process{}}
	a.readExample()
	if a.dir, err = os.MkdirTemp("", "argocd-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(a.dir) })
	began := time.Now()
	a.install(programs[1:])
	ports := freePorts(t, 4)
	store, server := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	port := func(i int) string { return fmt.Sprint(ports[i]) }
	a.processes["redis"] = a.startProgram("redis", nil, redis, "--bind", "127.0.0.1", "--port", port(0), "--save", "", "--appendonly", "no", "--dir", a.dir)
	a.answers(store)
	a.run("argocd-repo-server", programs[0], "--address", "127.0.0.1", "--port", port(1), "--metrics-address", "127.0.0.1", "--metrics-port", port(2),
		"--redis", store, "--disable-tls")
	a.answers(server)
	a.run("argocd-application-controller", programs[0], "--kubeconfig", a.kubeconfig, "--namespace", "argocd", "--application-namespaces", "team",
		"--repo-server", server, "--repo-server-plaintext", "--redis", store, "--metrics-port", port(3))
	a.answers("127.0.0.1:" + port(3))
	t.Logf("Argo CD was up after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		for name, process := range a.processes {
			t.Logf("%s had at most %s", name, largest(process))
		}
	})
	return a
}

// install applies Argo CD's definitions and configuration, and what its API server would make at its first start.
func (a *argoCD) install(manifests []string) {
	a.t.Helper()
	a.kubectl("apply", "--server-side", "-k", manifests[0])
	a.kubectl("apply", "--server-side", "-n", "argocd", "-k", manifests[1])
	a.await("the definition of applications", func(ctx context.Context) error {
		_, err := a.dynamic.Resource(applicationGVR).List(ctx, metav1.ListOptions{})
		return err
	})
	patch := []byte(`{"stringData":{"server.secretkey":"for tests","admin.password":"none"}}`)
	if _, err := a.dynamic.Resource(secretGVR).Namespace("argocd").Patch(a.t.Context(), "argocd-secret", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		a.t.Fatal(err)
	}
	a.apply(projectGVR, a.parse(`apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec:
  sourceRepos: ["*"]
  sourceNamespaces: ["*"]
  destinations: [{namespace: "*", server: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
`))
}

// run starts one of Argo CD's programs, as an administrator.
func (a *argoCD) run(name, program string, args ...string) {
	a.t.Helper()
	for _, dir := range []string{"plugins", "ssh", "tls", "tmp"} {
		if err := os.MkdirAll(filepath.Join(a.dir, dir), 0o700); err != nil {
			a.t.Fatal(err)
		}
	}
	a.processes[name] = a.startProgram(name, []string{
		"ARGOCD_BINARY_NAME=" + name, "ARGOCD_FAKE_IN_CLUSTER=true", "KUBECONFIG=" + a.kubeconfig, "HOSTNAME=" + name + "-0", "ARGOCD_GPG_ENABLED=false",
		"ARGOCD_ASK_PASS_SOCK=" + filepath.Join(a.dir, "ask.sock"), "ARGOCD_PLUGINSOCKFILEPATH=" + filepath.Join(a.dir, "plugins"),
		"ARGOCD_SSH_DATA_PATH=" + filepath.Join(a.dir, "ssh"), "ARGOCD_TLS_DATA_PATH=" + filepath.Join(a.dir, "tls"),
		"HOME=" + a.dir, "TMPDIR=" + filepath.Join(a.dir, "tmp"), "PATH=" + filepath.Join(a.dir, "bin") + ":" + os.Getenv("PATH"),
	}, program, args...)
}

// answers waits until somebody listens at an address.
func (a *argoCD) answers(address string) {
	a.t.Helper()
	a.await("an answer of "+address, func(ctx context.Context) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// readExample reads our example, for the test's repository, and has the daemon run its pipeline.
func (a *argoCD) readExample() {
	a.t.Helper()
	a.example = map[string]string{}
	root := os.DirFS(filepath.Join(a.root, "examples", "argo-cd"))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, path)
		a.example[path] = strings.ReplaceAll(string(text), "https://git.example.com/team/config.git", a.f.repository.URL)
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
	a.f.write(filepath.Join(a.f.c.Pipelines, "shop.yaml"), a.example["pipelines/shop.yaml"])
}

// refresh has Argo CD look at the repository now, as `argocd app get --refresh` does; of itself it looks every two to three minutes.
func (a *argoCD) refresh(namespace, name string) {
	a.t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`)
	if _, err := a.dynamic.Resource(applicationGVR).Namespace(namespace).Patch(a.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// application waits until an Application is what is asked for, and gives "" then.
func (a *argoCD) application(namespace, name, what string, ask func(o *unstructured.Unstructured) string) {
	a.t.Helper()
	a.await(name+" to be "+what, func(ctx context.Context) error {
		o, err := a.dynamic.Resource(applicationGVR).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if problem := ask(o); problem != "" {
			return fmt.Errorf("%s; its status is %v", problem, o.Object["status"])
		}
		return nil
	})
}

// isSynced waits until Argo CD finds nothing that differs, at a commit. Pods are not started here, so that a Deployment makes progress.
func (a *argoCD) isSynced(namespace, name, commit string) {
	a.t.Helper()
	a.application(namespace, name, "Synced at "+commit, func(o *unstructured.Unstructured) string {
		status, _, _ := unstructured.NestedString(o.Object, "status", "sync", "status")
		revision, _, _ := unstructured.NestedString(o.Object, "status", "sync", "revision")
		health, _, _ := unstructured.NestedString(o.Object, "status", "health", "status")
		if status != "Synced" || revision != commit || health != "Progressing" && health != "Healthy" {
			return fmt.Sprintf("it is %s and %s at %s", status, health, revision)
		}
		resources, _, _ := unstructured.NestedSlice(o.Object, "status", "resources")
		if len(resources) == 0 {
			return "it has no objects"
		}
		for _, one := range resources {
			if r, ok := one.(map[string]any); !ok || r["status"] != "Synced" {
				return fmt.Sprintf("%v is not Synced", one)
			}
		}
		return ""
	})
}

// deleteApplication deletes an Application with all that it has applied, as its finalizer says.
func (a *argoCD) deleteApplication(namespace, name string) {
	a.t.Helper()
	patch := []byte(`{"metadata":{"finalizers":["resources-finalizer.argocd.argoproj.io"]}}`)
	if _, err := a.dynamic.Resource(applicationGVR).Namespace(namespace).Patch(a.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		a.t.Fatal(err)
	}
	if err := a.dynamic.Resource(applicationGVR).Namespace(namespace).Delete(a.t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		a.t.Fatal(err)
	}
	a.isGone(applicationGVR, namespace, name)
}
