// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import "github.com/prerig/prerig/fn/api/v1alpha1"

// Namespaces returns the namespaces among the objects as a policy lists them.
func Namespaces(objects []Object) []v1alpha1.Namespace {
	b := &policyBuilder{imp: &Import{}}
	b.readNamespaces(viewObjects(objects))
	return b.spec.Namespaces
}

// IsPolicyAnnotation reports whether an annotation of a namespace is one that an injector reads.
func IsPolicyAnnotation(annotation string) bool { return isPolicyAnnotation(annotation) }
