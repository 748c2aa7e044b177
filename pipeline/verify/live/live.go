// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package live reads from a cluster what verify compares. It only lists objects; Resources defines which.
package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/verify"
)

// Resource is one that is listed.
type Resource struct {
	schema.GroupVersionResource
	Kind string
	// Cluster reports whether it is cluster-scoped, or should be listed in all namespaces.
	Cluster bool
	// Needed reports whether a comparison is impossible without it. Other resources are skipped if they may not be
	// read, and the report lists them.
	Needed bool
	// Earlier are versions that clusters without this one may have. With some, a cluster without any has no such objects.
	Earlier []string
	// Optional reports whether a cluster without the resource simply has no such objects.
	Optional bool
}

// Resources are all that are listed, with the verb list alone.
var Resources = []Resource{
	{GroupVersionResource: versionOneResource("", "pods"), Kind: "Pod", Needed: true},
	{GroupVersionResource: versionOneResource("apps", "replicasets"), Kind: "ReplicaSet"},
	{GroupVersionResource: versionOneResource("apps", "deployments"), Kind: "Deployment"},
	{GroupVersionResource: versionOneResource("apps", "statefulsets"), Kind: "StatefulSet"},
	{GroupVersionResource: versionOneResource("apps", "daemonsets"), Kind: "DaemonSet"},
	{GroupVersionResource: versionOneResource("apps", "controllerrevisions"), Kind: "ControllerRevision"},
	{GroupVersionResource: versionOneResource("batch", "jobs"), Kind: "Job"},
	{GroupVersionResource: versionOneResource("batch", "cronjobs"), Kind: "CronJob"},
	{GroupVersionResource: versionOneResource("", "replicationcontrollers"), Kind: "ReplicationController"},
	{GroupVersionResource: versionOneResource("", "serviceaccounts"), Kind: "ServiceAccount"},
	{GroupVersionResource: versionOneResource("", "limitranges"), Kind: "LimitRange"},
	{GroupVersionResource: versionOneResource("", "namespaces"), Kind: "Namespace", Cluster: true},
	{GroupVersionResource: versionOneResource("scheduling.k8s.io", "priorityclasses"), Kind: "PriorityClass", Cluster: true},
	{GroupVersionResource: versionOneResource("node.k8s.io", "runtimeclasses"), Kind: "RuntimeClass", Cluster: true},
	{GroupVersionResource: versionOneResource("admissionregistration.k8s.io", "mutatingwebhookconfigurations"), Kind: "MutatingWebhookConfiguration", Cluster: true},
	{
		GroupVersionResource: versionOneResource("admissionregistration.k8s.io", "mutatingadmissionpolicies"), Kind: "MutatingAdmissionPolicy", Cluster: true,
		Earlier: []string{"v1beta1", "v1alpha1"},
	},
}

func versionOneResource(group, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}
}

const (
	// page is how many objects are asked for at once. A server may ignore it, and answer with none.
	page = 500
	// maxObjects is how many objects of one resource are read: six times as many pods as Kubernetes supports.
	maxObjects = 1_000_000
	// maxRestarts is how often a list that has expired is read again.
	maxRestarts = 3
)

// fewNamespaces is up to how many namespaces are read one by one: that needs no right to read the others.
const fewNamespaces = 10

// Read lists the objects of namespaces, or of all namespaces if none is specified.
func Read(ctx context.Context, config *rest.Config, namespaces []string) (*verify.Snapshot, error) {
	version, err := Version(ctx, config)
	if err != nil {
		return nil, err
	}
	found, err := List(ctx, config, Resources, namespaces)
	if err != nil {
		return nil, err
	}
	snapshot := &verify.Snapshot{KubernetesVersion: version, Unread: found.Unread}
	for _, one := range Resources {
		if !slices.Contains(found.Unread, one.Resource) {
			snapshot.Read(one.Kind)
		}
	}
	for _, obj := range found.Objects {
		snapshot.Add(obj)
	}
	return snapshot, nil
}

