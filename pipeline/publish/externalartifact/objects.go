// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package externalartifact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Resource is the kind of objects that Flux reads, since source-controller 1.7.
var Resource = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1",
	Resource: "externalartifacts"}

// PipelineAnnotation names the pipeline that an object belongs to.
const PipelineAnnotation = "prerig.dev/pipeline"

// Labels of an object.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "prerig"
)

// Keys of an artifact's metadata. The first two are those that Flux knows from OCI artifacts and shows as the
// revision's origin.
const (
	metadataRevision = "org.opencontainers.image.revision"
	metadataSource   = "org.opencontainers.image.source"
	metadataObjects  = "prerig.dev/objects"
)

// requestTimeout bounds one request to the API server.
const requestTimeout = 30 * time.Second

// Ref names an object.
type Ref struct{ Namespace, Name string }

// String returns NAMESPACE/NAME.
func (r Ref) String() string { return r.Namespace + "/" + r.Name }

// ErrNotOwned is returned for an object that was not made for this pipeline.
var ErrNotOwned = errors.New("it was not made for this pipeline; delete it, or give spec.publish[].externalArtifact another name")

// ErrNoKind is about a cluster without Flux, or with one that is too old.
var ErrNoKind = errors.New("the cluster has no kind ExternalArtifact of source.toolkit.fluxcd.io/v1: Flux 2.7 and later bring it")

// object is an ExternalArtifact as it was read.
type object struct {
	raw      *unstructured.Unstructured
	pipeline string
	artifact *meta.Artifact // nil where it has none yet
}

// objects reads and writes the objects of a cluster.
type objects struct{ client dynamic.Interface }

func (o objects) resourceInterfaceFor(ref Ref) dynamic.ResourceInterface {
	return o.client.Resource(Resource).Namespace(ref.Namespace)
}

// get returns an object, or nil if it does not exist.
func (o objects) get(ctx context.Context, ref Ref) (*object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	raw, err := o.resourceInterfaceFor(ref).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) && !isUnknownKind(err) {
			return nil, nil
		}
		return nil, explainServerError("reading", ref, err)
	}
	return parseObject(raw)
}

// getIfKindExists returns an object as get does, and nil also where the cluster has no such kind any more.
func (o objects) getIfKindExists(ctx context.Context, ref Ref) (*object, error) {
	now, err := o.get(ctx, ref)
	if errors.Is(err, ErrNoKind) {
		return nil, nil
	}
	return now, err
}

// namespaces are read one by one, and never listed.
var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// isGone reports whether the API server confirms that the namespace does not exist. Objects in a deleted namespace
// cannot be read, as the roles that allow it are deleted with it.
func (o objects) isGone(ctx context.Context, namespace string) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := o.client.Resource(namespaces).Get(ctx, namespace, metav1.GetOptions{})
	return apierrors.IsNotFound(err) && !isUnknownKind(err)
}

