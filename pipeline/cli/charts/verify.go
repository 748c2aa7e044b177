// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"errors"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/chart"
)

// State is what became of a locked chart.
type State string

// The states of a locked chart.
const (
	// Current means that the repository serves the locked archive, and has no newer version in the range.
	Current State = "current"
	// Newer means that a newer version exists in the range; the repository still serves the locked archive.
	Newer State = "newer"
	// Changed means that the repository serves another archive as the locked version: it was replaced.
	Changed State = "changed"
	// Lost means that the repository does not have the locked version any more.
	Lost State = "lost"
	// Missing means that a pipeline asks for a chart that is not locked.
	Missing State = "missing"
	// Unknown means that the repository could not be asked.
	Unknown State = "unknown"
)

// Status is the state of one chart.
type Status struct {
	// Lock is the file.
	Lock       string `json:"lock"`
	Name       string `json:"name"`
	Repository string `json:"repository"`
	Range      string `json:"range,omitempty"`
	// Version and Digest are those in the lock, empty where the chart is Missing.
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"`
	// Now is the version where the state is Newer, and the digest where it is Changed.
	Now   string `json:"now,omitempty"`
	State State  `json:"state"`
	// Message has details if the state is Unknown.
	Message string `json:"message,omitempty"`
}

// Verify asks the repositories of the charts requested by pipelines for the locked versions. Charts that are not
// requested are omitted.
func (f *LockFile) Verify(ctx context.Context, charts *chart.Fetcher) []Status {
	old := f.Old
	if old == nil {
		old = v1alpha1.NewChartLock(nil)
	}
	var out []Status
	for _, one := range f.Wanted {
		s := Status{Lock: f.Path, Name: one.Name, Repository: one.Repository, Range: one.Range, State: Missing}
		if locked := old.Find(one.Repository, one.Name, one.Range); locked != nil {
			s.Version, s.Digest = locked.Version, locked.Digest
			s.resolveServedState(ctx, charts, one)
		}
		out = append(out, s)
	}
	return out
}

// resolveServedState fills in the state.
func (s *Status) resolveServedState(ctx context.Context, charts *chart.Fetcher, wanted Wanted) {
	served, _, err := charts.Resolve(ctx, wanted.Namespace, wanted.From, wanted.Name, s.Version)
	switch {
	case errors.Is(err, chart.ErrNotFound):
		s.State = Lost
		return
	case err != nil:
		s.State, s.Message = Unknown, err.Error()
		return
	case served.Version != s.Version: // 1.2 may mean 1.2.3 if 1.2 does not exist
		s.State = Lost
		return
	case served.Digest != s.Digest:
		s.State, s.Now = Changed, served.Digest
		return
	}
	newest, err := charts.Choose(ctx, wanted.Namespace, wanted.From, wanted.Name, s.Range)
	switch {
	case err != nil:
		s.State, s.Message = Unknown, err.Error()
	case newest.Version != s.Version:
		s.State, s.Now = Newer, newest.Version
	default:
		s.State = Current
	}
}
