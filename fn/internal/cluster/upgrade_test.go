// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/internal/oracle"
)

// TestUpgradeIsPredicted injects into many workloads, applies the result, upgrades the mesh beneath them while their owners edit some,
// and applies them again, server-side and as kubectl apply does. prerig gate --against must report exactly the updates that the API
// server rejects: with Jobs that keep their published injection, and with Jobs that follow the policy.
func TestUpgradeIsPredicted(t *testing.T) {
	if os.Getenv("PRERIG_UPGRADE") == "" {
		t.Skip("PRERIG_UPGRADE is not set; make e2e-upgrade runs this")
	}
	program := gateWithValidation(t)
	c := started(t, programs(t), Options{})
	upgrade := newUpgrade(t, c, program)
	workloads := withNames(generatedN(t, c, "default", setting(t, "PRERIG_UPGRADE_N", 300)))
	workloads = upgrade.applicable(t, workloads)
	before := upgrade.inject(t, workloads, upgrade.policy(t, "1.31.0", "KeepPublished"), "")
	published := upgrade.publish(t, before)
	t.Logf("of %d workloads prerig injects %d, and the API server takes %d of these", len(workloads), len(before), len(published.objects))
	if len(published.objects) < len(workloads)*3/4 {
		t.Errorf("only %d of %d workloads are there to be updated", len(published.objects), len(workloads))
	}
	edited := editSome(workloads, uint64(setting(t, "PRERIG_CLUSTER_SEED", 1)))
	for _, mode := range []string{"Follow", "KeepPublished"} {
		after := upgrade.inject(t, edited, upgrade.policy(t, "1.31.1", mode), published.file)
		upgrade.compare(t, mode, published.objects, after)
	}
}

// upgrade is a cluster whose workloads are injected by prerig.
type upgrade struct {
	*Cluster
	prerig     Prerig
	namespaces []oracle.Namespace
}

func newUpgrade(t *testing.T, c *Cluster, program string) *upgrade {
	t.Helper()
	all := oracle.Installations()
	i := all[slices.IndexFunc(all, func(i oracle.Installation) bool { return i.Name == "default" })]
	var names []string
	for _, n := range i.Namespaces() {
		if err := c.AddNamespace(t.Context(), n.Name, n.Labels, n.Annotations); err != nil {
			t.Fatal(err)
		}
		names = append(names, n.Name)
	}
	if err := c.Furnish(t.Context(), names, []string{"web", "old-name"}, "own"); err != nil {
		t.Fatal(err)
	}
	return &upgrade{c, Prerig{Program: program}, i.Namespaces()}
}

// applicable returns the workloads that the API server takes as their owners wrote them: the generator's mistakes are not the injection's.
func (u *upgrade) applicable(t *testing.T, workloads []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(workloads), func(w *unstructured.Unstructured) bool {
		err := u.apply(t.Context(), w, true)
		if err != nil {
			t.Logf("left out: %s: %v", nameOf(w), err)
		}
		return err != nil
	})
}

