// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package workload knows where a Kubernetes object keeps its pod template, and which controller the pods made from
// it will have. It reads a template and writes a changed one back; it never changes an object in place, never
// decides whether a template is injected, and reads only the object that is passed to it.
package workload
