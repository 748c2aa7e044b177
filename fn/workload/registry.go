// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// Kind is a kind of object that holds pod templates.
type Kind struct {
	// Group of the kind, empty for the core group.
	Group string
	// Version, or empty for every version of the group.
	Version string
	// Kind of the object.
	Kind string
	// Paths are where the templates are. A bare pod has one empty path: it is the object itself.
	Paths []Path

	owner ownerRule
}

// Registry finds the kinds that hold pod templates. It does not change after NewRegistry and may be used by any number
// of goroutines.
type Registry struct {
	kinds map[string][]Kind
}

// NewRegistry returns the built-in kinds and the custom ones. A custom kind replaces a built-in one of the same
// group, version and kind; several custom entries for one kind add up to several templates. Errors name the entry
// and what is wrong with it.
func NewRegistry(custom []v1alpha1.WorkloadKind) (*Registry, error) {
	added := map[string][]Kind{}
	for i, w := range custom {
		k, err := customKind(w)
		if err != nil {
			return nil, fmt.Errorf("reading workloads[%d]: %w", i, err)
		}
		added[k.Kind] = addKind(added[k.Kind], k)
	}
	r := &Registry{kinds: added}
	for _, k := range builtIn() {
		r.kinds[k.Kind] = append(r.kinds[k.Kind], k)
	}
	return r, nil
}

// addKind adds a kind to the list, or its paths to the kind's existing entry.
func addKind(list []Kind, k Kind) []Kind {
	for i := range list {
		if list[i].Group == k.Group && list[i].Version == k.Version {
			for _, p := range list[i].Paths {
				if p.String() == k.Paths[0].String() {
					return list // Several policies name the same place.
				}
			}
			list[i].Paths = append(list[i].Paths, k.Paths...)
			return list
		}
	}
	return append(list, k)
}

func customKind(w v1alpha1.WorkloadKind) (Kind, error) {
	if w.Kind == "" {
		return Kind{}, fmt.Errorf("kind: is empty")
	}
	group, version, err := w.GroupVersion()
	if err != nil {
		return Kind{}, fmt.Errorf("apiVersion of %s: %w", w.Kind, err)
	}
	path, err := ParsePath(w.PodTemplate)
	if err != nil {
		return Kind{}, fmt.Errorf("podTemplate of %s: %w", w.Kind, err)
	}
	path.Optional = path.hasLists()
	k := Kind{Group: group, Version: version, Kind: w.Kind, Paths: []Path{path}}
	if w.Owner != nil {
		k.owner = ownerRule{apiVersion: w.Owner.APIVersion, kind: w.Owner.Kind, name: w.Owner.Name}
	}
	return k, nil
}

// Lookup finds a kind by the manifest's apiVersion and kind; false means that the object holds no pod template. It
// is cheap enough to be called for every object.
func (r *Registry) Lookup(apiVersion, kind string) (Kind, bool) {
	list := r.kinds[kind]
	if len(list) == 0 {
		return Kind{}, false
	}
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, version = "", apiVersion
	}
	for _, k := range list {
		if k.Group == group && version != "" && (k.Version == "" || k.Version == version) {
			return k, true
		}
	}
	return Kind{}, false
}

// builtIn lists the kinds that need no table in the policy: Kubernetes' own kinds in every API group and version
// that ever had them, OpenShift's DeploymentConfig (also as the group-less v1 of OpenShift 3), Argo Rollouts, and
// OpenKruise. It has only kinds whose template is a whole pod template and whose pods' controller is known; a
// Knative Service, for one, has only a part of a pod and is left to Knative.
func builtIn() []Kind {
	template := func(parts ...string) []Path { return []Path{newPath(parts...)} }
	spec := template("spec", "template")
	const (
		extensions = "extensions"
		apps       = "apps"
		batch      = "batch"
		kruise     = "apps.kruise.io"
	)
	return []Kind{
		{Kind: "Pod", Version: "v1", Paths: []Path{{}}, owner: ownerRule{pod: true}},
		{Kind: "PodTemplate", Version: "v1", Paths: template("template")},
		{Kind: "ReplicationController", Version: "v1", Paths: spec, owner: ownerRule{apiVersion: "v1"}},
		{Group: apps, Kind: "Deployment", Paths: spec, owner: ownerRule{apiVersion: "apps/v1"}},
		{Group: extensions, Kind: "Deployment", Paths: spec, owner: ownerRule{apiVersion: "apps/v1"}},
		{Group: apps, Kind: "ReplicaSet", Paths: spec, owner: ownerRule{apiVersion: "apps/v1"}},
		{Group: extensions, Kind: "ReplicaSet", Paths: spec, owner: ownerRule{apiVersion: "apps/v1"}},
		{Group: apps, Kind: "DaemonSet", Paths: spec, owner: ownerRule{apiVersion: "apps/v1"}},
		{Group: extensions, Kind: "DaemonSet", Paths: spec, owner: ownerRule{apiVersion: "apps/v1"}},
		{Group: apps, Kind: "StatefulSet", Paths: spec, owner: ownerRule{apiVersion: "apps/v1"}},
		{Group: batch, Kind: "Job", Paths: spec, owner: ownerRule{apiVersion: "batch/v1"}},
		{Group: extensions, Kind: "Job", Paths: spec, owner: ownerRule{apiVersion: "batch/v1"}},
		{Group: batch, Kind: "CronJob", Paths: template("spec", "jobTemplate", "spec", "template"),
			owner: ownerRule{apiVersion: "batch/v1"}},
		{Group: "apps.openshift.io", Kind: "DeploymentConfig", Paths: spec, owner: ownerRule{apiVersion: "v1"}},
		{Kind: "DeploymentConfig", Version: "v1", Paths: spec, owner: ownerRule{apiVersion: "v1"}},
		{Group: "argoproj.io", Kind: "Rollout", Paths: []Path{{parts: spec[0].parts, elsewhere: "spec.workloadRef"}},
			owner: ownerRule{apiVersion: "v1alpha1"}},
		{Group: kruise, Kind: "CloneSet", Paths: spec},
		{Group: kruise, Kind: "StatefulSet", Paths: spec, owner: ownerRule{apiVersion: "apps.kruise.io/v1beta1"}},
		{Group: kruise, Kind: "DaemonSet", Paths: spec},
		{Group: kruise, Kind: "BroadcastJob", Paths: spec},
	}
}
