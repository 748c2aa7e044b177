// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"path/filepath"
)

// ArgoCD is the name of Argo CD for Build.
const ArgoCD = "argocd"

// ArgoCDVersion is the version of Argo CD, as in go.mod of the module that builds it; the build must be passed it.
const ArgoCDVersion = "3.2.0"

const argoCDModule = "github.com/argoproj/argo-cd/v3"

// ArgoCDManifests returns directories for kubectl apply -k, out of the module of Argo CD in the version that upstream/argocd pins: the
// CustomResourceDefinitions, and its configuration as it is installed.
func ArgoCDManifests(ctx context.Context, upstream string) ([]string, error) {
	var found struct{ Dir string }
	if err := goJSON(ctx, filepath.Join(upstream, "argocd"), &found, "list", "-m", "-json", argoCDModule); err != nil {
		return nil, err
	}
	manifests := filepath.Join(found.Dir, "manifests")
	return []string{filepath.Join(manifests, "crds"), filepath.Join(manifests, "base", "config")}, nil
}
