// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/prerig/prerig/internal/freeport"
)

// Options describes how a control plane is set up.
type Options struct {
	// AdmissionPlugins are plugins of the API server that are off by default and on here.
	AdmissionPlugins []string
	// APIServerFlags are further flags of the API server.
	APIServerFlags []string
	// AdmissionConfig is an AdmissionConfiguration in YAML, or "".
	AdmissionConfig string
	// Kubelet is the version that the only Node's kubelet claims, with its v; that of the control plane where it is "".
	Kubelet string
	// WithoutControllers starts no controllers and adds no Node: namespaces have no service accounts then.
	WithoutControllers bool
	// Say, if not nil, logs how long each part took.
	Say func(format string, args ...any)
}

// Cluster is a running control plane.
type Cluster struct {
	*client
	// Kubeconfig is the path of a kubeconfig for its administrator.
	Kubeconfig string
	programs   *Programs
	dir        string
	server     string // the API server's URL
	etcd       string // its URL
	options    Options
	processes  []*process
}

// The users of the cluster, by their tokens, as kube-apiserver's --token-auth-file has them: the user, an id, the groups.
var tokens = map[string]string{
	"administrator":      "administrator,1,system:masters",
	"controller-manager": "system:kube-controller-manager,2,system:masters",
	"verifier":           "verifier,3", // who has no permissions until they are granted
}

// ready is how long a part of the cluster may take until it is ready, on a busy machine.
const ready = 3 * time.Minute

// Start starts etcd, the API server and the controllers, and waits until pods can be made in the namespace default. Close
// ends them; they also end when this process does.
func Start(ctx context.Context, programs *Programs, options Options) (_ *Cluster, err error) {
	if options.Say == nil {
		options.Say = func(string, ...any) {}
	}
	if options.Kubelet == "" {
		options.Kubelet = programs.Kubernetes
	}
	dir, err := os.MkdirTemp("", "prerig-cluster-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{programs: programs, dir: dir, options: options}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if err := writeCertificates(dir); err != nil {
		return nil, fmt.Errorf("making the certificates: %w", err)
	}
	if err := c.writeAccess(); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		name  string
		start func(context.Context) error
	}{
		{"etcd", c.startEtcd}, {"kube-apiserver", c.startAPIServer}, {"kube-controller-manager", c.startControllers},
		{"the Node", c.addNode},
	} {
		if options.WithoutControllers && part.name != "etcd" && part.name != apiServer {
			continue
		}
		began := time.Now()
		if err := part.start(ctx); err != nil {
			return nil, fmt.Errorf("starting %s: %w", part.name, err)
		}
		options.Say("%s was ready after %s", part.name, time.Since(began).Round(10*time.Millisecond))
	}
	return c, nil
}

// Close ends all processes of the cluster, the last one first, and removes its files.
func (c *Cluster) Close() {
	for _, p := range slices.Backward(c.processes) {
		p.kill()
	}
	_ = os.RemoveAll(c.dir)
}

// writeAccess writes the tokens, and reserves the API server's address.
func (c *Cluster) writeAccess() error {
	var lines []byte
	for token, user := range tokens {
		lines = append(lines, (token + "," + user + "\n")...)
	}
	if err := os.WriteFile(filepath.Join(c.dir, tokenFile), lines, 0o600); err != nil {
		return err
	}
	ports, err := freeport.Find("127.0.0.1", 1)
	if err != nil {
		return err
	}
	c.server = fmt.Sprintf("https://127.0.0.1:%d", ports[0])
	for token := range tokens {
		if err := c.writeKubeconfig(token, map[string]any{"token": token}); err != nil {
			return err
		}
	}
	c.Kubeconfig = c.kubeconfigPath("administrator")
	return nil
}

func (c *Cluster) kubeconfigPath(name string) string {
	return filepath.Join(c.dir, name+".kubeconfig")
}

// writeKubeconfig writes a kubeconfig with a name for a user with the specified access.
func (c *Cluster) writeKubeconfig(name string, access map[string]any) error {
	user, err := json.Marshal(access)
	if err != nil {
		return err
	}
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: %s}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, c.server, filepath.Join(c.dir, caFile), user)
	return os.WriteFile(c.kubeconfigPath(name), []byte(content), 0o600)
}

// launchComponent starts a program as a part of the cluster.
func (c *Cluster) launchComponent(name string, env []string, program string, args ...string) (*process, error) {
	env = append([]string{"HOME=" + c.dir, "TMPDIR=" + c.dir, "PATH=/usr/bin:/bin"}, env...)
	p, err := startProcess(c.dir, name, env, program, args...)
	if err == nil {
		c.processes = append(c.processes, p)
	}
	return p, err
}

// pollUntilReady asks until what is asked has no error, but not when a process has ended or for longer than ready.
func (c *Cluster) pollUntilReady(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	for {
		last := ask(ctx)
		if last == nil {
			return nil
		}
		if err := c.componentExitError(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			newest := c.processes[len(c.processes)-1]
			return fmt.Errorf("waiting: %w; the last lines of %s:\n%s", errors.Join(last, ctx.Err()), newest.name, newest.lastOutputLines(20))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// componentExitError reports how a part of the cluster ended, or nil while all run.
func (c *Cluster) componentExitError() error {
	for _, p := range c.processes {
		if err := p.exitError(); err != nil {
			return err
		}
	}
	return nil
}

// addNode adds the only node, for controllers that place pods themselves, and because Istio asks for its kubelet's version.
func (c *Cluster) addNode(ctx context.Context) error {
	nodes := c.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	node := newUnstructuredObject(map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": "node", "labels": map[string]any{"kubernetes.io/os": "linux"}},
	})
	if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	// Admission has tainted it as not ready, and DaemonSets make no pods on such a node.
	_, err := nodes.Patch(ctx, "node", types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	status := fmt.Sprintf(`{"status":{"nodeInfo":{"kubeletVersion":%q},"conditions":[{"type":"Ready","status":"True"}]}}`, c.options.Kubelet)
	_, err = nodes.Patch(ctx, "node", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	return err
}

// restConfig is how the administrator reaches the cluster.
func (c *Cluster) restConfig() *rest.Config {
	return &rest.Config{
		Host: c.server, BearerToken: "administrator", QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(c.dir, caFile)},
	}
}
