// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"strconv"
	"strings"
)

// The versions of Kubernetes whose kinds and schemas are known. A test compares them with the schemas.
const (
	OldestKubernetes = "1." + oldestMinor
	NewestKubernetes = "1." + newestMinor

	oldestMinor = "29"
	newestMinor = "37"
)

// KubernetesMinor returns the first two numbers of a version such as 1.34 or v1.34.2, and of the newest version that is known for "". The
// error names the versions that are known where the version is none of them.
func KubernetesMinor(version string) (string, error) {
	if version == "" {
		return NewestKubernetes, nil
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) >= 2 && parts[0] == "1" {
		minor := strings.TrimRight(parts[1], "+")
		if isKnownMinor(minor) {
			return "1." + minor, nil
		}
	}
	return "", fmt.Errorf("reading the version of Kubernetes %q: the schemas of %s to %s are known", version, OldestKubernetes, NewestKubernetes)
}

func isKnownMinor(text string) bool {
	oldest, _ := strconv.Atoi(oldestMinor)
	newest, _ := strconv.Atoi(newestMinor)
	minor, err := strconv.Atoi(text)
	return err == nil && strconv.Itoa(minor) == text && oldest <= minor && minor <= newest
}
