// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/dir"
	sourcetree "github.com/prerig/prerig/pipeline/source/tree"
)

// argoCD is a running program that calls Argo CD's generators.
type argoCD struct {
	requests *json.Encoder
	answers  *json.Decoder
	failure  *bytes.Buffer
}

// ask returns the objects of an answer, or its error.
func (a *argoCD) ask(t *testing.T, kind string, object map[string]any) (objects []map[string]any, failure string) {
	t.Helper()
	field := map[string]string{"Application": "application", "ApplicationSet": "applicationSet"}[kind]
	must(t, a.requests.Encode(map[string]any{field: object, "kubeVersion": "1.36.0", "clusters": clustersFor(object)}))
	var answer struct {
		Objects []map[string]any `json:"objects"`
		Error   string           `json:"error"`
	}
	if err := a.answers.Decode(&answer); err != nil {
		text := a.failure.String()
		t.Fatalf("%s %s: %v: %s", kind, keyOfObject(object), err, text[max(0, len(text)-2000):])
	}
	return answer.Objects, answer.Error
}

// compareArgoCD compares what ApplicationSets generate, and what Applications deploy, with what Argo CD makes of them: those in files, and
// those that these make.
func (r *gitOps) compareArgoCD(t *testing.T, program string) {
	t.Helper()
	var queue []map[string]any
	for _, one := range r.files {
		if kind := one.value["kind"]; kind == "Application" || kind == "ApplicationSet" {
			queue = append(queue, one.value)
		}
	}
	if len(queue) == 0 {
		return
	}
	urls := map[string]bool{r.url: true}
	for _, e := range r.entries {
		if e.Pipeline != nil && e.Pipeline.Spec.Build.Releases != nil {
			for _, one := range e.Pipeline.Spec.Build.Releases.Repositories {
				urls[one.URL] = true
			}
		}
	}
	arguments := []string{r.work}
	for url := range urls {
		arguments = append(arguments, url)
	}
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), "ARGOCD_EXEC_TIMEOUT=60s")
	in, err := command.StdinPipe()
	must(t, err)
	out, err := command.StdoutPipe()
	must(t, err)
	t.Cleanup(func() {
		_ = in.Close()
		_ = command.Wait()
	})
	argo := &argoCD{json.NewEncoder(in), json.NewDecoder(out), &bytes.Buffer{}}
	command.Stderr = argo.failure
	must(t, command.Start())
	seen := map[string]bool{}
	for len(queue) > 0 {
		var batch []map[string]any
		for _, one := range queue {
			if key := one["kind"].(string) + " " + keyOfObject(one); !seen[key] {
				seen[key] = true
				batch = append(batch, one)
			}
		}
		queue = r.compareBatch(t, argo, batch, arguments[1:])
	}
}

// compareBatch compares objects, and returns those that they make.
func (r *gitOps) compareBatch(t *testing.T, argo *argoCD, batch []map[string]any, urls []string) (made []map[string]any) {
	t.Helper()
	const own = "prerig-test"
	must(t, os.MkdirAll(filepath.Join(r.work, own), 0o755))
	var entries []catalog.Entry
	for i, one := range batch {
		text, err := yaml.Marshal(one)
		must(t, err)
		name := fmt.Sprintf("%s/%d.yaml", own, i)
		must(t, os.WriteFile(filepath.Join(r.work, name), text, 0o644))
		var clusters []byte
		for _, secret := range clustersFor(one) {
			text, err := yaml.Marshal(secret)
			must(t, err)
			clusters = append(append(clusters, text...), "---\n"...)
		}
		must(t, os.WriteFile(filepath.Join(r.work, own, fmt.Sprintf("clusters-%d.yaml", i)), clusters, 0o644))
		entries = append(entries, r.entryOf(t, name, one, urls))
	}
	files, err := dir.Read(r.work, sourcetree.Limits{})
	must(t, err)
	must(t, os.RemoveAll(filepath.Join(r.work, own)))
	end := &end{snapshot: &source.Snapshot{Tree: files, URL: r.url, Revision: "dir@" + files.ID()}}
	r.renderer.Instead = end.supply
	for i, rendered := range r.renderer.All(t.Context(), entries) {
		object := batch[i]
		kind := object["kind"].(string)
		counts, what := r.of(kind), unitOfRelease(object)
		want, failure := argo.ask(t, kind, object)
		reason := ""
		switch {
		case rendered.Err != nil:
			reason = rendered.Err.Error()
		case slices.Contains(rendered.Built.Failed, what):
			reason = unitReason(rendered.Built.Response, what)
		}
		class := classOf(reason)
		switch {
		case reason != "" && class == "fail" && failure != "":
			counts.add("fail with Argo CD too", what+": "+reason)
		case reason != "":
			counts.add(class, what+": "+reason)
		case failure != "":
			counts.add("fail with Argo CD only", what+": "+failure)
		default:
			got := objectsOf(t, rendered.Built.Response)[what]
			for _, one := range got {
				if k := one["kind"]; k == "Application" || k == "ApplicationSet" {
					made = append(made, one)
				}
			}
			if difference := compareApplications(object, got, want); difference != "" {
				counts.add("differ", what+": "+difference)
				continue
			}
			counts.equal++
		}
	}
	return made
}

// unitOfRelease returns the unit of an Application or ApplicationSet.
func unitOfRelease(object map[string]any) string {
	one := unstructured.Unstructured{Object: object}
	namespace := one.GetNamespace()
	if namespace == "" {
		namespace = "default"
	}
	if one.GetKind() == "ApplicationSet" {
		return namespace + "/ApplicationSet " + one.GetName()
	}
	return namespace + "/" + one.GetName()
}

