// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

func (v *validator) remoteBases(at string, build Build) {
	seen := map[string]bool{}
	for i, base := range build.RemoteBases {
		at := fmt.Sprintf("%s[%d]", at, i)
		if seen[base.URL] {
			v.addError(at+".url", "is given twice")
		}
		seen[base.URL] = true
		v.addProblems(at+".url", giturl.Check(base.URL))
		if _, err := giturl.ParsePattern(base.URL); err != nil {
			v.addError(at+".url", "cannot be allowed: %v", err)
		}
		if base.SecretRef != nil && base.SecretRef.Name == "" {
			v.addError(at+".secretRef.name", "must be given")
		}
	}
	hasKustomizations := build.Type == BuildAuto || build.Type == BuildKustomize || build.Type == BuildFlux || build.Releases != nil
	if len(build.RemoteBases) > 0 && !hasKustomizations {
		v.addError(at, "is for kustomizations, and type is %s", build.Type)
	}
}
