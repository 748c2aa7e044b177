// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package danger

import (
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// ownerDeleted finds objects that take along what their controller has applied, whether that is rendered or not.
//
// Source: kustomize-controller 1.9, internal/controller/kustomization_controller.go (finalize); helm-controller 1.6,
// internal/controller/helmrelease_controller.go (reconcileDelete); Argo CD 3.5, docs/user-guide/app_deletion.md and
// docs/operator-manual/applicationset/Application-Deletion.md.
func (c *change) ownerDeleted() {
	suspended := podmap.ValueAt(c.before, "spec", "suspend") == true
	switch {
	case c.is("kustomize.toolkit.fluxcd.io", "Kustomization") && !suspended:
		policy := podmap.TextAt(c.before, "spec", "deletionPolicy")
		prunes := podmap.ValueAt(c.before, "spec", "prune") == true
		if policy == "Delete" || policy == "WaitForTermination" || prunes && (policy == "" || policy == "MirrorPrune") {
			c.add("a Kustomization that prunes is deleted: what it has applied goes with it, except for what another one has taken over")
		}
	case c.is("helm.toolkit.fluxcd.io", "HelmRelease") && !suspended:
		c.add("a HelmRelease is deleted: its release is uninstalled, with all that it has installed")
	case c.is("argoproj.io", "Application") && HasFinalizer(podmap.ValueAt(c.before, "metadata")):
		c.add("an Application with a finalizer is deleted: what it has deployed goes with it, except for what another one has taken over")
	case c.is("argoproj.io", "ApplicationSet"):
		c.applicationSetDeleted()
	}
}

// applicationSetDeleted finds the Applications that go with their ApplicationSet.
func (c *change) applicationSetDeleted() {
	if Cascades(c.before) {
		c.add("an ApplicationSet is deleted: its Applications go with it, and what these have deployed")
	} else {
		c.add("an ApplicationSet is deleted: its Applications go with it, and what these have deployed stays in the cluster")
	}
}

// Cascades reports whether what the Applications of an ApplicationSet have deployed is deleted with them.
func Cascades(set map[string]any) bool {
	metadata := podmap.ValueAt(set, "spec", "template", "metadata")
	fields, _ := metadata.(map[string]any)
	finalizers := list(fields, "finalizers")
	if len(finalizers) == 0 {
		return podmap.ValueAt(set, "spec", "syncPolicy", "preserveResourcesOnDeletion") != true
	}
	return HasFinalizer(metadata)
}

// HasFinalizer reports whether the metadata of an Application have a finalizer by which Argo CD deletes what it has deployed.
func HasFinalizer(metadata any) bool {
	fields, _ := metadata.(map[string]any)
	for _, one := range list(fields, "finalizers") {
		name, _ := one.(string)
		if strings.HasPrefix(name, "resources-finalizer.argocd.argoproj.io") || name == "foreground-finalizer.argocd.argoproj.io" {
			return true
		}
	}
	return false
}
