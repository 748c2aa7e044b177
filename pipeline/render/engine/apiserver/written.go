// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/chain"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// writtenPolicies returns the MutatingAdmissionPolicies whose changes are written into the pod of a request.
func writtenPolicies(r *request.Request) []string {
	pod, ok := r.Object.(*corev1.Pod)
	if !ok {
		return nil
	}
	return fn.WrittenPolicies(pod.Annotations)
}

// checkWritten reports the fields of a pod that MutatingAdmissionPolicies change although their changes are written: the pod that
// runs is not the one that was reviewed.
func checkWritten(c *checker, o gate.Object, r *request.Request, a *chain.Admission) {
	written := writtenPolicies(r)
	if len(written) == 0 || a.Rejected != "" {
		return
	}
	byPolicy := map[string][]string{}
	for _, change := range a.Trace.Reasons(podParts(chain.Map(r.Object.(*corev1.Pod))), podParts(chain.Map(a.Pod))) {
		if name, ok := strings.CutPrefix(change.Cause.Object, "MutatingAdmissionPolicy "); ok && slices.Contains(written, name) {
			byPolicy[name] = append(byPolicy[name], change.Path)
		}
	}
	for _, name := range written {
		if found := byPolicy[name]; len(found) > 0 {
			message := fmt.Sprintf("the changes of MutatingAdmissionPolicy %s are written, and the API server would change the pod again: %s", name, listFields(found))
			c.addFieldFinding(o, gate.CodeWrittenAgain, longestExistingPath(append(slices.Clone(r.Path), "spec"), o.Value), message)
		}
	}
}

// shownFields is how many fields a message names.
const shownFields = 3

func listFields(paths []string) string {
	if len(paths) <= shownFields+1 {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more fields", strings.Join(paths[:shownFields], ", "), len(paths)-shownFields)
}
