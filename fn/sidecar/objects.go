// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/manifest"
)

// ObjectAnnotation marks objects that sidecars add to the workloads' own, with the names of the sidecars. An object
// that has it belongs to them: it is replaced, and removed when no sidecar adds it any more.
const ObjectAnnotation = "prerig.dev/sidecar"

// clusterScoped are the kinds of Kubernetes itself that are in no namespace.
var clusterScoped = []string{
	"APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle", "CSIDriver",
	"CSINode",
	"CustomResourceDefinition", "DeviceClass", "FlowSchema", "IngressClass", "IPAddress", "MutatingAdmissionPolicy",
	"MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume",
	"PriorityClass",
	"PriorityLevelConfiguration", "RuntimeClass", "ServiceCIDR", "StorageClass", "ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeAttributesClass",
}

// renderObjects renders the further objects. One without a namespace gets that of the workload, unless its kind is
// known to be in none or its namespace is printed as "".
func (s *Sidecar) renderObjects(req Request, data *Data) ([]map[string]any, error) {
	if strings.TrimSpace(s.spec.Objects) == "" {
		return nil, nil
	}
	text, err := renderTemplate(objectsTemplate, data)
	if err != nil {
		return nil, err
	}
	fail := func(err error) ([]map[string]any, error) {
		return nil, &gotemplate.Error{Template: objectsTemplate, Err: err}
	}
	file, err := manifest.Parse("", text)
	if err != nil {
		return fail(fmt.Errorf("what it prints is not YAML: %w", err))
	}
	var out []map[string]any
	for _, doc := range file.Docs {
		obj, err := doc.Object()
		if err != nil {
			return fail(fmt.Errorf("what it prints is not YAML: %w%s", err, errorLine(text, err)))
		}
		if len(obj) == 0 {
			continue
		}
		if err := completeObject(obj, req.Workload.Namespace); err != nil {
			return fail(err)
		}
		out = append(out, obj)
	}
	return out, nil
}

// completeObject checks an object and sets its namespace.
func completeObject(obj map[string]any, namespace string) error {
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	switch {
	case apiVersion == "" || kind == "" || name == "":
		return errors.New("an object that it prints has no apiVersion, kind or metadata.name")
	case strings.HasSuffix(kind, "List"):
		return fmt.Errorf("it prints a %s; print its items as documents of their own", kind)
	}
	for _, key := range []string{"labels", "annotations"} {
		if _, ok := meta[key].(map[string]any); !ok && meta[key] != nil {
			return fmt.Errorf("metadata.%s of %s %s has to be a map", key, kind, name)
		}
	}
	printed, ok := meta["namespace"]
	switch {
	case ok && (printed == nil || printed == ""):
		delete(meta, "namespace")
	case !ok && namespace != "" && !slices.Contains(clusterScoped, kind):
		meta["namespace"] = namespace
	}
	return nil
}
