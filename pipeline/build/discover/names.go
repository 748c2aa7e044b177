// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

var notInNames = lazyregexp.New(`[^a-z0-9]+`)

// maxReleaseName is the length of the longest name of a release of Helm.
const maxReleaseName = 53

// maxName is the length of the longest name of a pipeline.
const maxName = 63

// NameOf returns a text such as a path as the name of a pipeline, or "" if it has no letter or digit.
func NameOf(text string) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if len(name) > maxName {
		name = strings.TrimLeft(name[len(name)-maxName:], "-") // the end of a path is more distinctive than its beginning
	}
	return name
}

// NameOfURL returns the name of a pipeline for a whole repository or artifact, by the last part of its URL.
func NameOfURL(url string) string {
	return NameOf(strings.TrimSuffix(path.Base(strings.TrimRight(strings.ReplaceAll(url, ":", "/"), "/")), ".git"))
}

// nameBuilds names builds by their paths, and one of the root by the URL of the repository.
func nameBuilds(builds []Build, urls []string) {
	taken := map[string]bool{}
	for i := range builds {
		name := NameOf(builds[i].Path)
		if name == "" && len(urls) > 0 {
			name = NameOfURL(urls[0])
		}
		name = cmp.Or(name, "repository")
		unique := name
		for n := 2; taken[unique]; n++ {
			suffix := fmt.Sprintf("-%d", n)
			unique = strings.TrimRight(name[:min(len(name), maxName-len(suffix))], "-") + suffix
		}
		taken[unique] = true
		builds[i].Name = unique
	}
}
