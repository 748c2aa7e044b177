// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// keyOf is namespace and name of an object, which is the key of a pipeline.
func keyOf(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + object.GetName()
}

// isDeleted reports whether an object was deleted but still exists.
func isDeleted(object *unstructured.Unstructured) bool { return object.GetDeletionTimestamp() != nil }

// objectVersion returns the version that identifies an object's specification.
func objectVersion(object *unstructured.Unstructured) queue.ObjectVersion {
	return queue.ObjectVersion{UID: string(object.GetUID()), Generation: object.GetGeneration()}
}

// marshalUserFields returns the user's part of an object, in JSON: a file with it would mean the same.
func marshalUserFields(object *unstructured.Unstructured) ([]byte, error) {
	metadata := map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()}
	if labels := object.GetLabels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	annotations := maps.Clone(object.GetAnnotations())
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": metadata,
		"spec": object.Object["spec"],
	})
	if err != nil {
		return nil, fmt.Errorf("writing %s %s: %w", object.GetKind(), keyOf(object), err)
	}
	return text, nil
}
