// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

func TestRequestsAreHandledOnce(t *testing.T) {
	p, state := &v1alpha1.RenderPipeline{}, &State{}
	for i, step := range []struct {
		annotation, control string
		changed             bool
		handled             string
	}{
		{"", "", false, ""},
		{"", "t1", true, "t1"},
		{"", "t1", false, "t1"},
		{"a1", "t1", true, "a1"},
		{"a1", "t1", false, "a1"}, // an old request does not come back after a newer one
		{"a1", "t2", true, "t2"},
		{"a2", "t3", true, "t3"}, // somebody waits for t3
		{"a2", "t3", false, "t3"},
	} {
		p.Metadata.Annotations = map[string]string{meta.ReconcileRequestAnnotation: step.annotation}
		control := Control{RequestedAt: step.control, Force: true}
		was := state.Requests(control)
		if changed := state.NoteRequests(p, control); changed != step.changed || state.Status.LastHandledReconcileAt != step.handled {
			t.Errorf("step %d: changed %v, handled %q; want %v, %q", i, changed, state.Status.LastHandledReconcileAt, step.changed, step.handled)
		}
		if was != strings.HasPrefix(step.handled, "t") && step.changed || state.Requests(control) {
			t.Errorf("step %d: requested %v before, %v after", i, was, state.Requests(control))
		}
	}
}
