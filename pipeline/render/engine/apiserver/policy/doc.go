// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy evaluates ValidatingAdmissionPolicies with their bindings and parameters for objects that are to
// be created, using the API server's own code in k8s.io/apiserver. What it cannot know, such as the answer of an
// authorizer, is a Gap, never a silent pass.
package policy
