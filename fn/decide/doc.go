// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package decide determines whether the cluster would inject a pod, and why: first whether the API server would
// call the injector's webhook for it (namespace and object selectors), then whether the injector would inject it
// (injectRequired of pkg/kube/inject/inject.go). It reads labels, annotations and hostNetwork of a pod and the
// labels of its namespace, and changes none of them; Mark and Unmark, which make the cluster's webhook skip an
// injected pod, return a changed copy.
//
// The rules of each version of Istio, 1.0 to 1.31, are data in rules.go and in the table of pod.go. A newer version
// is read as the newest one.
package decide
