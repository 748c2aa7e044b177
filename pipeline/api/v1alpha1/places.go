// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// namesBranch reports whether the reference names a branch. What it does not name is only known when the repository is read.
func (r GitRef) namesBranch(branch string) bool {
	return r.Branch == branch || r.Name == "refs/heads/"+branch
}

// checkPlaces refuses a second entry for a branch or a tag: a pipeline owns one set of files on a branch, so that each of two
// entries would remove what the other has written, in every run.
func (v *validator) checkPlaces(all []Publish) {
	tags := map[string]int{}
	for i, one := range all {
		if one.Git != nil && one.Git.Branch != "" {
			for j, other := range all[:i] {
				if other.Git != nil && one.Git.SameBranch(other.Git) {
					v.addError(fmt.Sprintf("spec.publish[%d].git.branch", i), "is the branch of spec.publish[%d] already, and a pipeline publishes to a "+
						"branch once; use another branch, or a second pipeline for the other path", j)
					break
				}
			}
		}
		if one.OCI == nil {
			continue
		}
		for k, tag := range one.OCI.Tags {
			name := strings.TrimSuffix(one.OCI.URL, "/") + ":" + tag
			if j, taken := tags[name]; taken && j != i {
				v.addError(fmt.Sprintf("spec.publish[%d].oci.tags[%d]", i, k), "is a tag of spec.publish[%d] already: each run would move it to and fro", j)
				continue
			}
			tags[name] = i
		}
	}
}

// checkPath checks that a path stays inside the tree that it is in.
func (v *validator) checkPath(at, value string) {
	clean := path.Clean(value)
	switch {
	case strings.HasPrefix(value, "/"):
		v.addError(at, "must be relative, found %q", value)
	case clean == ".." || strings.HasPrefix(clean, "../"):
		v.addError(at, "must not leave the tree, found %q", value)
	case strings.ContainsAny(value, "\\\x00\n"):
		v.addError(at, "must not contain a backslash, a line break or a zero byte")
	case len(value) > 1024 || slices.ContainsFunc(strings.Split(value, "/"), func(part string) bool { return len(part) > 255 }):
		v.addError(at, "must not be longer than 1024 bytes, nor a part of it than 255: it could not be checked out")
	}
}
