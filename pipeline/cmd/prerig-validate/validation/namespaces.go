// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// namespaces answers for the namespaces of the cluster, which are not known: each of them permits what strategies ask
// of it. Strategies of resource claims ask whether a namespace permits access for administrators.
type namespaces struct{ typedv1.NamespaceInterface }

// Get returns a namespace that permits access for administrators.
func (namespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	labels := map[string]string{resourcev1.DRAAdminNamespaceLabelKey: "true"}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, nil
}
