// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// NoteRequests notes the tokens of requests in the status and reports whether any was new. Where both are, it is the one that
// was given last: somebody waits for it.
func (s *State) NoteRequests(p *v1alpha1.RenderPipeline, control Control) (changed bool) {
	if annotation := p.Metadata.Annotations[meta.ReconcileRequestAnnotation]; annotation != s.Annotation {
		s.Annotation, changed = annotation, true
		if annotation != "" { // else it was taken away
			s.Status.LastHandledReconcileAt = annotation
		}
	}
	if s.Requests(control) {
		s.Requested, changed = control.RequestedAt, true
		s.Status.LastHandledReconcileAt = control.RequestedAt
	}
	return changed
}

// Asked reports whether somebody has asked for a run that did not come yet, with an annotation of the pipeline or otherwise.
func (s *State) Asked(p *v1alpha1.RenderPipeline, control Control) bool {
	annotation := p.Metadata.Annotations[meta.ReconcileRequestAnnotation]
	return annotation != "" && annotation != s.Annotation || s.Requests(control)
}

// Requests reports whether control holds a request that was not handled yet.
func (s *State) Requests(control Control) bool {
	return control.RequestedAt != "" && control.RequestedAt != s.Requested
}
