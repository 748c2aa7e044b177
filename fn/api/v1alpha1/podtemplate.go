// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"
)

// PathPart is a part of the path of a pod template.
type PathPart struct {
	// Key of the field.
	Key string
	// Each means that the field is a list or a map of which every element is meant.
	Each bool
}

// ParsePodTemplatePath reads a path such as spec.template or spec.tfReplicaSpecs[].template.
func ParsePodTemplatePath(s string) ([]PathPart, error) {
	if s == "" {
		return nil, fmt.Errorf("is empty; write the path of the object that has metadata and spec of the pod, such as spec.template")
	}
	var parts []PathPart
	for _, word := range strings.Split(s, ".") {
		key, each := strings.CutSuffix(word, "[]")
		if key == "" || strings.ContainsAny(key, "[]{}()*/\"' \t\n$") {
			return nil, fmt.Errorf("%q has the part %q, which is not a field name; write a path such as spec.template or spec.replicaSpecs[].template", s, word)
		}
		parts = append(parts, PathPart{Key: key, Each: each})
	}
	return parts, nil
}

// GroupVersion splits the APIVersion: "group/version", "group/*", or "version" of the core group. The version is
// empty for any version.
func (w WorkloadKind) GroupVersion() (group, version string, err error) {
	s := w.APIVersion
	group, version, ok := strings.Cut(s, "/")
	if !ok {
		group, version = "", s
	}
	switch {
	case s == "":
		return "", "", fmt.Errorf("is empty; write group/version, such as argoproj.io/v1alpha1, or group/*")
	case version == "" || strings.Contains(version, "/") || (ok && group == "") || strings.Contains(group, "*"):
		return "", "", fmt.Errorf("%q is not group/version, group/* or a version", s)
	case version == "*" && !ok:
		return "", "", fmt.Errorf("%q needs a group, such as argoproj.io/*", s)
	case version == "*":
		version = ""
	}
	return group, version, nil
}
