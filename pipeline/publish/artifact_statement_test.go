// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"crypto"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/prerig/prerig/pipeline/attestation"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// statementsAbout returns the statements about a digest that one of the keys signed.
func statementsAbout(t *testing.T, r *oci.Registry, digest string, keys ...crypto.PublicKey) (out []*attestation.Statement) {
	t.Helper()
	index, err := remote.Referrers(r.Repository.Digest(digest))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range manifest.Manifests {
		if d.ArtifactType != attestation.BundleMediaType {
			t.Errorf("the referrer is of type %q", d.ArtifactType)
		}
		image, err := remote.Image(r.Repository.Digest(d.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		layers, err := image.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("the referrer has %d layers, %v", len(layers), err)
		}
		content, err := layers[0].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := attestation.Open(text, keys); err == nil {
			out = append(out, s)
		}
	}
	return out
}

// TestStatementAboutAnArtifact publishes to registries with and without the API for referrers: each digest gets one statement for each key,
// before a tag leads to it.
func TestStatementAboutAnArtifact(t *testing.T) {
	for name, referrers := range map[string]bool{"referrers": true, "fallback": false} {
		t.Run(name, func(t *testing.T) {
			handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers))
			var written []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
					written = append(written, filepath.Base(r.URL.Path))
				}
				handler.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			r, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/rendered/shop", nil, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			secret, public := cosignKey(t)
			key, err := cryptoutils.UnmarshalPEMToPublicKey(public)
			if err != nil {
				t.Fatal(err)
			}
			a := &publish.Artifact{Registry: r, Tags: []string{"latest"}, Attester: signer(t, secret)}
			push := func(value string) publish.ArtifactResult {
				t.Helper()
				result, err := a.Publish(ctx, attestedChange(t, configMap("a", value)))
				if err != nil {
					t.Fatal(err)
				}
				return result
			}
			first := push("1")
			if written[len(written)-1] != "latest" {
				t.Errorf("the tag was not the last to be written: %v", written)
			}
			found := statementsAbout(t, r, first.Digest, key)
			if len(found) != 1 || len(found[0].Subject) != 1 || "sha256:"+found[0].Subject[0].Digest["sha256"] != first.Digest {
				t.Fatalf("the statements are %+v", found)
			}
			inputs := found[0].Predicate.BuildDefinition.ResolvedDependencies
			if len(inputs) != 3 || inputs[0].Digest["gitCommit"] != "abc" || inputs[1].Name != "policy mesh.yaml" || inputs[2].Digest["sha256"] != "5eed" {
				t.Errorf("the inputs are %+v", inputs)
			}
			if push("1").Changed {
				t.Error("the same files were attested again")
			}
			other, otherPublic := cosignKey(t)
			otherKey, err := cryptoutils.UnmarshalPEMToPublicKey(otherPublic)
			if err != nil {
				t.Fatal(err)
			}
			a.Attester = signer(t, other)
			if !push("1").Changed || len(statementsAbout(t, r, first.Digest, otherKey)) != 1 || len(statementsAbout(t, r, first.Digest, key)) != 1 {
				t.Error("another key made no statement, or replaced that of the first")
			}
			second := push("2")
			if len(statementsAbout(t, r, second.Digest, otherKey)) != 1 || len(statementsAbout(t, r, second.Digest, key)) != 0 {
				t.Error("the second artifact has not one statement of the new key")
			}
			cosignVerifyAttestation(t, r, second.Digest, otherPublic, public)
		})
	}
}

// cosignVerifyAttestation asks the cosign command that PRERIG_COSIGN names to accept a statement with one key and to refuse it with another.
func cosignVerifyAttestation(t *testing.T, r *oci.Registry, digest string, public, wrong []byte) {
	t.Helper()
	cosign := os.Getenv("PRERIG_COSIGN")
	if cosign == "" {
		return
	}
	verify := func(key []byte) (string, error) {
		name := filepath.Join(t.TempDir(), "cosign.pub")
		if err := os.WriteFile(name, key, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(cosign, "verify-attestation", "--key", name, "--type", "slsaprovenance1", "--insecure-ignore-tlog",
			"--allow-http-registry", r.Repository.Name()+"@"+digest).CombinedOutput()
		return string(out), err
	}
	if out, err := verify(public); err != nil {
		t.Errorf("verifying the statement: %v\n%s", err, out)
	}
	if out, err := verify(wrong); err == nil {
		t.Errorf("another key was accepted:\n%s", out)
	}
}
