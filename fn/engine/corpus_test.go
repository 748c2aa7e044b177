// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
	"github.com/prerig/prerig/fn/internal/conformance"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/internal/corpustest"
)

// corpus returns the conformance corpus' versions.
func corpus(t *testing.T) []*conformance.Version {
	t.Helper()
	versions, err := conformance.Load(corpustest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

// refused are the cases whose pods the API server refuses, natively or with other sidecars: no container is left, a template adds to an
// ordinary proxy, a probe goes to the port 0, a file of a volume has an absolute path. Istio's own tests ask no API server.
var refused = []string{"only-proxy-container", "sidecar-spire", "status_annotations_zeroport", "user-volume"}

// each calls do for every case of the corpus that is to be injected.
func each(t *testing.T, do func(t *testing.T, c *conformance.Case, p *v1alpha1.InjectionPolicy, input []byte)) {
	for _, v := range corpus(t) {
		t.Run(v.Version.String(), func(t *testing.T) {
			for _, c := range v.Cases {
				if c.ExpectError != "" || slices.Contains(refused, c.Name) {
					continue
				}
				t.Run(c.Name, func(t *testing.T) {
					p, err := c.Policy()
					if err != nil {
						t.Fatal(err)
					}
					input, err := c.Text(c.Input)
					if err != nil {
						t.Fatal(err)
					}
					do(t, c, p, input)
				})
			}
		})
	}
}

// parse reads a stream as items.
func parse(t *testing.T, path string, text []byte) []engine.Item {
	t.Helper()
	f, err := manifest.Parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	items := make([]engine.Item, len(f.Docs))
	for i, d := range f.Docs {
		items[i] = engine.Item{Doc: d, Path: path, Index: i}
	}
	return items
}

// run applies a policy and fails on an error result.
func run(t *testing.T, p *v1alpha1.InjectionPolicy, items []engine.Item) *engine.Report {
	t.Helper()
	return apply(t, compiled(t, p), items)
}

// compiled is a policy as an injector, for tests that apply it often: to compile one takes longer than to inject into one workload.
func compiled(t *testing.T, p *v1alpha1.InjectionPolicy) *engine.Injector {
	t.Helper()
	in, err := engine.New([]*v1alpha1.InjectionPolicy{p})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func apply(t *testing.T, in *engine.Injector, items []engine.Item) *engine.Report {
	t.Helper()
	report, err := in.Run(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	if report.Failed() {
		t.Fatalf("the run failed: %v", report.Results)
	}
	return report
}

// text returns the stream of a report.
func text(r *engine.Report) []byte {
	f := manifest.File{}
	for _, item := range r.Items {
		f.Docs = append(f.Docs, item.Doc)
	}
	return f.Bytes()
}

func TestCorpusThroughTheYAMLDoor(t *testing.T) {
	each(t, func(t *testing.T, c *conformance.Case, p *v1alpha1.InjectionPolicy, input []byte) {
		items, in := parse(t, c.Input, input), compiled(t, p)
		first := apply(t, in, items)
		out := text(first)

		checkUntouched(t, items, first)
		// Ten runs with the first one, the last of a policy that is compiled anew.
		for _, each := range append(slices.Repeat([]*engine.Injector{in}, 8), compiled(t, p)) {
			if again := text(apply(t, each, items)); !bytes.Equal(out, again) {
				t.Fatalf("the same input gave other bytes:\n%s", cmp.Diff(string(out), string(again)))
			}
		}
		if twice := text(apply(t, in, parse(t, c.Input, out))); !bytes.Equal(out, twice) {
			t.Errorf("injecting twice is not injecting once:\n%s", cmp.Diff(string(out), string(twice)))
		}
		checkShuffled(t, in, items, first)
	})
}

// checkUntouched sees that a document without an injection has its bytes, and that an injected one has every comment and
// every line that it had, in its order, but for the lines whose value the injection changes.
func checkUntouched(t *testing.T, items []engine.Item, r *engine.Report) {
	t.Helper()
	for i, item := range r.Items {
		before, after := string(items[i].Doc.Raw()), string(item.Doc.Raw())
		if item.Doc == items[i].Doc || strings.Contains(before, "sidecar.istio.io/status") {
			continue
		}
		// What a user writes about the proxy becomes part of the injected container and may stand elsewhere then.
		own := strings.Contains(before, "name: istio-proxy") || strings.Contains(before, "name: istio-init")
		rest := strings.Split(after, "\n")
		for _, line := range strings.Split(before, "\n") {
			if at := slices.Index(rest, line); at >= 0 && !own {
				rest = rest[at+1:]
			} else if comment := strings.TrimSpace(line); strings.HasPrefix(comment, "#") && !strings.Contains(after, comment) {
				t.Errorf("document %d lost the comment %q", i, comment)
			} else if !own && !mayChange(line) {
				t.Errorf("document %d lost or moved the line %q", i, line)
			}
		}
	}
}

// mayChange reports whether injection has a reason to change a line: probes and handlers that are rewritten, annotations that
// it extends, empty collections that are filled.
func mayChange(line string) bool {
	for _, word := range []string{"port", "path:", "scheme", "httpGet", "tcpSocket", "grpc", "service:", "host", "prometheus", "{}", "[]", "null",
		"annotations", "labels", "k8s.v1.cni.cncf.io/networks", "fsGroup", "excludeInboundPorts"} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// checkShuffled sees that the order of the documents does not matter.
func checkShuffled(t *testing.T, in *engine.Injector, items []engine.Item, first *engine.Report) {
	t.Helper()
	shuffled := slices.Clone(items)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	if diff := cmp.Diff(set(first), set(apply(t, in, shuffled))); diff != "" {
		t.Errorf("shuffled documents gave another set:\n%s", diff)
	}
}

func set(r *engine.Report) []string {
	var out []string
	for _, item := range r.Items {
		out = append(out, string(item.Doc.Raw()))
	}
	slices.Sort(out)
	return out
}

// TestCorpusThroughTheYAMLDoorIsTheEngine sees that what is written is what the engine gives for the same case, which the
// conformance test compares with Istio's own output.
func TestCorpusThroughTheYAMLDoorIsTheEngine(t *testing.T) {
	each(t, func(t *testing.T, c *conformance.Case, p *v1alpha1.InjectionPolicy, input []byte) {
		if why := otherThanKubeInject(c.Name); why != "" {
			t.Skip(why)
		}
		want, err := c.Inject()
		if err != nil {
			t.Fatal(err)
		}
		var got []map[string]any
		for _, item := range run(t, p, parse(t, c.Input, input)).Items {
			obj, err := item.Doc.Object()
			if err != nil {
				t.Fatal(err)
			}
			if len(obj) > 0 {
				got = append(got, withoutRecord(obj))
			}
		}
		if diff := cmp.Diff(want.Objects, got); diff != "" {
			t.Errorf("-engine +document\n%s", diff)
		}
	})
}

// withoutRecord takes out what the function notes at the workload itself, of which the engine, which sees pods, knows nothing.
func withoutRecord(obj map[string]any) map[string]any {
	meta, _ := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if _, recorded := annotations["prerig.dev/undo"]; recorded {
		if delete(annotations, "prerig.dev/undo"); len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}
	return obj
}

// otherThanKubeInject says why the function differs from the path of Istio that the corpus compares with.
func otherThanKubeInject(name string) string {
	switch {
	case strings.Contains(name, "cron"):
		return "kube-inject takes a CronJob's metadata of the job for the pod's; the webhook, and the function, do not"
	case name == "hello-ignore", name == "hello-2":
		return "kube-inject of old versions injects again, and what asks not to be injected"
	case name == "merge-probers":
		return "the webhook leaves settings of an earlier injection in the proxy; the function injects into the original"
	case name == "webhook-TestWebhookInject_replace":
		return "the webhook takes out whatever the status annotation lists; the function leaves containers that no template has, and warns"
	case strings.HasPrefix(name, "deploymentconfig"):
		return "the webhook, and the function, name the owner of a DeploymentConfig's pod by apiVersion v1, that of the ReplicationController between them"
	}
	return ""
}

// TestCorpusComesBack removes what was injected, without a record and with one, and counts the documents that come back byte
// for byte. Those that do not must have a warning, or differ in what no value shows.
func TestCorpusComesBack(t *testing.T) {
	total, exact := 0, map[v1alpha1.Record]int{}
	each(t, func(t *testing.T, c *conformance.Case, p *v1alpha1.InjectionPolicy, input []byte) {
		if strings.Contains(string(input), "sidecar.istio.io/status") {
			return // The original is not known.
		}
		items := parse(t, c.Input, input)
		total += len(items)
		for _, record := range []v1alpha1.Record{v1alpha1.RecordNone, v1alpha1.RecordWorkload, v1alpha1.RecordAnnotation} {
			inject, remove := *p, *p
			inject.Spec.Record, remove.Spec.Mode = record, v1alpha1.ModeRemove
			injected := run(t, &inject, items)
			back := run(t, &remove, injected.Items)
			for i, item := range back.Items {
				if bytes.Equal(item.Doc.Raw(), items[i].Doc.Raw()) {
					exact[record]++
				} else if !recorded(record, items[i].Doc) || sameObject(t, item.Doc, items[i].Doc) {
					continue
				} else {
					t.Errorf("with a record document %d came back as\n%s", i, cmp.Diff(string(items[i].Doc.Raw()), string(item.Doc.Raw())))
				}
			}
		}
	})
	t.Logf("of %d documents %d come back byte for byte without a record, %d with one at the workload, %d with one in the pod", total,
		exact[v1alpha1.RecordNone], exact[v1alpha1.RecordWorkload], exact[v1alpha1.RecordAnnotation])
}

// recorded reports whether there is a record of a document's pod: a Pod gets none at the workload.
func recorded(record v1alpha1.Record, doc *manifest.Document) bool {
	return record == v1alpha1.RecordAnnotation || record == v1alpha1.RecordWorkload && !doc.Contains("kind: Pod\n") && !doc.Contains(`"kind": "Pod"`) && !doc.Contains(`"kind":"Pod"`)
}

func sameObject(t *testing.T, a, b *manifest.Document) bool {
	t.Helper()
	x, errX := a.Object()
	y, errY := b.Object()
	if errX != nil || errY != nil {
		t.Fatal(errX, errY)
	}
	return cmp.Equal(prune(x), prune(y))
}

// prune leaves out what Kubernetes takes for not there.
func prune(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, v := range m {
		if v := prune(v); v != nil {
			out[k] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
