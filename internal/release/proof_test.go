// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore/pkg/signature"
	signaturedsse "github.com/sigstore/sigstore/pkg/signature/dsse"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
	"google.golang.org/protobuf/encoding/protojson"
)

// checkProofs verifies with Sigstore's, in-toto's and SPDX' own code what checks a release.
func checkProofs(t *testing.T, out string, key *ecdsa.PublicKey) {
	t.Helper()
	verifier, err := signature.LoadECDSAVerifier(key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	sums := readOut(t, out, checksumsFile)
	var bundle protobundle.Bundle
	if err := protojson.Unmarshal(readOut(t, out, checksumsFile+".sigstore.json"), &bundle); err != nil {
		t.Fatal(err)
	}
	signed := bundle.GetMessageSignature().GetSignature()
	if err := verifier.VerifySignature(bytes.NewReader(signed), bytes.NewReader(sums)); err != nil {
		t.Error(err)
	}
	if err := verifier.VerifySignature(bytes.NewReader(signed), bytes.NewReader(append(sums, ' '))); err == nil {
		t.Error("another file passes the same signature")
	}

	envelope := readOut(t, out, "prerig_v0.2.0.intoto.jsonl")
	if err := signaturedsse.WrapVerifier(verifier).VerifySignature(bytes.NewReader(bytes.TrimSpace(envelope)), nil); err != nil {
		t.Error(err)
	}
	var parts dsse.Envelope
	if err := json.Unmarshal(envelope, &parts); err != nil {
		t.Fatal(err)
	}
	payload, err := parts.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	checkStatement(t, out, payload)
	for _, file := range []string{"prerig_v0.2.0_linux_amd64.tar.gz", "prerig_v0.2.0_image.tar", "prerig-fn_v0.2.0_windows_arm64.zip"} {
		checkBills(t, out, file)
	}
}

func checkStatement(t *testing.T, out string, payload []byte) {
	t.Helper()
	var statement intoto.Statement
	if err := protojson.Unmarshal(payload, &statement); err != nil {
		t.Fatal(err)
	}
	text, err := statement.GetPredicate().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var predicate provenance.Provenance
	if err := protojson.Unmarshal(text, &predicate); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{statement.Validate(), predicate.Validate()} {
		if err != nil {
			t.Error(err)
		}
	}
	digests := map[string]string{}
	for _, one := range statement.GetSubject() {
		digests[one.GetName()] = one.GetDigest()["sha256"]
	}
	for line := range strings.Lines(string(readOut(t, out, checksumsFile))) {
		digest, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if !strings.Contains(file, ".intoto.") && digests[file] != digest {
			t.Errorf("the provenance has the digest %q of %s, and checksums.txt %s", digests[file], file, digest)
		}
	}
	if digests["localhost/prerig"] == "" || digests["localhost/prerig-fn"] == "" {
		t.Error("the provenance does not have the images")
	}
}

func checkBills(t *testing.T, out, file string) {
	t.Helper()
	document, err := spdxjson.Read(bytes.NewReader(readOut(t, out, file+".spdx.json")))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	var bill cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(readOut(t, out, file+".cdx.json")), cyclonedx.BOMFileFormatJSON).Decode(&bill); err != nil {
		t.Fatal(err)
	}
	if len(document.Packages) != 2 || document.Packages[1].PackageName != "stdlib" || len(*bill.Components) != 1 || (*bill.Components)[0].Name != "stdlib" {
		t.Errorf("%s: the stand-ins link Go's own library alone: %+v, %+v", file, document.Packages, *bill.Components)
	}
}

// TestPush sends images to a registry and looks for them, and for their signatures, where a cluster and cosign do.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	out := filepath.Join(t.TempDir(), "out")
	o := options(newTree(t), out, newKey(t, ""))
	o.Images = strings.TrimPrefix(server.URL, "http://") + "/team"
	o.Platforms = []Platform{{"linux", "amd64"}, {"linux", "arm64"}}
	if err := Make(t.Context(), o, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := Main(t.Context(), []string{"push", "-out", out, "-images", "example.com"}, io.Discard, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "make the release with the same") {
		t.Errorf("pushed to another registry: %v", err)
	}
	if err := Main(t.Context(), []string{"push", "-out", t.TempDir(), "-images", o.Images}, io.Discard, io.Discard); err == nil {
		t.Error("pushed nothing")
	}
	if err := Main(t.Context(), []string{"push", "-out", out, "-images", o.Images}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	for product, user := range map[string]string{"prerig": "65534:65534", "prerig-fn": "nobody"} {
		tagged, err := name.ParseReference(o.Images + "/" + product + ":v0.2.0")
		if err != nil {
			t.Fatal(err)
		}
		for _, arch := range []string{"amd64", "arm64"} {
			config := pullConfig(t.Context(), t, tagged, arch)
			if config.Architecture != arch || config.Config.User != user || config.Config.Entrypoint[0] != "/usr/local/bin/"+product ||
				config.Config.Labels["org.opencontainers.image.version"] != "v0.2.0" {
				t.Errorf("%s for %s: %+v", product, arch, config)
			}
		}
		checkImageSignature(t, tagged, out)
	}
	manifests, err := os.ReadFile(filepath.Join(out, "install.yaml"))
	if err != nil || !strings.Contains(string(manifests), "image: "+o.Images+"/prerig:v0.2.0@sha256:") {
		t.Errorf("install.yaml does not have the image that was pushed: %v", err)
	}
}

func pullConfig(ctx context.Context, t *testing.T, from name.Reference, arch string) *v1.ConfigFile {
	t.Helper()
	image, err := remote.Image(from, remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// checkImageSignature does what cosign verify does with a key.
func checkImageSignature(t *testing.T, image name.Reference, out string) {
	t.Helper()
	descriptor, err := remote.Head(image)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := remote.Image(image.Context().Tag(signatureTag(descriptor.Digest)))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := signed.Manifest()
	if err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	layers, err := signed.Layers()
	if err != nil {
		t.Fatal(err)
	}
	blob, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	payload, err := io.ReadAll(blob)
	if err != nil || !strings.Contains(string(payload), fmt.Sprintf("%q:%q", "docker-manifest-digest", descriptor.Digest)) {
		t.Fatalf("%s, %v", payload, err)
	}
	text, err := base64.StdEncoding.DecodeString(manifest.Layers[0].Annotations["dev.cosignproject.cosign/signature"])
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.LoadVerifierFromPEMFile(filepath.Join(out, "cosign.pub"), crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.VerifySignature(bytes.NewReader(text), bytes.NewReader(payload)); err != nil {
		t.Error(err)
	}
}
