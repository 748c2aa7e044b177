// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/workload"
)

// Controller is the workload whose controller makes the pods, as its manifest names it. The zero value is a Pod's, whose
// metadata is all in its manifest.
type Controller struct {
	workload.Owner
	// NameGenerated reports whether the API server completes the workload's name.
	NameGenerated bool
	// Indexed reports whether pod names contain an index, as those of an Indexed Job do.
	Indexed bool
}

// directControllers are the API versions in the references to controllers that make pods themselves, by kind (source: the
// constants controllerKind in pkg/controller of Kubernetes 1.36). Pods of other kinds belong to an object that exists in the
// cluster only, such as a Deployment's ReplicaSet.
var directControllers = map[string]string{
	"DaemonSet": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1", "ReplicationController": "v1",
}

// isPod reports whether no controller makes the pod.
func (c Controller) isPod() bool { return c.Kind == "" }

// apiVersion returns the API version in the reference to the controller, or "" if the pods have another controller.
func (c Controller) apiVersion() string {
	if c.NameGenerated || c.Name == "" {
		return ""
	}
	known := directControllers[c.Kind]
	group := groupOf(c.APIVersion)
	if known != "" && group != "" && groupOf(known) != group {
		return "" // a kind of the same name in another group
	}
	return known
}

// groupOf returns the group of an API version, "" for the core group.
func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// addController sets in a pod's metadata what its controller sets and what is known of it: the reference to the controller
// without its uid, and the beginning of the pod's name (source: GetPodFromTemplate in pkg/controller/controller_utils.go of
// Kubernetes 1.36).
func (c Controller) addController(meta *metav1.ObjectMeta) {
	if c.isPod() {
		return
	}
	meta.GenerateName, meta.OwnerReferences = "", nil
	apiVersion := c.apiVersion()
	if apiVersion == "" {
		return
	}
	yes := true
	meta.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: c.Kind, Name: c.Name, Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	if !c.Indexed {
		meta.GenerateName = c.Name + "-"
	}
}

// warnOfController warns of a template that reads what only the cluster knows of a pod's controller.
func warnOfController(t *istio.Template, c Controller, warn *warnings) {
	generateName, owners := t.ReadsController()
	known := c.apiVersion() != ""
	unknown := ""
	switch {
	case c.isPod():
		return
	case generateName && (!known || c.Indexed):
		unknown = ".ObjectMeta.GenerateName"
	case owners && !known:
		unknown = ".ObjectMeta.OwnerReferences"
	default:
		return
	}
	warn.addf("the template %q reads %s, which is empty here: pods of a %s get it in the cluster only; "+
		"read .DeploymentMeta.Name and .TypeMeta.Kind instead", t.Name(), unknown, c.Kind)
}

// dropIdentity removes from a template's patch what no manifest can set on a pod: its name, namespace and status.
// The webhook sets a name, so a second pod of the workload fails; a namespace is an error of the API server, which
// rejects the pod (source: BeforeCreate in pkg/registry/rest/create.go of k8s.io/apiserver); and a status is reset
// when a pod is created. It modifies the patch.
func dropIdentity(t *istio.Template, patch map[string]any, p *pod, namespace string, warn *warnings) error {
	delete(patch, "status")
	meta, _ := patch["metadata"].(map[string]any)
	own := map[string]string{"namespace": namespace}
	for _, key := range []string{"name", "generateName"} {
		own[key], _ = p.meta[key].(string)
	}
	for _, key := range []string{"name", "generateName", "namespace"} {
		written, there := meta[key]
		delete(meta, key)
		text, _ := written.(string)
		if !there || text == "" || text == own[key] {
			continue
		}
		if key == "namespace" {
			if own[key] == "" {
				continue
			}
			return &gotemplate.Error{Template: t.Name(), Err: fmt.Errorf(
				"metadata.namespace is %q and the pod's is %q: the API server refuses a pod whose namespace a webhook changes; take the field out of the template", text, own[key])}
		}
		warn.addf("the template %q sets metadata.%s, which is ignored: it would name every pod of a workload, "+
			"and a manifest gets no other name by injection; take the field out of the template", t.Name(), key)
	}
	return nil
}
