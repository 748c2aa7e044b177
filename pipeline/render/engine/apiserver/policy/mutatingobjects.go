// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"reflect"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
)

// Defaulter sets the defaults of a typed object.
type Defaulter interface{ Default(object runtime.Object) }

// sparingDefaulter leaves out the defaults of a pod that has the spec of one with defaults: they depend on the spec alone, and
// most policies change labels and annotations.
type sparingDefaulter struct {
	Defaulter

	last   *corev1.Pod    // the last pod with defaults
	before runtime.Object // what the mutation has changed
}

// Default sets the defaults of an object.
func (d *sparingDefaulter) Default(object runtime.Object) {
	pod, _ := object.(*corev1.Pod)
	before, _ := d.before.(*corev1.Pod)
	if pod == nil || before == nil || before != d.last || !reflect.DeepEqual(before.Spec, pod.Spec) {
		d.Defaulter.Default(object)
	}
	d.last, d.before = pod, nil
}

// objectInterfaces are what admission uses to read and write objects: typed objects of one version, with the defaults
// of the cluster's version.
type objectInterfaces struct {
	*runtime.Scheme

	resources runtime.EquivalentResourceMapper
	defaulter Defaulter
	fresh     *freshPod
}

func newObjectInterfaces(resources runtime.EquivalentResourceMapper, defaulter Defaulter) objectInterfaces {
	return objectInterfaces{Scheme: scheme.Scheme, resources: resources, defaulter: defaulter, fresh: &freshPod{}}
}

// GetObjectCreater returns what makes objects.
func (o objectInterfaces) GetObjectCreater() runtime.ObjectCreater { return o.Scheme }

// GetObjectTyper returns what knows the kinds of objects.
func (o objectInterfaces) GetObjectTyper() runtime.ObjectTyper { return o.Scheme }

// GetObjectDefaulter returns what sets defaults.
func (o objectInterfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return o.defaulter }

// GetObjectConvertor returns what converts objects.
func (o objectInterfaces) GetObjectConvertor() runtime.ObjectConvertor { return o }

// GetEquivalentResourceMapper returns what knows the versions of a resource.
func (o objectInterfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return o.resources
}

// Convert copies an object over another one of its type. The API server converts it to its internal type here.
func (o objectInterfaces) Convert(in, out, context any) error {
	object, ok := in.(runtime.Object)
	if ok && reflect.TypeOf(in) == reflect.TypeOf(out) {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
		return nil
	}
	return o.Scheme.Convert(in, out, context)
}

// ConvertToVersion returns a copy of an object in a version. A pod that a patch has just made needs no copy.
func (o objectInterfaces) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	if made := o.fresh.Pod; made != nil && in == runtime.Object(made) {
		o.fresh.Pod = nil
		return made, nil
	}
	return o.Scheme.ConvertToVersion(in, to)
}

// typeConverters have the types of all kinds for ApplyConfiguration. They are those of the newest version.
type typeConverters struct{}

var builtInTypes = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

// GetTypeConverter returns the types of a kind; nil for kinds that are not built in.
func (*typeConverters) GetTypeConverter(kind schema.GroupVersionKind) managedfields.TypeConverter {
	if !scheme.Scheme.Recognizes(kind) {
		return nil
	}
	return lateTypes{}
}

// lateTypes are the types of all kinds, which are read when they are first used.
type lateTypes struct{}

// ObjectToTyped returns an object with its type.
func (lateTypes) ObjectToTyped(o runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return builtInTypes().ObjectToTyped(o, options...)
}

// TypedToObject returns the object of a typed value.
func (lateTypes) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	return builtInTypes().TypedToObject(v)
}

// Run does nothing: the types never change.
func (*typeConverters) Run(context.Context) {}

// paramInformer holds the known parameters of a kind.
type paramInformer struct {
	set      *Set
	kind     request.Kind
	reversed bool
}

// Informer returns what reports that the parameters are read.
func (p paramInformer) Informer() cache.SharedIndexInformer { return syncedInformer{} }

// syncedInformer is one that has read everything.
type syncedInformer struct{ cache.SharedIndexInformer }

// HasSynced reports true.
func (syncedInformer) HasSynced() bool { return true }

// Lister lists cluster-scoped parameters.
func (p paramInformer) Lister() cache.GenericLister { return paramLister{p, ""} }

type paramLister struct {
	of        paramInformer
	namespace string
}

// ByNamespace lists the parameters of a namespace.
func (l paramLister) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return paramLister{l.of, namespace}
}

// List returns the parameters with labels.
func (l paramLister) List(selector labels.Selector) ([]runtime.Object, error) {
	all, err := l.of.set.findReferencedParameters(l.of.kind, &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}}, l.namespace)
	if err != nil {
		return nil, err
	}
	var out []runtime.Object
	for _, one := range all {
		if labelled, ok := one.(metav1.Object); ok && selector.Matches(labels.Set(labelled.GetLabels())) {
			out = append(out, one)
		}
	}
	if l.of.reversed {
		slices.Reverse(out)
	}
	return out, nil
}

// Get returns the parameter with a name.
func (l paramLister) Get(name string) (runtime.Object, error) {
	found, err := l.of.set.findReferencedParameters(l.of.kind, &admissionv1.ParamRef{Name: name}, l.namespace)
	if err == nil && len(found) == 0 {
		return nil, apierrors.NewNotFound(l.of.kind.GroupVersionResource().GroupResource(), name)
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}
