// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"regexp"

	"github.com/prerig/prerig/fn/podmap"
)

// checkFilterVersions reports a filter whose patches all name versions that no proxy it is for has. Versions that are no numbers, as
// of own builds, are not compared.
func checkFilterVersions(s *workloadSet) []setFinding {
	var out []setFinding
	for _, f := range s.objects["EnvoyFilter"] {
		var wanted []*regexp.Regexp
		patches := podmap.Maps(f.spec["configPatches"])
		for _, patch := range patches {
			text := textOf(podmap.MapAt(patch, "match", "proxy")["proxyVersion"])
			if re, err := regexp.Compile(text); text != "" && err == nil {
				wanted = append(wanted, re)
			}
		}
		if len(patches) == 0 || len(wanted) < len(patches) {
			continue
		}
		count := map[string]int{}
		fits := false
		for _, pod := range s.proxiesSelectedBy(f) {
			release := proxyRelease(pod.image)
			v, ok := parseVersion(release)
			if !ok || v.patch < 0 {
				fits = true // not known
				break
			}
			count[release]++
			for _, re := range wanted {
				fits = fits || re.MatchString(release)
			}
		}
		if fits || len(count) == 0 {
			continue
		}
		out = append(out, f.newFinding("spec.configPatches[0].match.proxy.proxyVersion",
			fmt.Sprintf("no patch is for version %s, which the proxies have: the filter has no effect on them", mostCommon(count))))
	}
	return out
}
