// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package verify compares the pods of a cluster with what was committed for them. For each pod it finds the
// committed workload that its owners lead to, derives from that workload's template the pod that the API server and
// the controllers of Kubernetes would make, and reports where the two differ, since when, and who did that as far
// as the pod reveals it.
//
// It works on values: verify/live reads a cluster, verify/rendered reads commits.
package verify
