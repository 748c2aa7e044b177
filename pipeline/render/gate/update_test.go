// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"testing"
)

func objectOf(apiVersion, kind, namespace, name string) Object {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return Object{Value: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}}
}

// TestDeletedObjects finds the objects that are gone, and which of them take others or data along.
func TestDeletedObjects(t *testing.T) {
	t.Parallel()
	old := []Object{
		objectOf("v1", "Namespace", "", "shop"),
		objectOf("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "", "doors.example.org"),
		objectOf("v1", "PersistentVolumeClaim", "shop", "data"), objectOf("v1", "PersistentVolume", "", "data"),
		objectOf("v1", "ConfigMap", "shop", "a"), objectOf("batch/v1beta1", "CronJob", "shop", "b"),
		objectOf("example.org/v1", "Namespace", "shop", "c"),
	}
	var destroying []string
	gone := PairOld([]Object{objectOf("batch/v1", "CronJob", "shop", "b")}, old)
	for _, o := range gone {
		if o.Identity().Destroys() != "" {
			destroying = append(destroying, o.Ref().Kind)
		}
	}
	want := []string{"Namespace", "CustomResourceDefinition", "PersistentVolumeClaim", "PersistentVolume"}
	if !slices.Equal(destroying, want) {
		t.Errorf("got %v, want %v", destroying, want)
	}
	if len(gone) != 6 {
		t.Errorf("%d objects are gone, and the CronJob has only another version of its API", len(gone))
	}
	if gone = PairOld(old, old); len(gone) != 0 {
		t.Errorf("nothing is deleted: %v", gone)
	}
}
