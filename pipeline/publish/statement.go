// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"crypto"
	"fmt"
	"strings"

	"github.com/prerig/prerig/pipeline/attestation"
	"github.com/prerig/prerig/pipeline/render"
)

// StatementDir is the directory of a branch with the signed statements about the files of its pipelines.
const StatementDir = metaDir + "/statements"

// statementEnding is none that Flux or Argo CD would read as a manifest.
const statementEnding = ".sigstore"

// StatementFile returns the path on a branch of the statement about a pipeline's files.
func StatementFile(pipeline string) string {
	return StatementDir + "/" + shortName(strings.ReplaceAll(pipeline, "/", "__"), statementEnding)
}

// AttestedPolicies names policies by their origins and digests, for a statement.
func AttestedPolicies(policies []render.Policy) []attestation.Resource {
	var out []attestation.Resource
	for _, p := range policies {
		out = append(out, attestation.Resource{Name: "policy " + p.Origin, Digest: attestation.SHA256([]byte(p.YAML))})
	}
	return out
}

// signStatement returns the signed statement about what a change publishes.
func (s *ArtifactSigner) signStatement(c Change, subjects []attestation.Resource) ([]byte, error) {
	inputs := []attestation.Resource{sourceResource("source", c.Origin.URL, c.Origin.Revision)}
	for _, one := range c.Origin.Mounted {
		if one.URL != c.Origin.URL || one.Revision != c.Origin.Revision {
			inputs = append(inputs, sourceResource("source "+one.MountPath, one.URL, one.Revision))
		}
	}
	inputs = append(inputs, c.Policies...)
	for _, digest := range c.Snapshots {
		inputs = append(inputs, attestation.Resource{Name: "cluster snapshot", Digest: digestOf(digest)})
	}
	parameters := attestation.Parameters{Pipeline: c.Pipeline, Path: c.Path, Command: c.Command}
	return attestation.Sign(s.key, attestation.New(subjects, parameters, inputs, c.Tool))
}

// sourceResource names a source by its URL and by the commit or digest at the end of its revision, such as main@sha1:….
func sourceResource(name, url, revision string) attestation.Resource {
	_, digest, _ := strings.Cut(revision, "@")
	if digest == "" {
		digest = revision
	}
	if commit, ok := strings.CutPrefix(digest, "sha1:"); ok {
		return attestation.Resource{Name: name, URI: "git+" + url, Digest: map[string]string{"gitCommit": commit}}
	}
	return attestation.Resource{Name: name, URI: url, Digest: digestOf(digest)}
}

// digestOf returns ALGORITHM:HEX as a resource has it.
func digestOf(text string) map[string]string {
	algorithm, hex, ok := strings.Cut(text, ":")
	if !ok {
		return nil
	}
	return map[string]string{algorithm: hex}
}

// lacksStatement reports whether the branch has no statement of the change's key about exactly these files. Without a key, it reports
// whether it has one all the same, unless the change is read back from a branch.
func (e *branchEdit) lacksStatement(c Change, files map[string][]byte) (bool, error) {
	text, exists, err := e.draft.Content(e.root, StatementFile(c.Pipeline))
	switch {
	case err != nil:
		return false, fmt.Errorf("reading %s of the branch: %w", StatementFile(c.Pipeline), err)
	case c.identities != nil:
		return !bytes.Equal(text, c.statement), nil
	case c.Remove || e.attester == nil:
		return exists, nil
	case !exists:
		return true, nil
	}
	known, err := attestation.Open(text, []crypto.PublicKey{e.attester.key.Public()})
	if err != nil {
		return true, nil // another key signed it, or a person has edited it
	}
	digests := known.Digests()
	for name, content := range files {
		if digests[name] != attestation.SHA256(content)["sha256"] {
			return true, nil
		}
	}
	return len(digests) != len(files), nil
}

// stageStatement enters the statement about a change, or removes the one that no longer holds.
func (e *branchEdit) stageStatement(c Change, files map[string][]byte) error {
	name := StatementFile(c.Pipeline)
	switch {
	case c.Remove:
	case c.identities != nil:
		if c.statement != nil {
			e.files[name] = c.statement
			return nil
		}
	case e.attester != nil:
		text, err := e.attester.signStatement(c, attestation.Files(files))
		if err != nil {
			return err
		}
		e.files[name] = text
		return nil
	}
	return e.removeStatement(c.Pipeline)
}

// removeStatement removes the statement about the files of a pipeline, if the branch has one.
func (e *branchEdit) removeStatement(pipeline string) error {
	_, exists, err := e.draft.Content(e.root, StatementFile(pipeline))
	if err != nil {
		return fmt.Errorf("reading %s of the branch: %w", StatementFile(pipeline), err)
	}
	if exists {
		e.files[StatementFile(pipeline)] = nil
	}
	return nil
}
