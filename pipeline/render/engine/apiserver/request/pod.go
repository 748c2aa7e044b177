// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/prerig/prerig/fn/podmap"
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

// defaultPods sets the defaults of a pod or of a pod template.
func (m *Maker) defaultPods(object map[string]any, kind Kind, namespace string) {
	if kind.GroupVersionKind == PodKind.GroupVersionKind {
		m.defaultPod(object, namespace)
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

// PodOf returns the request by which the controller of a workload makes a pod of its template.
func (m *Maker) PodOf(object map[string]any, t workload.Template) (*Request, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kindName, _ := object["kind"].(string)
	kind := ParseKind(apiVersion, kindName)
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
	owner := t.Owner
	made["ownerReferences"] = []any{map[string]any{
		"apiVersion": owner.APIVersion, "kind": owner.Kind, "name": name, "uid": "", "controller": true, "blockOwnerDeletion": true,
	}}
	r, err := m.Make(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": t.Pod["spec"]}, PodKind)
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

// defaultPod sets the defaults of a pod, and what the admission plugins ServiceAccount, LimitRanger, Priority and
// DefaultTolerationSeconds add before policies see it.
func (m *Maker) defaultPod(pod map[string]any, namespace string) {
	spec, ok := pod["spec"].(map[string]any)
	if !ok {
		return
	}
	m.Server.WithLimits(m.Limits[namespace]).Default(pod)
	m.addAccount(spec, namespace)
	if name, _ := spec["priorityClassName"].(string); name == "" && spec["priority"] == nil {
		spec["priority"] = int64(0)
		if spec["preemptionPolicy"] == nil {
			spec["preemptionPolicy"] = "PreemptLowerPriority"
		}
	}
	for _, taint := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		addToleration(spec, taint)
	}
	m.readAppArmor(pod, spec)
	pod["status"] = map[string]any{"phase": "Pending"}
}

// readAppArmor sets the profiles of containers by the annotations (source: applyAppArmorVersionSkew in pkg/registry/core/pod).
func (m *Maker) readAppArmor(pod, spec map[string]any) {
	metadata, _ := pod["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	system, _ := spec["os"].(map[string]any)
	if len(annotations) == 0 || system["name"] == "windows" {
		return
	}
	podContext, _ := spec["securityContext"].(map[string]any)
	for _, key := range []string{"initContainers", "containers", "ephemeralContainers"} {
		list, _ := spec[key].([]any)
		for _, c := range list {
			container, _ := c.(map[string]any)
			name, _ := container["name"].(string)
			value, ok := annotations[podmap.AppArmorPrefix+name].(string)
			profile := appArmorProfile(value)
			if !ok || profile == nil {
				continue
			}
			context, ok := container["securityContext"].(map[string]any)
			if !ok && container["securityContext"] != nil || context["appArmorProfile"] != nil ||
				maps.EqualFunc(profile, asProfile(podContext), sameText) {
				continue
			}
			if context == nil {
				context = map[string]any{}
				container["securityContext"] = context
			}
			context["appArmorProfile"] = profile
		}
	}
}

func asProfile(context map[string]any) map[string]any {
	profile, _ := context["appArmorProfile"].(map[string]any)
	return profile
}

func sameText(a, b any) bool {
	x, _ := a.(string)
	y, ok := b.(string)
	return ok && x == y
}

// appArmorProfile parses the value of an annotation. It returns nil if the value sets no profile.
func appArmorProfile(value string) map[string]any {
	switch {
	case value == "unconfined":
		return map[string]any{"type": "Unconfined"}
	case value == "runtime/default":
		return map[string]any{"type": "RuntimeDefault"}
	case strings.HasPrefix(value, "localhost/"):
		return map[string]any{"type": "Localhost", "localhostProfile": strings.TrimPrefix(value, "localhost/")}
	}
	return nil
}

func addToleration(spec map[string]any, taint string) {
	list, ok := spec["tolerations"].([]any)
	if !ok && spec["tolerations"] != nil {
		return
	}
	for _, t := range list {
		fields, _ := t.(map[string]any)
		key, _ := fields["key"].(string)
		effect, _ := fields["effect"].(string)
		if (key == "" || key == taint) && (effect == "" || effect == "NoExecute") {
			return
		}
	}
	spec["tolerations"] = append(slices.Clip(list), map[string]any{
		"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300),
	})
}

// tokenPath is where pods have the token of their service account.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // a path

// addAccount adds the service account and the volume with its token to the pod.
func (m *Maker) addAccount(spec map[string]any, namespace string) {
	name, _ := spec["serviceAccountName"].(string)
	if name == "" {
		name = "default"
		spec["serviceAccountName"], spec["serviceAccount"] = name, name
	}
	account := m.Accounts[namespace+"/"+name]
	if secrets, _ := account["imagePullSecrets"].([]any); len(secrets) > 0 && spec["imagePullSecrets"] == nil {
		spec["imagePullSecrets"] = secrets
	}
	mount, ok := spec["automountServiceAccountToken"].(bool)
	if !ok {
		if mount, ok = account["automountServiceAccountToken"].(bool); !ok {
			mount = true
		}
	}
	if !mount {
		return
	}
	const volume = "kube-api-access-x2n4b"
	used := false
	for _, key := range []string{"containers", "initContainers"} {
		list, _ := spec[key].([]any)
		for _, c := range list {
			if container, ok := c.(map[string]any); ok && mountToken(container, volume) {
				used = true
			}
		}
	}
	if used {
		volumes, _ := spec["volumes"].([]any)
		spec["volumes"] = append(slices.Clip(volumes), tokenVolume(volume))
	}
}

// mountToken reports whether the container has got the volume.
func mountToken(container map[string]any, volume string) bool {
	mounts, ok := container["volumeMounts"].([]any)
	if !ok && container["volumeMounts"] != nil {
		return false
	}
	for _, m := range mounts {
		if fields, _ := m.(map[string]any); fields["mountPath"] == tokenPath {
			return false
		}
	}
	container["volumeMounts"] = append(slices.Clip(mounts), map[string]any{"name": volume, "readOnly": true, "mountPath": tokenPath})
	return true
}

func tokenVolume(name string) map[string]any {
	return map[string]any{"name": name, "projected": map[string]any{"defaultMode": int64(0o644), "sources": []any{
		map[string]any{"serviceAccountToken": map[string]any{"expirationSeconds": int64(3607), "path": "token"}},
		map[string]any{"configMap": map[string]any{"name": "kube-root-ca.crt", "items": []any{map[string]any{"key": "ca.crt", "path": "ca.crt"}}}},
		map[string]any{"downwardAPI": map[string]any{"items": []any{map[string]any{
			"path": "namespace", "fieldRef": map[string]any{"apiVersion": "v1", "fieldPath": "metadata.namespace"},
		}}}},
	}}}
}

// User is one by name and groups, who is logged in.
func User(name string, groups []string) user.Info {
	all := map[string]bool{user.AllAuthenticated: true}
	for _, g := range groups {
		all[g] = true
	}
	return &user.DefaultInfo{Name: name, Groups: slices.Sorted(maps.Keys(all))}
}
