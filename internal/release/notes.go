// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// makeNotes creates the notes of the release: the section of CHANGELOG.md for the release, or for unreleased
// changes, and the commits since the last release.
func (r *release) makeNotes(context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := releaseNotes(r.Version, string(changelog), r.revision)
	if err != nil {
		return err
	}
	for _, i := range r.published {
		text += fmt.Sprintf("- `%s`\n", i.imageReferenceWithDigest(r.Version))
	}
	if r.signer == nil {
		text += "\nThis release is not signed.\n"
	}
	return r.writeReleaseFile("release-notes.md", []byte(text))
}

func releaseNotes(version, changelog string, revision *revision) (string, error) {
	changes := changelogSection(changelog, version)
	if changes == "" {
		changes = changelogSection(changelog, strings.TrimPrefix(version, "v"))
	}
	if changes == "" {
		changes = changelogSection(changelog, "Unreleased")
	}
	if changes == "" {
		return "", errors.New("CHANGELOG.md is empty under ## " + version + ", nor under ## Unreleased: write what users notice")
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# Prerig %s\n\n%s\n\n## Commits", version, changes)
	if revision.previous != "" {
		fmt.Fprintf(&text, " since %s", revision.previous)
	}
	text.WriteString("\n\n")
	for _, subject := range revision.subjects {
		fmt.Fprintf(&text, "- %s\n", subject)
	}
	text.WriteString("\n## Images\n\n")
	return text.String(), nil
}
