// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/source/content"
)

// releaseKinds are the kinds of releases in the order in which they are named.
var releaseKinds = []string{"HelmRelease", "Application", "ApplicationSet"}

// DescribeReleases names the objects whose workloads are not in the files, because a controller renders them:
// HelmReleases and Applications. It returns "" without any.
func (b *Batch) DescribeReleases() string {
	counts := map[string]int{}
	var places []string
	for _, f := range b.Files {
		for i, d := range f.docs {
			if !d.Contains("HelmRelease") && !d.Contains("Application") {
				continue
			}
			meta, ok := d.Peek()
			if ok && !f.idle[i] && workload.IsRelease(meta.APIVersion, meta.Kind) {
				counts[meta.Kind]++
				places = append(places, f.Input.Path)
			}
		}
	}
	var parts []string
	for _, kind := range releaseKinds {
		switch n := counts[kind]; n {
		case 0:
		case 1:
			parts = append(parts, "1 "+kind)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", n, kind))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + content.Places(places)
}

// releaseNote is the line about releases.
func (b *Batch) releaseNote() result.Results {
	releases := b.DescribeReleases()
	if releases == "" {
		return nil
	}
	return result.Results{{Severity: result.Info, Message: releases + ": the workloads that they install are not in the files; a pipeline with spec.build.releases renders them"}}
}
