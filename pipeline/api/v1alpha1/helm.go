// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// Helm is a release of a chart. Everything that the result depends on is in this object or in the source: the
// result does not depend on a cluster, a clock or the program that renders.
type Helm struct {
	// Chart is the path of the chart inside the source: a directory, or an archive made by helm package (.tgz). Its
	// dependencies must be in its charts directory, or locked. With repository it is the chart's name in the
	// repository.
	Chart string `json:"chart"`
	// Repository is the URL of the chart repository that the chart is in, https:// or http://, or oci:// without
	// the chart's name. The source's ChartLock holds the version to use, and the digest of its archive.
	Repository string `json:"repository,omitempty"`
	// Version of the chart in the repository: exact, or a range such as ^1.2.0. The default is any version.
	Version string `json:"version,omitempty"`
	// ReleaseName is .Release.Name. The default is the pipeline's name.
	ReleaseName string `json:"releaseName,omitempty"`
	// Namespace is .Release.Namespace. It is written into objects only where the chart does so, as with helm template.
	Namespace string `json:"namespace"`
	// KubeVersion is the version of Kubernetes that the release is for, such as 1.33.4: .Capabilities.KubeVersion, and the
	// versions of Kubernetes' own APIs in .Capabilities.APIVersions.
	KubeVersion string `json:"kubeVersion"`
	// APIVersions lists further APIs of .Capabilities.APIVersions, as GROUP/VERSION or GROUP/VERSION/KIND.
	APIVersions []string `json:"apiVersions,omitempty"`
	// ValuesFiles are the paths inside the source of files with values. A later one has precedence.
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	// Values have precedence over those of files.
	Values map[string]any `json:"values,omitempty"`
	// IncludeCRDs controls whether the content of the chart's crds directories is rendered too, before all other
	// objects. The default is true.
	IncludeCRDs *bool `json:"includeCRDs,omitempty"`
	// SkipSchemaValidation does not compare the values with the schemas of the charts. It is for schemas that refer to
	// others by URL, which are not fetched.
	SkipSchemaValidation bool `json:"skipSchemaValidation,omitempty"`
	// Hooks is Keep (the default: hooks are rendered with their annotations, which Argo CD follows and all other
	// tools treat as ordinary objects), Drop or Refuse. Tests are left out in any case.
	// +enum=Keep,Drop,Refuse
	Hooks HelmHooks `json:"hooks,omitempty"`
	// Lookup is what the function lookup does: Refuse (the default) stops the render, Empty finds no objects, as helm
	// template does, and Captured finds the objects of a file.
	// +enum=Refuse,Empty,Captured
	Lookup HelmImpure `json:"lookup,omitempty"`
	// Captured is the path inside the source of the objects that lookup finds, with lookup: Captured. The file has documents of
	// YAML, or lists, as kubectl get -o yaml prints them.
	Captured string `json:"captured,omitempty"`
	// Impure is how other functions with varying results, such as now, randAlphaNum and genCA, are handled if they
	// affect the result: Refuse (the default) stops the render, and Empty makes them return empty values.
	// +enum=Refuse,Empty
	Impure HelmImpure `json:"impure,omitempty"`
}

