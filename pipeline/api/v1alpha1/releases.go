// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"path"
	"slices"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

// Releases enables the rendering of Flux's HelmReleases and Argo CD's Applications and ApplicationSets among the objects
// of a build, each in its place, and holds what they do not specify themselves.
type Releases struct {
	// KubeVersion is the version of Kubernetes that the releases are for, such as 1.33.4. An Application's own has precedence.
	KubeVersion string `json:"kubeVersion"`
	// APIVersions lists further APIs of .Capabilities.APIVersions, as GROUP/VERSION or GROUP/VERSION/KIND. Those of an Application
	// have precedence.
	APIVersions []string `json:"apiVersions,omitempty"`
	// Namespace is the namespace of objects without one: HelmReleases and what they refer to, if a Kustomization of
	// Flux sets it on them, and the destination of Applications without one. Without it such objects are errors.
	Namespace string `json:"namespace,omitempty"`
	// Destination is the cluster whose Applications are rendered, by its name or server in Argo CD; those of other clusters are left
	// out. Without it all Applications must have the same one, unless perApplication is set.
	Destination string `json:"destination,omitempty"`
	// PerApplication makes each Application a unit of its own, as Kustomizations of Flux are: what it deploys is in a directory
	// NAMESPACE/NAME, one that fails leaves the others alone, and they may be for several clusters.
	PerApplication bool `json:"perApplication,omitempty"`
	// Objects are the paths inside the source of files and directories with further objects that releases refer to:
	// HelmRepositories, OCIRepositories, GitRepositories, HelmCharts, ConfigMaps and Secrets, Argo CD's Secrets of clusters among
	// them, and definitions of custom resources. They are not part of the result. A directory with a kustomization is built by it.
	Objects []string `json:"objects,omitempty"`
	// Repositories maps Git repositories to the location of their files in the tree, whatever revision of them is
	// requested. Without an entry a repository is one of the pipeline's sources, at the branch, tag or commit that
	// this follows.
	Repositories []ReleaseRepository `json:"repositories,omitempty"`
	// Keep lists objects that are not rendered, and stay in the result as they are.
	Keep []KeptObject `json:"keep,omitempty"`
	// Originals is what becomes of the HelmReleases and Applications that are rendered: Drop (the default) leaves them out of the
	// result, so that no controller installs them too; Suspend keeps them, marked so that their controllers leave them and what
	// they have installed alone.
	// +enum=Drop,Suspend
	Originals ReleaseOriginals `json:"originals,omitempty"`
	// Hooks is Keep (the default: hooks are rendered with their annotations, which Argo CD follows and all other
	// tools treat as ordinary objects), Drop or Refuse. Tests are left out in any case.
	// +enum=Keep,Drop,Refuse
	Hooks HelmHooks `json:"hooks,omitempty"`
	// Lookup is what the function lookup does: Refuse (the default) stops the render, Empty finds no objects, Captured
	// finds the objects of a file.
	// +enum=Refuse,Empty,Captured
	Lookup HelmImpure `json:"lookup,omitempty"`
	// Captured is the path inside the source of the objects that lookup finds, with lookup: Captured.
	Captured string `json:"captured,omitempty"`
	// Impure is how other functions with varying results are handled if they affect the result: Refuse (the
	// default) stops the render, and Empty makes them return empty values.
	// +enum=Refuse,Empty
	Impure HelmImpure `json:"impure,omitempty"`
}

// ReleaseRepository is a Git repository whose files are in the tree.
type ReleaseRepository struct {
	// URL of the repository, as GitRepositories and Applications may name it: https, ssh and the short form of ssh are the same.
	URL string `json:"url"`
	// Path of its root in the tree: . for that of the source, or the mountPath of a further source.
	Path string `json:"path"`
}

// KeptObject names objects by patterns such as legacy-*.
type KeptObject struct {
	// Kind is HelmRelease, Application or ApplicationSet.
	// +enum=HelmRelease,Application,ApplicationSet
	Kind string `json:"kind"`
	// Namespace of the objects; any by default.
	Namespace string `json:"namespace,omitempty"`
	// Name of the objects; any by default.
	Name string `json:"name,omitempty"`
}

// Matches reports whether the entry means an object.
func (k KeptObject) Matches(kind, namespace, name string) bool {
	matches := func(pattern, value string) bool {
		ok, err := path.Match(pattern, value)
		return pattern == "" || err == nil && ok
	}
	return k.Kind == kind && matches(k.Namespace, namespace) && matches(k.Name, name)
}

// ReleaseOriginals is how rendered objects themselves are handled.
type ReleaseOriginals string

// What becomes of objects that are rendered.
const (
	OriginalsDrop    ReleaseOriginals = "Drop"
	OriginalsSuspend ReleaseOriginals = "Suspend"
)

// KeptKinds are the kinds that can be kept.
var KeptKinds = []string{"HelmRelease", "Application", "ApplicationSet"}

func (r *Releases) setDefaults() {
	setDefault(&r.Originals, OriginalsDrop)
	setDefault(&r.Hooks, HooksKeep)
	setDefault(&r.Lookup, ImpureRefuse)
	setDefault(&r.Impure, ImpureRefuse)
}

func (r *Releases) checkReleases(v *validator, at string) {
	if r == nil {
		return
	}
	if minor, ok := (&Helm{KubeVersion: r.KubeVersion}).KubeMinor(); !ok || minor < OldestKubeMinor {
		v.addError(at+".kubeVersion", "must be a version of Kubernetes from 1.%d on, such as 1.33.4, found %q", OldestKubeMinor, r.KubeVersion)
	}
	if r.Namespace != "" && !labelRule.MatchString(r.Namespace) {
		v.addError(at+".namespace", "must be the name of a namespace, found %q", r.Namespace)
	}
	for i, name := range r.Objects {
		at := fmt.Sprintf("%s.objects[%d]", at, i)
		if name == "" {
			v.addError(at, "must not be empty")
		}
		v.checkPath(at, name)
	}
	for i, one := range r.Repositories {
		at := fmt.Sprintf("%s.repositories[%d]", at, i)
		v.addProblems(at+".url", giturl.Check(one.URL))
		if one.Path == "" {
			v.addError(at+".path", "must be given: . for the root of the source, or the mountPath of a further source")
		}
		v.checkPath(at+".path", one.Path)
		if slices.ContainsFunc(r.Repositories[:i], func(o ReleaseRepository) bool { return giturl.Same(o.URL, one.URL) }) {
			v.addError(at+".url", "is given twice")
		}
	}
	for i, one := range r.Keep {
		at := fmt.Sprintf("%s.keep[%d]", at, i)
		v.checkEnum(at+".kind", one.Kind, KeptKinds...)
		for key, pattern := range map[string]string{"namespace": one.Namespace, "name": one.Name} {
			if _, err := path.Match(pattern, ""); err != nil {
				v.addError(at+"."+key, "%q is not a pattern such as legacy-*", pattern)
			}
		}
	}
	v.checkEnum(at+".originals", string(r.Originals), "Drop", "Suspend")
	v.checkEnum(at+".hooks", string(r.Hooks), "Keep", "Drop", "Refuse")
	hermetic{r.Lookup, r.Captured, r.Impure}.check(v, at)
}
