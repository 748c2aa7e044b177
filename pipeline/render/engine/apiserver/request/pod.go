// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/prerig/prerig/fn/workload"
)

// PodKind is how the API server serves pods.
var PodKind = Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Namespaced: true, Status: true}

// templates are where the kinds of the API have pod templates.
var templates = map[schema.GroupKind][]string{
	{Kind: "PodTemplate"}:                {"template"},
	{Kind: "ReplicationController"}:      {"spec", "template"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template"},
}

// controllers are the service accounts that make the pods of a kind, as kube-controller-manager has it with
// --use-service-account-credentials.
var controllers = map[schema.GroupKind]string{
	{Kind: "ReplicationController"}:      "replication-controller",
	{Group: "apps", Kind: "Deployment"}:  "replicaset-controller",
	{Group: "apps", Kind: "ReplicaSet"}:  "replicaset-controller",
	{Group: "apps", Kind: "StatefulSet"}: "statefulset-controller",
	{Group: "apps", Kind: "DaemonSet"}:   "daemon-set-controller",
	{Group: "batch", Kind: "Job"}:        "job-controller",
	{Group: "batch", Kind: "CronJob"}:    "job-controller",
}

// makers are the kinds of the objects between some workloads and their pods.
var makers = map[string]string{"Deployment": "ReplicaSet", "CronJob": "Job"}

// defaultPods sets the defaults of a pod or of a pod template.
func (m *Maker) defaultPods(object map[string]any, kind schema.GroupVersionKind) {
	if kind == PodKind.GroupVersionKind {
		m.Server.Default(object)
		return
	}
	path, ok := templates[kind.GroupKind()]
	if !ok {
		return
	}
	template := object
	for _, key := range path {
		if template, ok = template[key].(map[string]any); !ok {
			return
		}
	}
	m.Server.DefaultTemplate(template)
}

// NewPod returns the pod that the controller of a workload makes of its template.
func NewPod(object map[string]any, t workload.Template) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	from, _ := t.Pod["metadata"].(map[string]any)
	made := map[string]any{"generateName": name + "-"}
	for _, key := range []string{"labels", "annotations", "finalizers"} {
		if v, ok := from[key]; ok {
			made[key] = v
		}
	}
	if namespace != "" {
		made["namespace"] = namespace
	}
	addByController(made, object, t, name)
	owner := t.Owner
	made["ownerReferences"] = []any{map[string]any{
		"apiVersion": owner.APIVersion, "kind": cmp.Or(makers[owner.Kind], owner.Kind), "name": name, "uid": "", "controller": true, "blockOwnerDeletion": true,
	}}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": t.Pod["spec"]}
}

// PodOf returns the request by which the controller of a workload makes a pod of its template.
func (m *Maker) PodOf(object map[string]any, t workload.Template) (*Request, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kindName, _ := object["kind"].(string)
	kind := ParseKind(apiVersion, kindName)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	r, err := m.Make(NewPod(object, t), PodKind)
	if err != nil {
		return nil, err
	}
	r.User = nil
	if account := controllers[kind.GroupKind()]; account != "" {
		r.User = serviceAccount(metav1.NamespaceSystem, account)
	}
	r.Of, r.Path = kindName+" "+name, t.Path
	if namespace != "" {
		r.Of = kindName + " " + namespace + "/" + name
	}
	return r, nil
}

func serviceAccount(namespace, name string) user.Info {
	return &user.DefaultInfo{
		Name:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, user.AllAuthenticated},
	}
}

// User is one by name and groups, who is logged in.
func User(name string, groups []string) user.Info {
	all := map[string]bool{user.AllAuthenticated: true}
	for _, g := range groups {
		all[g] = true
	}
	return &user.DefaultInfo{Name: name, Groups: slices.Sorted(maps.Keys(all))}
}