// HelmCharts is what the helmCharts of kustomizations are rendered with. Fields of an entry have precedence.
type HelmCharts struct {
	// KubeVersion is the version of Kubernetes for entries without kubeVersion, such as 1.33.4.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// APIVersions lists further APIs for entries without apiVersions, as GROUP/VERSION or GROUP/VERSION/KIND.
	APIVersions []string `json:"apiVersions,omitempty"`
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

// HelmHooks is how hooks are handled.
type HelmHooks string

// What becomes of hooks.
const (
	HooksKeep   HelmHooks = "Keep"
	HooksDrop   HelmHooks = "Drop"
	HooksRefuse HelmHooks = "Refuse"
)

// HelmImpure is how template functions that do not depend on their arguments alone are handled.
type HelmImpure string

// What such functions do.
const (
	ImpureRefuse HelmImpure = "Refuse"
	ImpureEmpty  HelmImpure = "Empty"
	// LookupCaptured is for lookup only.
	LookupCaptured HelmImpure = "Captured"
)

// OldestKubeMinor is the oldest minor version of Kubernetes 1 that a release can be for.
const OldestKubeMinor = 16

// setDefaults sets what a user may leave out.
func (h *Helm) setDefaults(p *RenderPipeline) {
	setDefault(&h.ReleaseName, p.Metadata.Name)
	setDefault(&h.Hooks, HooksKeep)
	setDefault(&h.Lookup, ImpureRefuse)
	setDefault(&h.Impure, ImpureRefuse)
	if h.IncludeCRDs == nil {
		include := true
		h.IncludeCRDs = &include
	}
}

var (
	releaseRule     = lazyregexp.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	labelRule       = lazyregexp.New(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	kubeVersionRule = lazyregexp.New(`^v?1\.([0-9]{1,3})(\.[0-9]+)?([-+][0-9A-Za-z.+-]+)?$`)
)

// KubeMinor returns the minor version of KubeVersion; ok is false where it is not a version of Kubernetes 1.
func (h *Helm) KubeMinor() (minor int, ok bool) {
	match := kubeVersionRule.FindStringSubmatch(h.KubeVersion)
	if match == nil {
		return 0, false
	}
	minor, err := strconv.Atoi(match[1])
	return minor, err == nil
}

// maxReleaseName is Helm's, so that charts have room for what they append.
const maxReleaseName = 53

// checkHelmCharts checks what helmCharts are rendered with.
func (v *validator) checkHelmCharts(at string, build Build) {
	charts := build.HelmCharts
	if charts == nil {
		return
	}
	if build.Type != BuildAuto && build.Type != BuildKustomize {
		v.addError(at, "is for kustomizations, and type is %s", build.Type)
	}
	minor, ok := (&Helm{KubeVersion: charts.KubeVersion}).KubeMinor()
	if charts.KubeVersion != "" && (!ok || minor < OldestKubeMinor) {
		v.addError(at+".kubeVersion", "must be a version of Kubernetes from 1.%d on, such as 1.33.4, found %q", OldestKubeMinor, charts.KubeVersion)
	}
	hermetic{charts.Lookup, charts.Captured, charts.Impure}.check(v, at)
}

func (v *validator) checkHelm(build Build) {
	const at = "spec.build.helm"
	helm := build.Helm
	if build.Type != BuildHelm {
		if helm != nil {
			v.addError(at, "is for type Helm, and type is %s", build.Type)
		}
		return
	}
	if helm == nil {
		v.addError(at, "must be given with type Helm")
		return
	}
	if build.Path != "." {
		v.addError("spec.build.path", "must be omitted with type Helm: helm.chart names the chart")
	}
	if len(build.Functions) > 0 {
		v.addError("spec.build.functions", "is for kustomizations and Kptfiles, and type is Helm")
	}
	if helm.Chart == "" {
		v.addError(at+".chart", "must be given: the path of a chart inside the source")
	}
	v.checkHelmRepository(at, helm)
	for i, name := range helm.ValuesFiles {
		if name == "" {
			v.addError(fmt.Sprintf("%s.valuesFiles[%d]", at, i), "must not be empty")
		}
		v.checkPath(fmt.Sprintf("%s.valuesFiles[%d]", at, i), name)
	}
	if len(helm.ReleaseName) > maxReleaseName || !releaseRule.MatchString(helm.ReleaseName) {
		v.addError(at+".releaseName", "must be at most %d lower case letters, digits, '-' and '.', found %q", maxReleaseName, helm.ReleaseName)
	}
	if !labelRule.MatchString(helm.Namespace) {
		v.addError(at+".namespace", "must be the name of a namespace, found %q", helm.Namespace)
	}
	if minor, ok := helm.KubeMinor(); !ok || minor < OldestKubeMinor {
		v.addError(at+".kubeVersion", "must be a version of Kubernetes from 1.%d on, such as 1.33.4, found %q", OldestKubeMinor, helm.KubeVersion)
	}
	v.checkEnum(at+".hooks", string(helm.Hooks), "Keep", "Drop", "Refuse")
	hermetic{helm.Lookup, helm.Captured, helm.Impure}.check(v, at)
}

// hermetic holds a release's settings for functions that do not depend on their arguments alone.
type hermetic struct {
	lookup   HelmImpure
	captured string
	impure   HelmImpure
}

func (h hermetic) check(v *validator, at string) {
	v.checkEnum(at+".lookup", string(h.lookup), "Refuse", "Empty", "Captured")
	v.checkEnum(at+".impure", string(h.impure), "Refuse", "Empty")
	v.checkPath(at+".captured", h.captured)
	captured := h.lookup == LookupCaptured
	switch {
	case captured && h.captured == "":
		v.addError(at+".captured", "must be given with lookup: Captured: the path of a file with objects")
	case !captured && h.captured != "":
		v.addError(at+".captured", "is for lookup: Captured, and lookup is %s", cmp.Or(h.lookup, ImpureRefuse))
	case captured && !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(h.captured)):
		v.addError(at+".captured", "must be a file of YAML or JSON (.yaml, .yml or .json), found %q", h.captured)
	}
}
