// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package attestation makes and reads signed statements about published files and artifacts: which source, policies, programs and
// captured cluster produced them. A statement is an in-toto Statement v1 with the predicate of SLSA provenance v1 in a Sigstore bundle, so that other
// programs, such as cosign verify-blob-attestation, can verify it. Nothing is sent to a transparency log.
package attestation

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
)

const (
	statementType = "https://in-toto.io/Statement/v1"
	buildType     = "https://github.com/prerig/prerig/blob/main/docs/attestations.md#what-a-statement-contains"
	builderID     = "https://github.com/prerig/prerig"
)

// PredicateType is that of the statements: SLSA provenance v1.
const PredicateType = "https://slsa.dev/provenance/v1"

// Resource is an in-toto ResourceDescriptor: something with a name or an address and its digests by their algorithms, in hexadecimal.
type Resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// Statement is an in-toto Statement v1 (in-toto/attestation, spec/v1/statement.md).
type Statement struct {
	Type          string     `json:"_type"`
	Subject       []Resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     Provenance `json:"predicate"`
}

// Provenance is the predicate of SLSA provenance v1 (slsa.dev/spec/v1.0/provenance), without times: they would change with each run.
type Provenance struct {
	BuildDefinition BuildDefinition `json:"buildDefinition"`
	RunDetails      RunDetails      `json:"runDetails"`
}

// BuildDefinition describes the inputs.
type BuildDefinition struct {
	BuildType            string     `json:"buildType"`
	ExternalParameters   Parameters `json:"externalParameters"`
	ResolvedDependencies []Resource `json:"resolvedDependencies"`
}

// Parameters are the pipeline, its directory on the branch ("" for an artifact), and the command that renders the files again.
type Parameters struct {
	Pipeline string `json:"pipeline"`
	Path     string `json:"path"`
	Command  string `json:"command,omitempty"`
}

// RunDetails describes the programs.
type RunDetails struct {
	Builder Builder `json:"builder"`
}

// Builder is Prerig with its version.
type Builder struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version,omitempty"`
}

// Files returns files as the subjects of a statement. They are contents by their paths on the branch.
func Files(files map[string][]byte) []Resource {
	out := []Resource{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, Resource{Name: name, Digest: SHA256(files[name])})
	}
	return out
}

// New returns the statement about subjects. inputs are the sources, policies and captured clusters, in their order. version is that of
// Prerig, or "".
func New(subjects []Resource, parameters Parameters, inputs []Resource, version string) Statement {
	s := Statement{Type: statementType, PredicateType: PredicateType, Subject: subjects}
	s.Predicate.BuildDefinition = BuildDefinition{BuildType: buildType, ExternalParameters: parameters, ResolvedDependencies: inputs}
	s.Predicate.RunDetails.Builder.ID = builderID
	if version != "" {
		s.Predicate.RunDetails.Builder.Version = map[string]string{"prerig": version}
	}
	return s
}

// Digests returns the SHA-256 digests of the subjects by their names.
func (s *Statement) Digests() map[string]string {
	out := make(map[string]string, len(s.Subject))
	for _, r := range s.Subject {
		out[r.Name] = r.Digest["sha256"]
	}
	return out
}

// SHA256 returns the digest of a content as a Resource has it.
func SHA256(content []byte) map[string]string {
	sum := sha256.Sum256(content)
	return map[string]string{"sha256": hex.EncodeToString(sum[:])}
}
