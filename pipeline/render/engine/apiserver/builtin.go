// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/openapi"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// codeOf is the rule for each fault of a schema.
var codeOf = map[openapi.Fault]string{
	openapi.UnknownField: gate.CodeUnknownField,
	openapi.WrongType:    gate.CodeWrongType,
	openapi.Missing:      gate.CodeRequired,
	openapi.WrongValue:   gate.CodeWrongValue,
}

func (c *checker) checkBuiltIn(ctx context.Context, o gate.Object, kind openapi.Kind) {
	problems := c.server.Check(kind, o.Value)
	decoded, metadata := true, true
	for _, p := range problems {
		if p.Fault == openapi.WrongType {
			decoded = false
			metadata = metadata && len(p.Path) > 0 && p.Path[0] != "metadata"
		}
		c.addFieldFinding(o, codeOf[p.Fault], p.Path, p.Message)
	}
	if metadata {
		c.checkMetadata(o, kind.Namespaced, nameRule(kind))
	}
	if decoded && kind.APIVersion == "apiextensions.k8s.io/v1" && kind.Kind == "CustomResourceDefinition" {
		c.checkDefinition(ctx, o)
	}
}

// checkMetadata holds names, labels and annotations against the API server's own rules. The metadata is known to be decodable.
func (c *checker) checkMetadata(o gate.Object, namespaced bool, name validation.ValidateNameFunc) {
	var meta metav1.ObjectMeta
	text, err := json.Marshal(o.Value["metadata"])
	if err == nil {
		err = json.Unmarshal(text, &meta)
	}
	if err != nil {
		c.addFieldFinding(o, gate.CodeWrongType, []any{"metadata"}, "reading the metadata: "+err.Error())
		return
	}
	// The API server makes the name before it looks at it.
	if base := meta.GenerateName; meta.Name == "" && base != "" {
		meta.Name = base[:min(len(base), maxGeneratedBase)] + "x2n4b"
	}
	// A namespace is set when the object is applied.
	switch {
	case !namespaced:
		meta.Namespace = ""
	case meta.Namespace == "":
		meta.Namespace = metav1.NamespaceDefault
	}
	c.addErrors(o, gate.CodeMetadata, validation.ValidateObjectMeta(&meta, namespaced, name, field.NewPath("metadata")))
}

// maxGeneratedBase is how much of generateName is used (source: pkg/storage/names of k8s.io/apiserver).
const maxGeneratedBase = 58

// nameRule returns what names of a kind must be (source: the Validate functions of k8s.io/kubernetes/pkg/apis/*/validation). Of kinds
// that are not listed here it asks only what all names have in common.
func nameRule(kind openapi.Kind) validation.ValidateNameFunc {
	switch kind.Kind {
	case "Namespace":
		return validation.ValidateNamespaceName
	case "Pod", "ConfigMap", "Secret", "ServiceAccount", "PersistentVolume", "PersistentVolumeClaim", "LimitRange", "ResourceQuota", "PodTemplate",
		"ReplicationController", "Endpoints", "EndpointSlice", "Deployment", "ReplicaSet", "DaemonSet", "Job", "CronJob", "Ingress", "IngressClass",
		"NetworkPolicy", "HorizontalPodAutoscaler", "PriorityClass", "StorageClass", "RuntimeClass", "Lease",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return validation.NameIsDNSSubdomain
	}
	return checkPathSegment
}

// checkPathSegment checks that a name can be used in a URL (source: ValidatePathSegmentName in
// pkg/api/validation/path of k8s.io/apimachinery).
func checkPathSegment(name string, _ bool) []string {
	var out []string
	if name == "." || name == ".." {
		out = append(out, "may not be "+strconv.Quote(name))
	}
	for _, sign := range []string{"/", "%"} {
		if strings.Contains(name, sign) {
			out = append(out, "may not contain "+strconv.Quote(sign))
		}
	}
	return out
}
