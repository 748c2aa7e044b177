// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/telemetry"
)

// States returns the states of pipelines; those that need attention come first.
func States() []string { return slices.Clone(order) }

// Measure returns the metrics of every pipeline.
func (s *Server) Measure() []telemetry.Pipeline {
	var out []telemetry.Pipeline
	views := s.pipelineViews()
	for _, e := range s.Catalog.All() {
		view, state := views.viewPipeline(e), s.Store.Get(e.Key)
		p := telemetry.Pipeline{State: view.State, Suspended: view.Suspended, LastSuccess: state.LastSuccess(), ConsecutiveFailures: state.ConsecutiveFailures()}
		p.Namespace, p.Name = measuredName(e)
		if c := state.Condition(); c != nil {
			p.Ready = c.Status == metav1.ConditionTrue && e.Err == nil
		}
		out = append(out, p)
	}
	return out
}

// measurableName matches valid values of a metric label: the name in an invalid file could be anything.
var measurableName = lazyregexp.New(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// measuredName returns the identity of an entry's pipeline, or "" if its file does not contain it.
func measuredName(e catalog.Entry) (namespace, name string) {
	if e.Pipeline != nil {
		return e.Pipeline.Metadata.Namespace, e.Pipeline.Metadata.Name
	}
	namespace, name, ok := strings.Cut(e.Key, "/")
	if !ok {
		namespace, name = "", e.Key
	}
	if e.Opaque || !measurableName.MatchString(name) || ok && !measurableName.MatchString(namespace) {
		return "", ""
	}
	return namespace, name
}
