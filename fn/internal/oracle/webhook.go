// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// callsWebhookFor reports whether the API server calls the webhook for a pod in a namespace.
func (c *cluster) callsWebhookFor(pod map[string]any) (bool, error) {
	meta, _ := pod["metadata"].(map[string]any)
	name, _ := meta["namespace"].(string)
	namespaceLabels := labels.Set{"kubernetes.io/metadata.name": name}
	for _, n := range c.Namespaces() {
		if n.Name == name {
			for k, v := range n.Labels {
				namespaceLabels[k] = v
			}
		}
	}
	podLabels := labels.Set{}
	l, _ := meta["labels"].(map[string]any)
	for k, v := range l {
		podLabels[k], _ = v.(string)
	}
	for _, w := range c.webhooks {
		for _, h := range w.Webhooks {
			ofNamespace, err := selectorMatches(h.NamespaceSelector, namespaceLabels)
			if err != nil {
				return false, err
			}
			ofPod, err := selectorMatches(h.ObjectSelector, podLabels)
			if err != nil {
				return false, err
			}
			if ofNamespace && ofPod {
				return true, nil
			}
		}
	}
	return false, nil
}

// selectorMatches reports whether a selector selects; none selects everything.
func selectorMatches(s *metav1.LabelSelector, set labels.Set) (bool, error) {
	if s == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return false, fmt.Errorf("reading a webhook's selector: %w", err)
	}
	return selector.Matches(set), nil
}

// webhookAnswer is the answer of the cluster's webhook to a pod: empty if it leaves the pod alone, or the reason
// for rejecting it.
type webhookAnswer struct {
	Pod      map[string]any `json:"pod"`
	Refused  string         `json:"refused"`
	Panicked bool           `json:"panicked"`
	// Unknown are fields of the pod that are newer than the Kubernetes types of the webhook.
	Unknown []string `json:"unknown"`
}

// askIstiodWebhook sends pods to the webhook of an istiod that is started for them.
func (c *cluster) askIstiodWebhook(ctx context.Context, tools Tools, pods []map[string]any) ([]webhookAnswer, error) {
	answers, err := c.askWebhookOnce(ctx, tools, pods)
	if err != nil {
		return nil, fmt.Errorf("starting the istiod of the installation %s: %w", c.Name, err)
	}
	return answers, nil
}

func (c *cluster) askWebhookOnce(ctx context.Context, tools Tools, pods []map[string]any) ([]webhookAnswer, error) {
	dir, err := os.MkdirTemp("", "istiod-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file, answers := filepath.Join(dir, "installation.json"), filepath.Join(dir, "answers")
	if err := os.WriteFile(file, c.istiodClusterObjects(), 0o600); err != nil {
		return nil, err
	}
	type request struct {
		Namespace string         `json:"namespace"`
		Pod       map[string]any `json:"pod"`
	}
	requests := make([]request, len(pods))
	for i, pod := range pods {
		meta, _ := pod["metadata"].(map[string]any)
		requests[i].Pod = pod
		requests[i].Namespace, _ = meta["namespace"].(string)
	}
	in, err := linesOf(requests)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, tools.Injector, file, answers)
	cmd.Stdin, cmd.Env = in, c.istiodEnvironment()
	if err := runWithOutputTail(cmd); err != nil {
		return nil, err
	}
	out, err := os.ReadFile(answers)
	if err != nil {
		return nil, err
	}
	return answersOf[webhookAnswer](out, len(pods), tools.Injector)
}

// knownClusterNames returns the clusters that istiod knows: its own, and the one that calls, of which it has a remote
// secret.
func (c *cluster) knownClusterNames() []string {
	out := []string{c.env["CLUSTER_ID"]}
	if name := c.settingsFromURLPath()["cluster"]; name != "" && name != out[0] {
		out = append(out, name)
	}
	return out
}

// istiodClusterObjects returns what the istiod reads from its cluster.
func (c *cluster) istiodClusterObjects() []byte {
	var namespaces []corev1.Namespace
	for _, n := range c.Namespaces() {
		namespaces = append(namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels, Annotations: n.Annotations}})
	}
	return toJSON(map[string]any{
		"config": c.config, "values": c.values, "mesh": c.mesh, "revision": c.istioRevision(),
		"path":     c.webhookURLPath(),
		"clusters": c.knownClusterNames(), "kubelets": []string{c.Kubelet}, "namespaces": namespaces,
		"proxyConfigs": c.ProxyConfigs,
	})
}

// istiodEnvironment is that of the process of istiod.
func (c *cluster) istiodEnvironment() []string {
	out := []string{"HOME=/nonexistent", "PATH=/nonexistent"}
	for k, v := range c.env {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}
