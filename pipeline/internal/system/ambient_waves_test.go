// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/promotion"
)

// fleetClusters are the clusters of the fleet, a wave each.
var fleetClusters = []string{"eu", "us", "asia"}

// fleetCluster answers as an API server does whose controllers have made a pod, which is ready, for each Deployment.
type fleetCluster struct {
	mu   sync.Mutex
	pods map[string][]any // by namespace
}

func (c *fleetCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/version" {
		fmt.Fprint(w, `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`)
		return
	}
	list := map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": []any{}}
	if at, found := strings.CutSuffix(r.URL.Path, "/pods"); found {
		list["kind"] = "PodList"
		for namespace, pods := range c.pods {
			if at == "/api/v1" || at == "/api/v1/namespaces/"+namespace {
				list["items"] = append(list["items"].([]any), pods...)
			}
		}
	}
	_ = json.NewEncoder(w).Encode(list)
}

// apply replaces the pods by those of manifests.
func (c *fleetCluster) apply(t *testing.T, manifests []string) {
	t.Helper()
	pods := map[string][]any{}
	for _, text := range manifests {
		for document := range strings.SplitSeq(text, "\n---\n") {
			var d struct {
				Kind     string
				Metadata struct{ Name, Namespace string }
				Spec     struct {
					Template struct {
						Metadata map[string]any
						Spec     map[string]any
					}
				}
			}
			if err := yaml.Unmarshal([]byte(document), &d); err != nil {
				t.Fatal(err)
			}
			if d.Kind != "Deployment" {
				continue
			}
			set, metadata := d.Metadata.Name+"-7d4b9c6d5f", d.Spec.Template.Metadata
			metadata["name"], metadata["namespace"], metadata["generateName"] = set+"-x2x7k", d.Metadata.Namespace, set+"-"
			metadata["creationTimestamp"] = time.Now().Add(time.Second).UTC().Format(time.RFC3339)
			metadata["labels"].(map[string]any)["pod-template-hash"] = "7d4b9c6d5f"
			metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "controller": true, "uid": "u"}}
			pods[d.Metadata.Namespace] = append(pods[d.Metadata.Namespace], map[string]any{
				"metadata": metadata, "spec": d.Spec.Template.Spec,
				"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
			})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods = pods
}

// ambientFleet is reviews of 60 applications on three clusters that the daemon compares with what is committed.
type ambientFleet struct {
	*meshed
	clusters map[string]*fleetCluster
}

func newAmbientFleet(t *testing.T) *ambientFleet {
	f := &ambientFleet{&meshed{newReviews(t, 0), 60}, map[string]*fleetCluster{}}
	f.c.NATS.AckWait = config.Default().NATS.AckWait
	pipelines := ""
	for i := range f.applications {
		name, cluster := fmt.Sprintf("app%04d", i), fleetClusters[i%len(fleetClusters)]
		pipelines += fmt.Sprintf(`---
apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %[1]s, namespace: team, labels: {cluster: %[2]s}}
spec:
  source: {git: {url: "%[3]s/shop/config.git", ref: {branch: main}, secretRef: {name: gitea}}}
  build: {path: %[2]s/%[1]s}
  policies: [{path: policy.yaml}]
  publish:
  - git:
      url: "%[3]s/shop/rendered.git"
      branch: main
      path: %[2]s/%[1]s
      secretRef: {name: gitea}
      pullRequest: {provider: Gitea, groupBy: Label, label: cluster, waves: {order: [%[4]s], statuses: ["verify/*"]}}
  interval: 1m
`, name, cluster, f.proxy.URL, strings.Join(fleetClusters, ", "))
	}
	f.write(filepath.Join(f.c.Pipelines, "apps.yaml"), pipelines)
	for _, name := range fleetClusters {
		f.clusters[name] = &fleetCluster{}
		server := httptest.NewServer(f.clusters[name])
		t.Cleanup(server.Close)
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		f.write(kubeconfig, fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], "+
			"contexts: [{name: x, context: {cluster: c}}], current-context: x}", server.URL))
		f.c.Verify = append(f.c.Verify, config.Verify{
			Name: name, Kubeconfig: kubeconfig, URL: f.proxy.URL + "/shop/rendered.git", Branch: "main", Paths: []string{name}, Secret: "team/gitea", Interval: 10 * time.Second,
		})
	}
	f.commit("the mesh with sidecars", f.sources("istio-injection: enabled"))
	return f
}