// entryOf returns a pipeline that renders one Application or ApplicationSet, and leaves what it makes alone.
func (r *gitOps) entryOf(t *testing.T, name string, object map[string]any, urls []string) catalog.Entry {
	t.Helper()
	p := v1alpha1.RenderPipeline{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Metadata: v1alpha1.Metadata{Name: strings.NewReplacer("/", "-", ".", "-").Replace(name)}}
	p.Spec.Source = v1alpha1.Source{Git: &v1alpha1.GitSource{URL: r.url}}
	releases := &v1alpha1.Releases{KubeVersion: "1.36.0", Namespace: "default", PerApplication: true, Impure: v1alpha1.ImpureEmpty, Lookup: v1alpha1.ImpureEmpty}
	for _, url := range urls {
		releases.Repositories = append(releases.Repositories, v1alpha1.ReleaseRepository{URL: url, Path: "."})
	}
	releases.Keep, releases.Originals = []v1alpha1.KeptObject{{Kind: "HelmRelease"}}, v1alpha1.OriginalsSuspend
	if object["kind"] == "ApplicationSet" {
		releases.Keep = append(releases.Keep, v1alpha1.KeptObject{Kind: "Application"})
		releases.Objects = []string{path.Join(path.Dir(name), "clusters-"+path.Base(name))}
	}
	p.Spec.Build = v1alpha1.Build{Path: name, Releases: releases}
	text, err := yaml.Marshal(p)
	must(t, err)
	return catalog.Parse(name, text)[0]
}

// annotationOfCluster is an annotation of a cluster that a template asks for.
var annotationOfCluster = regexp.MustCompile(`metadata\.(annotations|labels)\.([A-Za-z0-9_]+)|index \.metadata\.(annotations|labels) \\"([^"\\]+)`)

// clustersFor returns two clusters that an ApplicationSet selects, with all labels and annotations that it asks for: a repository does not
// have those of its clusters.
func clustersFor(object map[string]any) (secrets []map[string]any) {
	if object["kind"] != "ApplicationSet" {
		return nil
	}
	labels, annotations := map[string]any{"argocd.argoproj.io/secret-type": "cluster"}, map[string]any{}
	text, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	for _, found := range annotationOfCluster.FindAllStringSubmatch(string(text), -1) {
		of := map[string]map[string]any{"labels": labels, "annotations": annotations}[found[1]+found[3]]
		of[found[2]+found[4]] = "value"
	}
	var collect func(value any)
	collect = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			matching, _ := v["matchLabels"].(map[string]any)
			for key, one := range matching {
				labels[key] = one
			}
			if key, _ := v["key"].(string); key != "" && v["operator"] != "NotIn" && v["operator"] != "DoesNotExist" {
				labels[key] = "value"
				if values, _ := v["values"].([]any); len(values) > 0 {
					labels[key] = values[0]
				}
			}
			for _, one := range v {
				collect(one)
			}
		case []any:
			for _, one := range v {
				collect(one)
			}
		}
	}
	spec, _ := object["spec"].(map[string]any)
	collect(spec["generators"])
	for _, name := range []string{"east", "west"} {
		secrets = append(secrets, map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": "argocd", "labels": labels, "annotations": annotations},
			"stringData": map[string]any{"name": name, "server": "https://" + name + ".example.com"},
		})
	}
	return secrets
}

// compareApplications compares objects, but for what is no part of what Argo CD generates: the namespace of the destination, which the sync
// adds, tests, and the namespace that the sync creates.
func compareApplications(object map[string]any, got, want []map[string]any) string {
	spec, _ := object["spec"].(map[string]any)
	destination, _ := spec["destination"].(map[string]any)
	namespace, _ := destination["namespace"].(string)
	normal := func(list []map[string]any) (out []map[string]any) {
		for _, value := range list {
			one := unstructured.Unstructured{Object: value}
			hook := one.GetAnnotations()["helm.sh/hook"]
			if strings.HasPrefix(hook, "test") || one.GetKind() == "Namespace" && one.GetName() == namespace {
				continue
			}
			if one.GetAPIVersion() == "argoproj.io/v1alpha1" {
				delete(value, "status")
				withoutSuspension(value)
				value, _ = withoutZeros(value).(map[string]any) // Argo CD writes its own types
			}
			if n := one.GetNamespace(); n == namespace || n == "default" && namespace == "" {
				unstructured.RemoveNestedField(value, "metadata", "namespace")
			}
			unstructured.RemoveNestedField(value, "metadata", "creationTimestamp")
			out = append(out, value)
		}
		return out
	}
	return firstDifference(byIdentity(normal(got)), byIdentity(normal(want)))
}

// withoutSuspension takes out what originals: Suspend adds.
func withoutSuspension(value map[string]any) {
	for _, at := range [][]string{{"metadata", "annotations"}, {"spec", "template", "metadata", "annotations"}} {
		unstructured.RemoveNestedField(value, append(at, "argocd.argoproj.io/skip-reconcile")...)
	}
}

// withoutZeros returns a value without what is empty.
func withoutZeros(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, one := range v {
			if one = withoutZeros(one); one != nil {
				out[key] = one
			}
		}
		if len(out) > 0 {
			return out
		}
	case []any:
		for i := range v {
			v[i] = withoutZeros(v[i])
		}
		if len(v) > 0 {
			return v
		}
	case string, bool, float64, int64:
		if v != "" && v != false && v != 0.0 && v != int64(0) {
			return v
		}
	}
	return nil
}
