// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/internal/fluxtest"
	"github.com/prerig/prerig/pipeline/render"
)

// compareFlux compares the Kustomizations of each cluster with what Flux's own packages make of them, started at the same entry.
func (r *gitOps) compareFlux(t *testing.T) {
	t.Helper()
	for _, e := range r.entries {
		if e.Pipeline == nil || e.Pipeline.Spec.Build.Flux == nil {
			continue
		}
		plain := *e.Pipeline
		plain.Spec.Build.Releases = nil
		e.Pipeline = &plain
		rendered := r.renderer.All(t.Context(), []catalog.Entry{e})[0]
		kinds := r.of("Kustomization")
		if rendered.Built == nil || rendered.Built.Response == nil || rendered.Err != nil && len(rendered.Built.Failed) == 0 {
			kinds.add(classOf(rendered.Err.Error()), e.Key+": "+rendered.Err.Error())
			continue
		}
		response := rendered.Built.Response
		f := fluxCluster{r: r, source: plain.Spec.Build.Flux.Source, built: map[string][]map[string]any{}, failed: map[string]string{}, left: map[string]bool{}}
		f.walk(plain.Spec.Build.Flux)
		got := objectsOf(t, response)
		for _, failed := range response.Failed {
			reason := unitReason(response, failed)
			if f.failed[failed] != "" && classOf(reason) == "fail" {
				kinds.add("fail with Flux too", failed+": "+reason)
				continue
			}
			kinds.add(classOf(reason), failed+": "+reason)
		}
		for _, key := range f.order {
			switch {
			case slices.Contains(response.Failed, key):
			case f.failed[key] != "":
				kinds.add("fail with Flux only", key+": "+f.failed[key])
			default:
				r.compareUnit(key, got[key], f)
			}
		}
	}
}

// compareUnit compares the objects of one Kustomization.
func (r *gitOps) compareUnit(key string, got []map[string]any, f fluxCluster) {
	var want []map[string]any
	for _, one := range f.built[key] {
		if _, isFollowed := f.followed(one); !isFollowed {
			want = append(want, one)
		}
	}
	if difference := firstDifference(byIdentity(got), byIdentity(want)); difference != "" {
		r.of("Kustomization").add("differ", key+": "+difference)
		return
	}
	r.of("Kustomization").equal++
	for _, one := range got {
		if one["kind"] == "HelmRelease" {
			r.of("HelmRelease").equal++
		}
	}
}

// unitReason returns the first error of a unit.
func unitReason(response *render.Response, unit string) string {
	for _, one := range response.Results {
		if one.Severity == result.Error && one.Tags[render.TagUnit] == unit {
			return one.String()
		}
	}
	return "no reason"
}

// fluxCluster is what Flux's own packages make of a cluster.
type fluxCluster struct {
	r       *gitOps
	source  string
	order   []string
	built   map[string][]map[string]any
	failed  map[string]string
	left    map[string]bool
	cluster []map[string]any
}

// walk builds the Kustomization of the entry, those in its result, and so on. One that lacks a variable is tried again at the end.
func (f *fluxCluster) walk(at *v1alpha1.Flux) {
	namespace, name, _ := strings.Cut(at.Source, "/")
	entry := map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{"path": at.Path, "sourceRef": map[string]any{"kind": "GitRepository", "name": name}, "interval": "1m", "prune": true},
	}
	objects, err := f.build(entry)
	if err != nil {
		f.order, f.failed[at.Source] = append(f.order, at.Source), err.Error()
		return
	}
	for _, one := range objects {
		if k, ok := f.followed(one); ok && path.Join("/", k) == path.Join("/", at.Path) {
			entry = one
		}
	}
	queue := []map[string]any{entry}
	seen := map[string]bool{keyOfObject(entry): true}
	for tries := 0; len(queue) > 0 && tries < 3; tries++ {
		var again []map[string]any
		for len(queue) > 0 {
			k := queue[0]
			queue = queue[1:]
			key := keyOfObject(k)
			if !slices.Contains(f.order, key) {
				f.order = append(f.order, key)
			}
			objects, err := f.build(k)
			if err != nil {
				f.failed[key] = err.Error()
				again = append(again, k)
				continue
			}
			delete(f.failed, key)
			f.built[key] = objects
			for _, one := range objects {
				if _, ok := f.followed(one); ok && !seen[keyOfObject(one)] {
					seen[keyOfObject(one)] = true
					queue = append(queue, one)
				}
				if kind := one["kind"]; kind == "ConfigMap" || kind == "Secret" {
					f.cluster = append(f.cluster, one)
				}
			}
		}
		queue = again
	}
}

// build builds one Kustomization, and restores the files that Flux's packages change.
func (f *fluxCluster) build(k map[string]any) ([]map[string]any, error) {
	objects, err := fluxtest.Build(f.r.work, k, f.cluster)
	at, _ := f.followed(k)
	for _, arguments := range [][]string{{"checkout", "-q", "."}, {"clean", "-fdqx", "."}} {
		command := exec.Command("git", arguments...)
		command.Dir = filepath.Join(f.r.work, at)
		_ = command.Run() // a directory that does not exist
	}
	return objects, err
}

// followed returns the path of an object that is a Kustomization of this source.
func (f *fluxCluster) followed(object map[string]any) (at string, ok bool) {
	one := unstructured.Unstructured{Object: object}
	if one.GetKind() != "Kustomization" || !strings.HasPrefix(one.GetAPIVersion(), "kustomize.toolkit.fluxcd.io/") {
		return "", false
	}
	spec, _ := object["spec"].(map[string]any)
	ref, _ := spec["sourceRef"].(map[string]any)
	name, _ := ref["name"].(string)
	namespace, _ := ref["namespace"].(string)
	if namespace == "" {
		namespace = one.GetNamespace()
	}
	at, _ = spec["path"].(string)
	return at, namespace+"/"+name == f.source && spec["suspend"] != true && spec["kubeConfig"] == nil
}

func keyOfObject(object map[string]any) string {
	one := unstructured.Unstructured{Object: object}
	return one.GetNamespace() + "/" + one.GetName()
}
