// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/prerig/prerig/pipeline/source/chart"
)

// State is what became of an entry of a lock.
type State string

// The states of an entry.
const (
	// Current means that the server has what is locked, and nothing newer.
	Current State = "current"
	// Newer means that a newer version exists in the range of a chart, or a newer commit on a branch; the server still
	// has what is locked.
	Newer State = "newer"
	// Changed means that the server has another archive as the locked version, another commit for a tag, or another
	// file.
	Changed State = "changed"
	// Lost means that the server does not have the locked version, or the branch or tag, any more.
	Lost State = "lost"
	// Missing means that a pipeline asks for what is not locked.
	Missing State = "missing"
	// Unknown means that the server could not be asked.
	Unknown State = "unknown"
)

// Status is the state of one chart, remote base, remote file or image.
type Status struct {
	// Lock is the file.
	Lock string `json:"lock"`
	// Name is that of a chart, and Repository that of a chart or a remote base. URL is that of a remote file.
	Name       string `json:"name,omitempty"`
	Repository string `json:"repository,omitempty"`
	URL        string `json:"url,omitempty"`
	// Image is that of an ImageLock.
	Image string `json:"image,omitempty"`
	// Range is that of a chart, Ref that of a base.
	Range string `json:"range,omitempty"`
	Ref   string `json:"ref,omitempty"`
	// Version, Commit and Digest are those in the lock, empty where the entry is Missing.
	Version string `json:"version,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Digest  string `json:"digest,omitempty"`
	// Now is the version or commit where the state is Newer, and the digest or commit where it is Changed.
	Now   string `json:"now,omitempty"`
	State State  `json:"state"`
	// Message has details if the state is Unknown.
	Message string `json:"message,omitempty"`
}

// String is one line without the state: what it is, and its version in the lock.
func (s Status) String() string {
	switch {
	case s.URL != "":
		return "file " + s.URL
	case s.Image != "":
		return "image " + s.Image
	case s.Name != "":
		return strings.Join(strings.Fields(s.Name+" "+s.Version), " ") + " of " + s.Repository
	}
	return "base " + strings.Join(strings.Fields(s.Repository+" "+cmp.Or(s.Ref, "HEAD")+" "+s.Commit), " ")
}

// Verify asks the repositories of the charts requested by pipelines for the locked versions, and compares the remote
// bases and files, which are to be found with build.CompareLocked. What is not requested is omitted.
func (f *File) Verify(ctx context.Context, charts *chart.Fetcher) []Status {
	var out []Status
	for _, one := range f.Wanted {
		s := Status{Lock: f.Path, Name: one.Name, Repository: one.Repository, Range: one.Range, State: Missing}
		if locked := f.Old.Find(one.Repository, one.Name, one.Range); locked != nil {
			s.Version, s.Digest = locked.Version, locked.Digest
			s.resolveServedState(ctx, charts, one)
		}
		out = append(out, s)
	}
	for _, one := range f.Bases {
		s := Status{Lock: f.Path, Repository: one.Repository, Ref: one.Ref, State: Missing}
		if locked := findBase(f.Old.Spec.Bases, one.LockedBase); locked != nil {
			s.Commit = locked.Commit
			s.compareServed(locked.Commit, one.Now, one.Err, !one.Tag)
		}
		out = append(out, s)
	}
	for _, one := range f.Files {
		s := Status{Lock: f.Path, URL: one.URL, State: Missing}
		if locked := f.Old.FindFile(one.URL); locked != nil {
			s.Digest = locked.Digest
			s.compareServed(locked.Digest, one.Now, one.Err, false)
		}
		out = append(out, s)
	}
	return out
}

// compareServed fills in the state of a remote base or file. A branch moves; a tag and a file are meant to stay.
func (s *Status) compareServed(locked, now string, err error, moves bool) {
	switch {
	case err != nil:
		s.State, s.Message = Unknown, err.Error()
	case now == "":
		s.State = Lost
	case now == locked:
		s.State = Current
	case moves:
		s.State, s.Now = Newer, now
	default:
		s.State, s.Now = Changed, now
	}
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
