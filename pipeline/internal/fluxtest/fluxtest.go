// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package fluxtest builds Kustomizations with Flux's own packages, to compare with.
package fluxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	generator "github.com/fluxcd/pkg/kustomize"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterObjects is what Flux's packages see of a cluster: the ConfigMaps and Secrets of the objects.
type clusterObjects struct {
	client.Client
	objects []map[string]any
}

// Get implements client.Client.
func (c clusterObjects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := "ConfigMap"
	if _, ok := into.(*corev1.Secret); ok {
		kind = "Secret"
	}
	for _, one := range c.objects {
		object := unstructured.Unstructured{Object: one}
		if object.GetKind() != kind || object.GetNamespace() != key.Namespace || object.GetName() != key.Name {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(one, into); err != nil {
			return err
		}
		if secret, ok := into.(*corev1.Secret); ok {
			for name, value := range secret.StringData {
				if secret.Data == nil {
					secret.Data = map[string][]byte{}
				}
				secret.Data[name] = []byte(value)
			}
		}
		return nil
	}
	return apierrors.NewNotFound(corev1.Resource(strings.ToLower(kind)+"s"), key.Name)
}

// Build builds a Kustomization as kustomize-controller does (internal/controller, generate and build), in a copy
// of the source that it may write to, and returns the objects in its order.
func Build(root string, k map[string]any, cluster []map[string]any) ([]map[string]any, error) {
	object := unstructured.Unstructured{Object: runtime.DeepCopyJSON(k)}
	var typed kustomizev1.Kustomization
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		return nil, err
	}
	dir := filepath.Join(root, filepath.Join("/", typed.Spec.Path))
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	if _, err := generator.NewGenerator(root, object).WriteFile(dir); err != nil {
		return nil, err
	}
	built, err := generator.SecureBuild(root, dir, false)
	if err != nil {
		return nil, err
	}
	for _, res := range built.Resources() {
		if res.GetName() == "" || res.GetKind() == "" || res.GetApiVersion() == "" {
			return nil, fmt.Errorf("%s has no name", res.GetKind())
		}
		if typed.Spec.PostBuild == nil {
			continue
		}
		always := typed.GetSubstituteStrategy() == kustomizev1.SubstituteStrategyAlways
		_, err := generator.SubstituteVariables(context.Background(), clusterObjects{objects: cluster}, object, res,
			generator.SubstituteWithStrict(true), generator.SubstituteWithAlways(always))
		if err != nil {
			return nil, err
		}
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for decoder := utilyaml.NewYAMLToJSONDecoder(bytes.NewReader(text)); ; {
		one := unstructured.Unstructured{}
		err := decoder.Decode(&one.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if common := typed.Spec.CommonMetadata; common != nil {
			setCommonMetadata(&one, common)
		}
		out = append(out, one.Object)
	}
}

// setCommonMetadata is SetCommonMetadata of github.com/fluxcd/pkg/ssa/utils v0.76.1.
func setCommonMetadata(object *unstructured.Unstructured, common *kustomizev1.CommonMetadata) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	for key, value := range common.Labels {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[key] = value
	}
	for key, value := range common.Annotations {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
	}
	if len(labels) > 0 {
		object.SetLabels(labels)
	}
	if len(annotations) > 0 {
		object.SetAnnotations(annotations)
	}
}