// policy writes the built-in policy with a tag and what it does with Jobs, and returns its path.
func (u *upgrade) policy(t *testing.T, tag, jobs string) string {
	t.Helper()
	var namespaces []any
	for _, n := range u.namespaces {
		one := map[string]any{"name": n.Name}
		if len(n.Labels) > 0 {
			one["labels"] = n.Labels
		}
		if len(n.Annotations) > 0 {
			one["annotations"] = n.Annotations
		}
		namespaces = append(namespaces, one)
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "prerig.dev/v1alpha1", "kind": "InjectionPolicy", "metadata": map[string]any{"name": "mesh"},
		"spec": map[string]any{
			"jobs": jobs, "namespaces": namespaces,
			"istio": map[string]any{"kubernetesVersion": kubernetesVersion(), "injector": map[string]any{
				"builtIn": "istio", "overrides": map[string]any{"global": map[string]any{"tag": tag}},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return writeTemporary(t, "policy.yaml", text)
}

func writeTemporary(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// inject injects into workloads, by their name; those that prerig rejects are left out. published, if not "", is a file.
func (u *upgrade) inject(t *testing.T, workloads []*unstructured.Unstructured, policy, published string) map[string]*unstructured.Unstructured {
	t.Helper()
	p := u.prerig
	p.Policy = policy
	if published != "" {
		p.Flags = []string{"--published", published}
	}
	injected, err := p.InjectAll(t.Context(), workloads)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*unstructured.Unstructured{}
	for _, obj := range injected {
		out[nameOf(obj)] = obj
	}
	return out
}

func nameOf(obj *unstructured.Unstructured) string {
	return obj.GetKind() + "/" + obj.GetNamespace() + "/" + obj.GetName()
}

// publication is what the cluster has taken.
type publication struct {
	objects map[string]*unstructured.Unstructured
	file    string
}

// publish applies objects and returns those that the API server accepts.
func (u *upgrade) publish(t *testing.T, objects map[string]*unstructured.Unstructured) publication {
	t.Helper()
	p := publication{map[string]*unstructured.Unstructured{}, ""}
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		obj := objects[name]
		if err := u.apply(t.Context(), obj, false); err != nil {
			t.Errorf("applying %s for the first time: %v", name, err)
			continue
		}
		p.objects[name] = obj
		one, err := yaml.Marshal(obj.Object)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, "---\n"...), one...)
	}
	p.file = writeTemporary(t, "published.yaml", text)
	return p
}

// apply applies an object server-side, as Flux does.
func (u *upgrade) apply(ctx context.Context, obj *unstructured.Unstructured, dry bool) error {
	resource, err := u.resourceInterfaceFor(obj)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: "prerig-test", Force: true}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = resource.Apply(ctx, obj.GetName(), obj, options)
	return err
}

// patch asks the API server about the patch that kubectl apply makes of what was applied last, what is to be and what is there.
func (u *upgrade) patch(ctx context.Context, before, after *unstructured.Unstructured) error {
	resource, err := u.resourceInterfaceFor(after)
	if err != nil {
		return err
	}
	live, err := resource.Get(ctx, after.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	typed, err := scheme.Scheme.New(after.GroupVersionKind())
	if err != nil {
		return err
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return err
	}
	var texts [3][]byte
	for i, obj := range []*unstructured.Unstructured{before, after, live} {
		if texts[i], err = json.Marshal(obj.Object); err != nil {
			return err
		}
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(texts[0], texts[1], texts[2], schema, true)
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, after.GetName(), types.StrategicMergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// compare has the API server and prerig gate judge the same updates.
func (u *upgrade) compare(t *testing.T, mode string, before, after map[string]*unstructured.Unstructured) {
	t.Helper()
	predicted := u.predict(t, before, after)
	rejected, wrong, once, kinds := 0, 0, 0, map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] == nil {
			continue
		}
		// A pull secret whose name is null is added again at each apply: such a Pod is rejected without any change.
		if u.apply(t.Context(), before[name], true) != nil {
			once++
			continue
		}
		refused := u.apply(t.Context(), after[name], true)
		if patched := u.patch(t.Context(), before[name], after[name]); (patched == nil) != (refused == nil) {
			t.Logf("%s, %s: server-side apply says %v, the patch of kubectl apply %v", mode, name, refused, patched)
		}
		if refused != nil {
			rejected++
			kinds[after[name].GetKind()]++
		}
		if (refused != nil) != predictsRejection(predicted[name]) {
			wrong++
			t.Errorf("%s, %s: the API server says %v, prerig gate finds %+v", mode, name, refused, predicted[name])
		}
		if apierrors.IsConflict(refused) {
			t.Errorf("%s: %v", name, refused)
		}
	}
	t.Logf("%s: of %d updates the API server rejects %d %v; prerig gate is wrong about %d; %d objects cannot be applied twice as they are",
		mode, len(after), rejected, kinds, wrong, once)
	if once*50 > len(after) {
		t.Errorf("%d of %d objects cannot be applied twice", once, len(after))
	}
	if mode == "Follow" && rejected == 0 {
		t.Error("the API server rejects nothing")
	}
}

// predictsRejection reports whether the findings name something that the API server rejects. An update that is rejected is a warning for a
// Job that its time to live deletes. Pods that differ from what their injection recorded can be applied.
func predictsRejection(found []gateFinding) bool {
	return slices.ContainsFunc(found, func(f gateFinding) bool {
		return f.Code == "update-rejected" || f.Code != "injection-altered" && hasErrors([]gateFinding{f})
	})
}

// predict returns the findings of prerig gate --against, by object.
func (u *upgrade) predict(t *testing.T, before, after map[string]*unstructured.Unstructured) map[string][]gateFinding {
	t.Helper()
	dirs := [2]string{t.TempDir(), t.TempDir()}
	names := slices.Sorted(maps.Keys(after))
	for i, objects := range []map[string]*unstructured.Unstructured{before, after} {
		for n, name := range names {
			if objects[name] == nil {
				continue
			}
			text, err := json.Marshal(objects[name].Object)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dirs[i], fmt.Sprintf("%06d.json", n)), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	command := exec.CommandContext(t.Context(), u.prerig.Program, "gate", "--as-is", "-o", "json", "--fail-on", "never",
		"--kubernetes-version", kubernetesVersion(), "--against", dirs[0], dirs[1])
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	var report struct {
		Results []gateFinding `json:"results"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	found := map[string][]gateFinding{}
	for _, f := range report.Results {
		var n int
		if _, err := fmt.Sscanf(filepath.Base(f.File), "%d.json", &n); err != nil {
			t.Fatalf("finding %+v: %v", f, err)
		}
		found[names[n]] = append(found[names[n]], f)
	}
	return found
}

// withNames returns the workloads that can be applied, which need a name.
func withNames(workloads []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(workloads), func(w *unstructured.Unstructured) bool { return w.GetName() == "" })
}

// edits are changes that owners make to workloads, some of which the API server rejects.
var edits = []func(w *unstructured.Unstructured) error{
	func(w *unstructured.Unstructured) error {
		return editTemplate(w, func(template map[string]any) error {
			containers, _, _ := unstructured.NestedSlice(template, "spec", "containers")
			if len(containers) == 0 {
				return nil
			}
			containers[0].(map[string]any)["image"] = "edited:1"
			return unstructured.SetNestedSlice(template, containers, "spec", "containers")
		})
	},
	func(w *unstructured.Unstructured) error {
		return editTemplate(w, func(template map[string]any) error {
			return unstructured.SetNestedField(template, int64(77), "spec", "terminationGracePeriodSeconds")
		})
	},
	func(w *unstructured.Unstructured) error {
		w.SetLabels(map[string]string{"edited": "yes"})
		return nil
	},
	func(w *unstructured.Unstructured) error {
		if w.GetKind() != "StatefulSet" {
			return nil
		}
		return unstructured.SetNestedField(w.Object, "another", "spec", "serviceName")
	},
	func(w *unstructured.Unstructured) error {
		if !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}, w.GetKind()) {
			return nil
		}
		if err := unstructured.SetNestedField(w.Object, "yes", "spec", "selector", "matchLabels", "edited"); err != nil {
			return err
		}
		return unstructured.SetNestedField(w.Object, "yes", "spec", "template", "metadata", "labels", "edited")
	},
	func(w *unstructured.Unstructured) error {
		switch w.GetKind() {
		case "Job":
			return unstructured.SetNestedField(w.Object, int64(7), "spec", "completions")
		case "CronJob":
			return unstructured.SetNestedField(w.Object, "7 * * * *", "spec", "schedule")
		case "Pod", "DaemonSet":
			return nil
		}
		return unstructured.SetNestedField(w.Object, int64(3), "spec", "replicas")
	},
}

// editTemplate changes the pod template of a workload, or a Pod itself.
func editTemplate(w *unstructured.Unstructured, edit func(template map[string]any) error) error {
	fields := []string{"spec", "template"}
	switch w.GetKind() {
	case "Pod":
		return edit(w.Object)
	case "CronJob":
		fields = []string{"spec", "jobTemplate", "spec", "template"}
	}
	template, found, err := unstructured.NestedMap(w.Object, fields...)
	if err != nil || !found {
		return err
	}
	if err := edit(template); err != nil {
		return err
	}
	return unstructured.SetNestedMap(w.Object, template, fields...)
}

// editSome returns copies of the workloads, of which a third are edited.
func editSome(workloads []*unstructured.Unstructured, seed uint64) []*unstructured.Unstructured {
	random := rand.New(rand.NewPCG(seed, 3))
	var out []*unstructured.Unstructured
	for _, w := range workloads {
		next := w.DeepCopy()
		if random.IntN(3) == 0 {
			if err := edits[random.IntN(len(edits))](next); err != nil {
				next = w.DeepCopy() // not a workload with that field
			}
		}
		out = append(out, next)
	}
	return out
}
