// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// Labels and annotations of meshes that a provider runs.
const (
	managedProxy  = "mesh.cloud.google.com/proxy"
	revisionLabel = "istio.io/rev"
)

// Revisions of meshes of providers. Source: cloud.google.com/service-mesh/docs/revisions-overview and learn.microsoft.com/azure/aks/istio-upgrade.
var (
	googleRevision = lazyregexp.New(`^asm-(managed(-rapid|-stable)?|[0-9]{3,5}-[0-9]+)$`)
	azureRevision  = lazyregexp.New(`^asm-1-[0-9]+$`)
)

// ManagedMesh returns the provider whose mesh runs the sidecars of a namespace, and the annotation or the label that shows it; "" for none. Their
// meshes have no ztunnel and no waypoints. Sources: cloud.google.com/service-mesh/docs/supported-features-managed, which lists the Gateway API as
// unsupported, and learn.microsoft.com/azure/aks/istio-about.
func ManagedMesh(labels, annotations map[string]string) (provider, annotation, label string) {
	if text := strings.ReplaceAll(annotations[managedProxy], " ", ""); strings.Contains(text, `"managed":true`) {
		return "Google's Cloud Service Mesh", managedProxy, ""
	}
	revision := labels[revisionLabel]
	switch {
	case googleRevision.MatchString(revision):
		return "Google's Cloud Service Mesh", "", revisionLabel
	case azureRevision.MatchString(revision):
		return "the Istio add-on of AKS", "", revisionLabel
	}
	return "", "", ""
}