// sources are the applications, each in a namespace of its own with a label.
func (f *ambientFleet) sources(label string) map[string]string {
	files := f.policy("1.31.1")
	files["policy.yaml"] = strings.Replace(files["policy.yaml"], ", sidecarInjectorWebhook: {enableNamespacesByDefault: true}", "", 1)
	for i := range f.applications {
		name := fmt.Sprintf("app%04d", i)
		app := strings.Replace(deployment(name, "image:1"), "namespace: shop", "namespace: "+name, 1)
		app = strings.Replace(app, `, sidecar.istio.io/inject: "true"`, "", 1)
		files[fleetClusters[i%len(fleetClusters)]+"/"+name+"/app.yaml"] = fmt.Sprintf(
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {%s}}\n---\n", name, label) + app
	}
	return files
}

// deploy brings a cluster to a commit of the rendered branch. A webhook of the cluster may replace texts.
func (f *ambientFleet) deploy(cluster, commit string, webhook ...string) {
	f.t.Helper()
	var manifests []string
	for _, file := range strings.Fields(f.inRendered("ls-tree", "-r", "--name-only", commit, cluster+"/")) {
		manifests = append(manifests, strings.NewReplacer(webhook...).Replace(f.inRendered("show", commit+":"+file)))
	}
	f.clusters[cluster].apply(f.t, manifests)
}

// stage waits until a wave has a state and a message.
func (f *ambientFleet) stage(i int, state, message string) {
	f.t.Helper()
	f.eventually("waiting for "+fleetClusters[i]+" to be "+state, func() string {
		if all := f.stages(); len(all) != 3 || all[i].State != state || !strings.Contains(all[i].Message, message) {
			return fmt.Sprintf("they are %+v", all)
		}
		return ""
	})
}

// mergeNext merges the pull request of a wave, the only one that is open.
func (f *ambientFleet) mergeNext(i int) {
	f.t.Helper()
	f.eventually("waiting for the pull request of "+fleetClusters[i], func() string {
		open := f.pulls("open")
		if len(open) != 1 || !strings.HasSuffix(open[0].Head.Label, "/"+fleetClusters[i]) {
			return fmt.Sprintf("open are %+v; %+v", open, f.stages())
		}
		files := strings.Fields(f.inRendered("diff", "--name-only", "main..."+open[0].Head.SHA))
		if len(files) < f.applications/len(fleetClusters) {
			return fmt.Sprintf("it has %d files", len(files))
		}
		f.merge(open[0].Number, "merge")
		return ""
	})
}

// TestGiteaWavesWaitForPods moves a fleet of 60 pipelines to ambient mode, a cluster at a time. Each wave waits until the pods of the
// one before it have no sidecar. In the second cluster a webhook still injects, which stops the waves until it is fixed. Rolling the
// last wave back restores its files.
func TestGiteaWavesWaitForPods(t *testing.T) {
	f := newAmbientFleet(t)
	f.serveReviews()
	for i, cluster := range fleetClusters {
		f.mergeNext(i)
		f.deploy(cluster, "main")
	}
	f.stage(2, promotion.StageDone, "")
	before := f.inRendered("rev-parse", "main")
	if n := len(strings.Fields(f.inRendered("grep", "-l", "istio-proxy", "main"))); n != f.applications {
		t.Fatalf("%d of %d files have a sidecar", n, f.applications)
	}

	f.commit("to ambient mode", f.sources("istio.io/dataplane-mode: ambient"))
	f.mergeNext(0)
	f.stage(0, promotion.StageVerifying, "verify/eu: 20 of 20 pods of an older commit")
	if open := f.pulls("open"); len(open) > 0 {
		t.Errorf("open are %+v", open)
	}
	f.deploy("eu", "main")
	f.mergeNext(1)
	f.deploy("us", before, "proxyv2:1.31.1", "proxyv2:1.30.3") // new pods, into which the webhook injects what it has
	f.stage(1, promotion.StageStopped, "verify/us is red")
	f.stage(2, promotion.StageWaiting, "us is stopped")
	f.deploy("us", "main")
	f.mergeNext(2)
	f.deploy("asia", "main")
	f.stage(2, promotion.StageDone, "")
	if left := f.inRendered("grep", "-l", "istio-proxy", "main"); left != "" {
		t.Errorf("there are sidecars in %s", left)
	}

	f.said("daemon", "rollback", "team/app0002")
	f.eventually("waiting for the rollback", func() string {
		open := f.pulls("open")
		if len(open) != 1 {
			return fmt.Sprintf("open are %+v", open)
		}
		f.merge(open[0].Number, "squash")
		return ""
	})
	if now, then := f.inRendered("rev-parse", "main:asia"), f.inRendered("rev-parse", before+":asia"); now != then {
		t.Errorf("asia is %s after the rollback, and was %s with sidecars", now, then)
	}
}
