// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package feature

import "github.com/prerig/prerig/fn/istio/release"

// types maps releases of Istio to the minor of k8s.io/api, v0.N, that they are built with (source: go.mod at each
// of their tags). Unlisted releases use v0.20 or older.
var types = []struct {
	minor int
	in    release.Spans
}{
	{36, release.Since("1.31")},
	{35, release.Between("1.29", "1.30")},
	{34, release.Between("1.28", "1.28")},
	{33, release.Between("1.26.4", "1.27")},
	{32, release.Between("1.25", "1.26.3")},
	{31, release.Between("1.24", "1.24")},
	{30, release.Between("1.22", "1.23")},
	{29, release.Between("1.21", "1.21")},
	{28, release.Between("1.19", "1.20")},
	{27, release.Between("1.18", "1.18")},
	{26, release.Between("1.17", "1.17")},
	{25, release.Between("1.16", "1.16")},
	{24, release.Between("1.13.9", "1.13").And(release.Between("1.14.5", "1.15"))},
	{23, release.Between("1.13.0", "1.13.8").And(release.Between("1.14.0", "1.14.4"))},
	{22, release.Between("1.12", "1.12")},
	{21, release.Between("1.11", "1.11")},
}

// oldestTypes is what releases have that the table does not list.
const oldestTypes = 20

// KubernetesTypes returns the minor of Kubernetes whose types a release's injector decodes pods and templates into:
// 36 for those of Kubernetes 1.36. Newer fields do not exist for it.
func KubernetesTypes(r release.Release) int {
	for _, t := range types {
		if t.in.Contains(r) {
			return t.minor
		}
	}
	return oldestTypes
}
