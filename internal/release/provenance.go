// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	statementType = "application/vnd.in-toto+json"
	predicateType = "https://slsa.dev/provenance/v1"
	// buildType documents the meaning of the parameters of a build.
	buildType = "https://github.com/prerig/prerig/blob/main/docs/releasing.md#content-of-the-provenance"
)

// makeProvenance states for all files and images what they were built from: an in-toto statement with SLSA's
// predicate in a DSSE envelope. It contains no build times and no machine name, since no output depends on them.
func (r *release) makeProvenance(context.Context) error {
	statement, err := r.provenanceStatement()
	if err != nil {
		return err
	}
	payload, err := protojson.Marshal(statement)
	if err != nil {
		return err
	}
	if payload, err = compactJSON(payload); err != nil {
		return err
	}
	type signature struct {
		KeyID string `json:"keyid,omitempty"`
		Sig   string `json:"sig"`
	}
	envelope := struct {
		PayloadType string      `json:"payloadType"`
		Payload     string      `json:"payload"`
		Signatures  []signature `json:"signatures"`
	}{statementType, base64.StdEncoding.EncodeToString(payload), []signature{}}
	name := fmt.Sprintf("prerig_%s.intoto.jsonl", r.Version)
	if r.signer != nil {
		bundle, err := r.signer.signStatement(payload)
		if err != nil {
			return err
		}
		var parts struct {
			DSSEEnvelope struct{ Signatures []signature } `json:"dsseEnvelope"`
		}
		if err := json.Unmarshal(bundle, &parts); err != nil {
			return err
		}
		envelope.Signatures = parts.DSSEEnvelope.Signatures
		if err := r.writeReleaseFile(fmt.Sprintf("prerig_%s.intoto.sigstore.json", r.Version), bundle); err != nil {
			return err
		}
	}
	text, err := json.Marshal(envelope)
	if err != nil {
		return err
	}
	return r.writeReleaseFile(name, append(text, '\n'))
}

// provenanceStatement is about everything that was made so far.
func (r *release) provenanceStatement() (*intoto.Statement, error) {
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: predicateType}
	for _, name := range r.sortedFileNames() {
		statement.Subject = append(statement.Subject,
			&intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": r.digests[name]}})
	}
	for _, i := range r.published {
		statement.Subject = append(statement.Subject,
			&intoto.ResourceDescriptor{Name: i.name, Digest: map[string]string{i.digest.Algorithm: i.digest.Hex}})
	}
	var platforms []any
	for _, p := range r.Platforms {
		platforms = append(platforms, p.OS+"/"+p.Arch)
	}
	parameters, err := structpb.NewStruct(map[string]any{"version": r.Version, "images": r.Images, "url": r.URL, "platforms": platforms})
	if err != nil {
		return nil, err
	}
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: buildType, ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+https://github.com/prerig/prerig@refs/tags/" + r.Version,
					Digest: map[string]string{"gitCommit": r.revision.commit}},
				{Uri: "https://go.dev/dl/#" + r.revision.goes, Name: r.revision.goes},
			},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: r.Builder}},
	}
	text, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, err
	}
	statement.Predicate = &structpb.Struct{}
	if err := protojson.Unmarshal(text, statement.Predicate); err != nil {
		return nil, err
	}
	return statement, statement.Validate()
}

// compactJSON removes the spaces from JSON, since protojson varies them by the build of the program.
func compactJSON(text []byte) ([]byte, error) {
	var b bytes.Buffer
	err := json.Compact(&b, text)
	return b.Bytes(), err
}
