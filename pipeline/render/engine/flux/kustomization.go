// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/engine/release"
)

// Group is the API group of Flux's Kustomizations.
const Group = "kustomize.toolkit.fluxcd.io"

// knownVersions are the versions whose fields are those of v1.
var knownVersions = []string{"v1", "v1beta2"}

// Kustomization is one of Flux's.
type Kustomization struct {
	// Object is what was read.
	Object *release.Object
	// Namespace and Name are its identity.
	Namespace, Name string
	// Spec is its specification.
	Spec kustomizev1.KustomizationSpec
}

// Key returns NAMESPACE/NAME.
func (k *Kustomization) Key() string { return k.Namespace + "/" + k.Name }

// IsKustomization reports whether an object of a group and kind is one of Flux's Kustomizations.
func IsKustomization(apiVersion, kind string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group == Group && kind == kustomizev1.KustomizationKind
}

// ReadKustomization reads an object. Fields that have no effect are warnings.
func ReadKustomization(o *release.Object) (*Kustomization, result.Results, error) {
	ref := o.Ref()
	k := &Kustomization{Object: o, Namespace: ref.Namespace, Name: ref.Name}
	if k.Name == "" {
		return nil, nil, release.FieldError(o, "metadata.name", "must be given")
	}
	if k.Namespace == "" {
		return nil, nil, release.FieldError(o, "metadata.namespace", "is missing, and sources and variables are looked up in it; set it")
	}
	if version := strings.TrimPrefix(ref.APIVersion, Group+"/"); !slices.Contains(knownVersions, version) {
		return nil, nil, release.FieldError(o, "apiVersion", "version %s is not read; move it to %s/v1", version, Group)
	}
	var typed kustomizev1.Kustomization
	unknown, err := release.DecodeObject(o, &typed)
	if err != nil {
		return nil, nil, err
	}
	var warnings result.Results
	for _, field := range unknown {
		warnings = append(warnings, release.Finding(result.Warning, o, field, "is no field of a Kustomization, and has no effect"))
	}
	k.Spec = typed.Spec
	return k, warnings, nil
}
