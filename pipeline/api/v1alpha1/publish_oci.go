// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// firstTag is the tag whose content counts.
func (o *OCIPublish) firstTag() string {
	if len(o.Tags) > 0 {
		return o.Tags[0]
	}
	return "latest"
}

// RepositoryKey is equal for all ways to write the URL of a repository of artifacts, with oci:// or without: Docker Hub has several
// names.
func RepositoryKey(url string) string {
	host, path, ok := strings.Cut(strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(url, "oci://"), "/")), "/")
	if !ok {
		return host
	}
	if host == "index.docker.io" || host == "registry-1.docker.io" {
		host = "docker.io"
	}
	if host == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return host + "/" + path
}

func (o *OCIPublish) describeTarget() string { return o.URL + ":" + o.firstTag() }

func (o *OCIPublish) url() string { return o.URL }

func (o *OCIPublish) describeForUsers() string {
	if len(o.Tags) == 0 {
		return o.URL + ", tagged latest"
	}
	return o.URL + ", tagged " + strings.Join(o.Tags, ", ")
}

func (o *OCIPublish) describeComparisonBase() string { return "artifact " + o.describeTarget() }

func (o *OCIPublish) layoutAndStyle() (Layout, Style) { return o.Layout, o.Style }

func (o *OCIPublish) publishDirectory() string { return "" }

func (o *OCIPublish) isRemovable() bool { return false }

func (o *OCIPublish) recordsSourceRevisions() bool { return false }

func (o *OCIPublish) claimedPlaces() (all []Place) {
	for i, tag := range o.Tags {
		key := RepositoryKey(o.URL) + ":" + tag
		all = append(all, Place{
			Key: key, Path: ".", field: "oci.tags",
			conflictMessage: func(who string) string {
				return key + " belongs to " + who + ": each run of one would move it away from the other"
			},
			duplicateField: fmt.Sprintf("oci.tags[%d]", i), duplicateMessage: "is a tag of spec.publish[%d] already: each run would move it to and fro",
		})
	}
	return all
}

func (o *OCIPublish) setDefaults(*RenderPipeline) {
	setDefault(&o.Layout, LayoutObjects)
	setDefault(&o.Style, StyleCanonical)
	if len(o.Tags) == 0 {
		o.Tags = []string{"latest"}
	}
}

func (o *OCIPublish) check(v *validator, at string, _ *RenderPipeline) {
	v.addProblems(at+".url", ociURLProblems(o.URL))
	if o.Signing != nil && o.Signing.SecretRef.Name == "" {
		v.addError(at+".signing.secretRef.name", "must name the secret with the key")
	}
	if o.Attestation != nil && o.Attestation.SecretRef.Name == "" {
		v.addError(at+".attestation.secretRef.name", "must name the secret with the key")
	}
	v.checkFormat(at, o.Layout, o.Style)
	for i, tag := range o.Tags {
		if !tagRule.MatchString(tag) {
			v.addError(fmt.Sprintf("%s.tags[%d]", at, i), "%q is not a valid tag", tag)
		}
	}
}

var tagRule = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