// Found is what was listed.
type Found struct {
	// Objects are all of them, with their kinds, in the order of the resources.
	Objects []map[string]any
	// Unread are the resources that are not needed and may not be read, or that the cluster does not have.
	Unread []string
}

// List lists resources in namespaces, or in all namespaces if none is specified.
func List(ctx context.Context, config *rest.Config, resources []Resource, namespaces []string) (*Found, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w", err)
	}
	meter := budget.NewMeter(ctx, config.Host)
	defer meter.Release()
	ctx = meter.Of(ctx)
	r := &reader{objects: objects, namespaces: slices.Sorted(maps.Keys(setOf(namespaces)))}
	found := make([]part, len(resources))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, one := range resources {
		group.Go(func() (err error) {
			found[i], err = r.listFirstServedVersion(ctx, one)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := &Found{}
	for i, p := range found {
		if p.unread {
			out.Unread = append(out.Unread, resources[i].Resource)
		}
		out.Objects = append(out.Objects, p.objects...)
	}
	slices.Sort(out.Unread)
	return out, nil
}

func setOf(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

type reader struct {
	objects    dynamic.Interface
	namespaces []string
}

// part is what was listed of one resource.
type part struct {
	objects []map[string]any
	unread  bool
}

// listFirstServedVersion lists a resource in the namespaces, of the first of its versions that the cluster has.
func (r *reader) listFirstServedVersion(ctx context.Context, one Resource) (part, error) {
	out, err := r.readVersion(ctx, one)
	for _, version := range one.Earlier {
		if !apierrors.IsNotFound(err) {
			break
		}
		one.Version = version
		out, err = r.readVersion(ctx, one)
	}
	switch {
	case err == nil || (one.Optional || len(one.Earlier) > 0) && apierrors.IsNotFound(err):
		return out, nil
	case !one.Needed && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)):
		return part{unread: true}, nil
	}
	return part{}, fmt.Errorf("listing %s: %w", one.Resource, err)
}

func (r *reader) readVersion(ctx context.Context, one Resource) (out part, err error) {
	switch {
	case one.Cluster || len(r.namespaces) == 0:
		out.objects, err = r.listAllPages(ctx, one, "", nil)
	case len(r.namespaces) <= fewNamespaces:
		out.objects, err = r.listEachNamespace(ctx, one)
	default:
		if out.objects, err = r.listAllPages(ctx, one, "", setOf(r.namespaces)); apierrors.IsForbidden(err) {
			out.objects, err = r.listEachNamespace(ctx, one)
		}
	}
	return out, err
}

// listEachNamespace lists a resource in one namespace after the other.
func (r *reader) listEachNamespace(ctx context.Context, one Resource) (out []map[string]any, err error) {
	for _, namespace := range r.namespaces {
		found, err := r.listAllPages(ctx, one, namespace, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// listAllPages reads a resource page by page. A list that has expired in between is read again.
func (r *reader) listAllPages(ctx context.Context, one Resource, namespace string, wanted map[string]bool) ([]map[string]any, error) {
	options := metav1.ListOptions{Limit: page}
	var out []map[string]any
	for restarts, count := 0, 0; ; {
		found, err := r.objects.Resource(one.GroupVersionResource).Namespace(namespace).List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" && restarts < maxRestarts {
			restarts++
			out, count, options.Continue = nil, 0, ""
			continue
		}
		if err != nil {
			return nil, err
		}
		if count += max(page/10, len(found.Items)); count > maxObjects {
			return nil, fmt.Errorf("the cluster lists more than %d of them", maxObjects)
		}
		for i := range found.Items {
			if wanted != nil && !wanted[found.Items[i].GetNamespace()] {
				continue
			}
			obj := found.Items[i].Object
			obj["apiVersion"], obj["kind"] = one.GroupVersion().String(), one.Kind
			out = append(out, obj)
		}
		next := found.GetContinue()
		if next == "" {
			return out, nil
		}
		if next == options.Continue {
			return nil, errors.New("the cluster's list goes on without an end")
		}
		options.Continue = next
	}
}
