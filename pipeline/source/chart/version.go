// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
)

// chooseVersion returns the version that Helm chooses from those of an index: the one spelled exactly as requested,
// or otherwise the newest in the range (IndexFile.Get of pkg/repo/v1). Without a range that is the newest one that
// is not a pre-release.
func chooseVersion(have []string, versions string) (string, error) {
	return newestInRange(have, versions, semver.NewVersion)
}

// chooseTag is chooseVersion for the tags of a registry. Helm asks for an exact version without looking at the tags,
// and looks at those only that are semantic versions in full (pkg/registry, ValidateReference and
// GetTagMatchingVersionOrConstraint).
func chooseTag(have []string, versions string) (string, error) {
	if _, err := semver.NewVersion(versions); err == nil && !slices.Contains(have, versions) {
		return "", fmt.Errorf("%w: none of its %d tags is %s", ErrNotFound, len(have), versions)
	}
	return newestInRange(have, versions, semver.StrictNewVersion)
}

func newestInRange(have []string, versions string, parse func(string) (*semver.Version, error)) (string, error) {
	wanted := versions
	if wanted == "" {
		wanted = "*"
	}
	constraint, err := semver.NewConstraint(wanted)
	if err != nil {
		return "", fmt.Errorf("%q is not a range of versions: %w", versions, err)
	}
	if versions != "" && slices.Contains(have, versions) {
		return versions, nil
	}
	best, chosen := (*semver.Version)(nil), ""
	for _, text := range have {
		version, err := parse(text)
		if err != nil || !constraint.Check(version) || best != nil && !version.GreaterThan(best) {
			continue
		}
		best, chosen = version, text
	}
	if best == nil {
		if len(have) == 0 {
			return "", fmt.Errorf("%w: there is no chart of that name", ErrNotFound)
		}
		return "", fmt.Errorf("%w: none of its %d versions is in the range %s", ErrNotFound, len(have), wanted)
	}
	return chosen, nil
}

// InRange reports whether a version is one that a range may mean.
func InRange(version, versions string) bool {
	if version == versions {
		return true
	}
	if versions == "" {
		versions = "*"
	}
	constraint, err := semver.NewConstraint(versions)
	if err != nil {
		return false
	}
	parsed, err := semver.NewVersion(version)
	return err == nil && constraint.Check(parsed)
}
