// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
)

// Flux is where Flux starts with a cluster. The Kustomizations (kustomize.toolkit.fluxcd.io) found from there are built as
// kustomize-controller builds them, each on its own and to a directory of its own, NAMESPACE/NAME.
type Flux struct {
	// Path is the directory inside the source that the cluster starts with, such as clusters/production: that of flux
	// bootstrap, of a FluxInstance, or of the first Kustomization.
	Path string `json:"path"`
	// Source is NAMESPACE/NAME of the object by which the cluster fetches this source: Kustomizations that name it are in
	// this source, whether the object is in the tree or not. The default is flux-system/flux-system. Others are found by
	// the URL of their GitRepository, among the pipeline's sources.
	Source string `json:"source,omitempty"`
}

// DefaultFluxSource is the name that flux bootstrap and the operator of Flux give to the source of a cluster.
const DefaultFluxSource = "flux-system/flux-system"

func (v *validator) checkFlux(build Build) {
	const at = "spec.build.flux"
	flux := build.Flux
	if build.Type != BuildFlux {
		if flux != nil {
			v.addError(at, "is for type Flux, and type is %s", build.Type)
		}
		return
	}
	if flux == nil {
		v.addError(at, "must be given with type Flux")
		return
	}
	if build.Path != "." {
		v.addError("spec.build.path", "must be omitted with type Flux: flux.path names the cluster's entry point")
	}
	if flux.Path == "" {
		v.addError(at+".path", "must be given: the directory that the cluster starts with, such as clusters/production")
	}
	v.checkPath(at+".path", flux.Path)
	namespace, name, _ := strings.Cut(flux.Source, "/")
	if !nameRule.MatchString(namespace) || !nameRule.MatchString(name) {
		v.addError(at+".source", "must be NAMESPACE/NAME, found %q", flux.Source)
	}
}