func parseObject(raw *unstructured.Unstructured) (*object, error) {
	found := &object{raw: raw, pipeline: raw.GetAnnotations()[PipelineAnnotation]}
	if raw.GetLabels()[managedByLabel] != managedBy {
		found.pipeline = ""
	}
	text, ok, err := unstructured.NestedMap(raw.Object, "status", "artifact")
	if err == nil && ok {
		found.artifact = &meta.Artifact{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(text, found.artifact)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the status of ExternalArtifact %s/%s: %w", raw.GetNamespace(), raw.GetName(), err)
	}
	return found, nil
}

// isUnknownKind reports whether it is the kind that was not found, and not the object: then the answer is none of the
// API's.
func isUnknownKind(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// explainServerError describes what an answer of the API server means for the user.
func explainServerError(doing string, ref Ref, err error) error {
	switch {
	case apierrors.IsNotFound(err) && isUnknownKind(err):
		err = ErrNoKind
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("%w; bind the ClusterRole prerig-externalartifacts to the daemon's ServiceAccount with a RoleBinding in %s", err, ref.Namespace)
	}
	return fmt.Errorf("%s ExternalArtifact %s: %w", doing, ref, err)
}

// getOrAdoptObject returns the object of a pipeline, and creates it or transfers it from one of its predecessors if it
// has none. It returns ErrNotOwned for any other object.
func (o objects) getOrAdoptObject(ctx context.Context, ref Ref, pipeline string, mine func(pipeline string) bool) (*object, error) {
	now, err := o.get(ctx, ref)
	if err != nil {
		return nil, err
	}
	if now != nil && !mine(now.pipeline) {
		return nil, explainServerError("writing", ref, ErrNotOwned)
	}
	if now != nil && now.pipeline == pipeline {
		return now, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var raw *unstructured.Unstructured
	if now == nil {
		raw, err = o.resourceInterfaceFor(ref).Create(ctx, newObject(ref, pipeline),
			metav1.CreateOptions{FieldManager: managedBy})
	} else {
		recordOwnerAnnotations(now.raw, pipeline)
		raw, err = o.resourceInterfaceFor(ref).Update(ctx, now.raw, metav1.UpdateOptions{FieldManager: managedBy})
	}
	if err != nil {
		return nil, explainServerError("writing", ref, err)
	}
	return parseObject(raw)
}

func newObject(ref Ref, pipeline string) *unstructured.Unstructured {
	raw := &unstructured.Unstructured{Object: map[string]any{"apiVersion": Resource.GroupVersion().String(), "kind": "ExternalArtifact"}}
	raw.SetNamespace(ref.Namespace)
	raw.SetName(ref.Name)
	recordOwnerAnnotations(raw, pipeline)
	return raw
}

// recordOwnerAnnotations records the owner of an object in the object.
func recordOwnerAnnotations(raw *unstructured.Unstructured, pipeline string) {
	labels, annotations := raw.GetLabels(), raw.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[managedByLabel], annotations[PipelineAnnotation] = managedBy, pipeline
	raw.SetLabels(labels)
	raw.SetAnnotations(annotations)
	name := pipeline
	if i := len(raw.GetNamespace()) + 1; len(pipeline) > i {
		name = pipeline[i:]
	}
	raw.Object["spec"] = map[string]any{"sourceRef": map[string]any{
		"apiVersion": "prerig.dev/v1alpha1", "kind": "RenderPipeline", "name": name, "namespace": raw.GetNamespace(),
	}}
}

// pointToArchive points an object to another archive, unless the object has changed since it was read.
func (o objects) pointToArchive(ctx context.Context, ref Ref, now *object, artifact meta.Artifact) error {
	text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&artifact)
	if err != nil {
		return err
	}
	ready, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&metav1.Condition{
		Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason,
		LastTransitionTime: artifact.LastUpdateTime,
		ObservedGeneration: now.raw.GetGeneration(), Message: "stored artifact with revision " + artifact.Revision,
	})
	if err != nil {
		return err
	}
	raw := now.raw.DeepCopy()
	raw.Object["status"] = map[string]any{"artifact": text, "conditions": []any{ready}}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := o.resourceInterfaceFor(ref).UpdateStatus(ctx, raw, metav1.UpdateOptions{FieldManager: managedBy}); err != nil {
		return explainServerError("writing the status of", ref, err)
	}
	return nil
}

// isReady reports whether the status of an object marks its artifact as available.
func (o *object) isReady() bool {
	conditions, _, _ := unstructured.NestedSlice(o.raw.Object, "status", "conditions")
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok && c["type"] == meta.ReadyCondition {
			return c["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}

// deleteUnchangedObject deletes an object as it was read, but not one that has replaced it.
func (o objects) deleteUnchangedObject(ctx context.Context, ref Ref, now *object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	uid := now.raw.GetUID()
	err := o.resourceInterfaceFor(ref).Delete(ctx, ref.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return explainServerError("deleting", ref, err)
	}
	return nil
}
