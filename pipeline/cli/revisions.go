// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
)

// revisionOf returns the revision that --revision sets for a pipeline's source, or "" if it sets none.
func (l *localPipelines) revisionOf(e catalog.Entry, mountPath string) string {
	for _, given := range l.revisions {
		if at, revision := l.splitRevision(given); at == mountPath && (at == "" || mountsSourceAt(e, at)) {
			return revision
		}
	}
	return ""
}

// splitRevision returns the mount path and the revision of a flag. References may hold an equals sign too, so only what
// pipelines mount at is a mount path.
func (l *localPipelines) splitRevision(given string) (mountPath, revision string) {
	at, revision, ok := strings.Cut(given, "=")
	if ok && slices.ContainsFunc(l.catalog.All(), func(e catalog.Entry) bool { return mountsSourceAt(e, at) }) {
		return at, revision
	}
	return "", given
}

// mountsSourceAt reports whether a pipeline has a further source at a path.
func mountsSourceAt(e catalog.Entry, at string) bool {
	return e.Pipeline != nil && slices.ContainsFunc(e.Pipeline.Spec.Sources, func(m v1alpha1.MountedSource) bool { return m.MountPath == at })
}

// checkRevisions rejects a source that is set twice, and a mount path that no pipeline has: the render would not
// match the command line.
func (l *localPipelines) checkRevisions() error {
	several := slices.ContainsFunc(l.catalog.All(), func(e catalog.Entry) bool { return e.Pipeline != nil && len(e.Pipeline.Spec.Sources) > 0 })
	seen := map[string]bool{}
	for _, given := range l.revisions {
		at, revision := l.splitRevision(given)
		name, _, ok := strings.Cut(given, "=")
		if several && at == "" && ok && !strings.Contains(name, "@") && strings.Contains(revision[len(name):], "@") {
			return fmt.Errorf("reading the flag --revision: no pipeline in %s mounts a source at %s", l.pipelines, name)
		}
		if seen[at] {
			return fmt.Errorf("the flag --revision %s: the revision of that source is set twice", given)
		}
		seen[at] = true
	}
	return nil
}

// hasMainRevision reports whether the revision of spec.source is set.
func (l *localPipelines) hasMainRevision() bool {
	return slices.ContainsFunc(l.revisions, func(given string) bool {
		at, _ := l.splitRevision(given)
		return at == ""
	})
}
