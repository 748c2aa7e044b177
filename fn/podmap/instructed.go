// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podmap

// KeepInstructed removes directives, such as $patch: delete, from those parts of a patch that the object does not
// have, so that the rest of it is added. Kubernetes' merge did so up to 1.27, with which Istio up to 1.18 is built;
// since then it leaves out what has a directive (source: removeDirectives in pkg/util/strategicpatch/patch.go of
// k8s.io/apimachinery v0.28, which v0.27 does not have). It modifies the patch.
func KeepInstructed(s *Schema, obj, patch map[string]any) {
	for key, v := range patch {
		f := s.Field(key)
		switch v := v.(type) {
		case map[string]any:
			sub, there := obj[key].(map[string]any)
			switch {
			case there && f != nil:
				KeepInstructed(f.Schema, sub, v)
			case there, f != nil && f.isAlwaysSerialized():
			default:
				dropDirectives(v)
			}
		case []any:
			if _, there := obj[key].([]any); !there {
				dropDirectives(v)
			}
		}
	}
}
