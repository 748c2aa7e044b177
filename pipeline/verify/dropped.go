// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strings"
)

// droppedFields are fields of features that are off by default in a version of Kubernetes from 1.31 to 1.36 that has them. The
// API server drops them without a word, so that nobody can tell from the pod why they are not there.
var droppedFields = []string{"stopSignal", "fileKeyRef", "restartPolicyRules", "hostnameOverride", "clusterTrustBundle", "podCertificate"}

// droppedFeature reports whether a change is that the API server has dropped such fields.
func droppedFeature(place string, c change) bool {
	if c.want == nil || c.order {
		return false
	}
	if c.found == nil && slices.Contains(droppedFields, c.last()) {
		return true
	}
	if !strings.HasSuffix(place, ".lifecycle") && !strings.HasSuffix(place, ".projected.sources") && !strings.HasSuffix(place, ".valueFrom") {
		return false
	}
	left, dropped := withoutDropped(c.want)
	if !dropped {
		return false
	}
	if m, ok := left.(map[string]any); ok && len(m) == 0 && c.found == nil {
		return true
	}
	return sameJSON(left, c.found)
}

// withoutDropped returns a value without such fields, and whether it had some.
func withoutDropped(v any) (out any, dropped bool) {
	switch v := v.(type) {
	case map[string]any:
		left := make(map[string]any, len(v))
		for key, value := range v {
			if slices.Contains(droppedFields, key) {
				dropped = true
				continue
			}
			one, had := withoutDropped(value)
			left[key], dropped = one, dropped || had
		}
		return left, dropped
	case []any:
		left := make([]any, len(v))
		for i, value := range v {
			one, had := withoutDropped(value)
			left[i], dropped = one, dropped || had
		}
		return left, dropped
	}
	return v, false
}
