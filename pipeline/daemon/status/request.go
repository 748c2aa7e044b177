// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// NoteRequests records the tokens of requests in the status and reports whether any was new. If both are new, the
// one that was set last counts: its requester is waiting.
func (s *State) NoteRequests(p *v1alpha1.RenderPipeline, control Control) (changed bool) {
	for _, asks := range s.runRequestAnnotations() {
		if annotation := p.Metadata.Annotations[asks.name]; annotation != *asks.handled {
			*asks.handled, changed = annotation, true
			if annotation != "" { // otherwise it was removed
				s.Status.LastHandledReconcileAt = annotation
			}
		}
	}
	if s.Requests(control) {
		s.Requested, changed = control.RequestedAt, true
		s.Status.LastHandledReconcileAt = control.RequestedAt
	}
	return changed
}

// Asked reports whether a run was requested that has not happened yet, with an annotation of the pipeline or
// otherwise.
func (s *State) Asked(p *v1alpha1.RenderPipeline, control Control) bool {
	for _, asks := range s.runRequestAnnotations() {
		if annotation := p.Metadata.Annotations[asks.name]; annotation != "" && annotation != *asks.handled {
			return true
		}
	}
	return s.Requests(control)
}

// asking is an annotation that asks for a run, with the last value that was handled.
type asking struct {
	name    string
	handled *string
}

// runRequestAnnotations returns those that request a run. The process that set one waits for its value; if both are
// new, Flux' command is the one that waits.
func (s *State) runRequestAnnotations() []asking {
	return []asking{{v1alpha1.RequestAnnotation, &s.OwnAnnotation}, {meta.ReconcileRequestAnnotation, &s.Annotation}}
}

// Requests reports whether control holds a request that was not handled yet.
func (s *State) Requests(control Control) bool {
	return control.RequestedAt != "" && control.RequestedAt != s.Requested
}
