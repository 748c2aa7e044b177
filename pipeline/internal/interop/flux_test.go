// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bytes"
	"crypto"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fluxcd/pkg/kustomize"
	fluxoci "github.com/fluxcd/pkg/oci"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fluxObject is what the test needs of Flux' objects.
type fluxObject struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		URL       string
		Ref       struct{ Branch, Tag string }
		Path      string
		Type      string
		SourceRef struct{ Kind, Name string }
		Resources []struct{ Kind, Name string }
	}
}

// source returns the source of a file and the path of its Kustomization.
func source(t *testing.T, text string) (source fluxObject, path string) {
	t.Helper()
	all := decode[fluxObject](t, text)
	if len(all) != 2 || all[1].Kind != "Kustomization" || all[1].Spec.SourceRef.Kind != all[0].Kind || all[1].Spec.SourceRef.Name != all[0].Metadata.Name {
		t.Fatalf("not a source and a Kustomization on it:\n%s", text)
	}
	return all[0], all[1].Spec.Path
}

// TestFlux plays the source controller, for Git and OCI, and the kustomize controller, with the example's objects.
func TestFlux(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	const token = "the receiver's token"
	var called atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte(token))
		mac.Write(body)
		if r.Header.Get("X-Signature") == "sha256="+hex.EncodeToString(mac.Sum(nil)) {
			called.Add(1)
		}
	}))
	t.Cleanup(receiver.Close)

	files := example(t, "flux")
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte("open")))
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, files, map[string]string{"flux-receiver/token": token + "\n", "cosign/cosign.key": string(private), "cosign/cosign.password": "open"},
		"      url: oci://registry.example.com/rendered/shop", "      url: oci://"+host+"/rendered/shop\n      insecure: true\n      signing: {secretRef: {name: cosign}}",
		"https://flux.example.com/hook/REPLACE-WITH-STATUS-WEBHOOKPATH", receiver.URL+"/hook/abc")

	git, path := source(t, files["cluster/git.yaml"])
	if git.Spec.URL != "https://git.example.com/team/config.git" {
		t.Errorf("the GitRepository has the URL %s, the pipeline's is another", git.Spec.URL)
	}
	checkout := t.TempDir()
	if out, err := exec.Command("git", "clone", "-q", "-b", git.Spec.Ref.Branch, s.repository.URL, checkout).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	published := branch(t, s, git.Spec.Ref.Branch, path, true)
	checkInjected(t, published)
	want := ordered(decode[map[string]any](t, published))
	if diff := cmp.Diff(want, ordered(fluxBuild(t, checkout, files["cluster/git.yaml"]))); diff != "" {
		t.Errorf("what Flux builds of the branch is not what was published (-published +built):\n%s", diff)
	}

	oci, _ := source(t, files["cluster/oci.yaml"])
	name := host + strings.TrimPrefix(oci.Spec.URL, "oci://registry.example.com") + ":" + oci.Spec.Ref.Tag
	client, pulled := fluxoci.NewClient([]crane.Option{crane.Insecure}), t.TempDir()
	var artifact *fluxoci.Metadata
	s.eventually(t, "the artifact", func() bool {
		artifact, err = client.Pull(t.Context(), name, pulled)
		return err == nil
	})
	checkSigned(t, artifact.Digest, public)
	if diff := cmp.Diff(want, ordered(fluxBuild(t, pulled, files["cluster/oci.yaml"]))); diff != "" {
		t.Errorf("what Flux builds of the artifact is not what was published (-published +built):\n%s", diff)
	}

	s.eventually(t, "the call of the Receiver", func() bool { return called.Load() > 0 })
	r := decode[fluxObject](t, files["cluster/receiver.yaml"])[0]
	if r.Spec.Type != "generic-hmac" || len(r.Spec.Resources) != 2 || r.Spec.Resources[0].Name != git.Metadata.Name || r.Spec.Resources[1].Name != oci.Metadata.Name {
		t.Errorf("the Receiver is not about the two sources: %+v", r.Spec)
	}
}

// checkSigned looks for the signature as the source controller does for spec.verify with a public key: it is there as soon
// as the artifact is, names the artifact's digest, and is good.
func checkSigned(t *testing.T, artifact string, public []byte) {
	t.Helper()
	repository, digest, _ := strings.Cut(artifact, "@")
	manifest, err := crane.Manifest(repository+":"+strings.Replace(digest, ":", "-", 1)+".sig", crane.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	index, err := v1.ParseManifest(bytes.NewReader(manifest))
	if err != nil || len(index.Layers) != 1 {
		t.Fatalf("%v: the signature is\n%s", err, manifest)
	}
	layer, err := crane.PullLayer(repository+"@"+index.Layers[0].Digest.String(), crane.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	content, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := base64.StdEncoding.DecodeString(index.Layers[0].Annotations["dev.cosignproject.cosign/signature"])
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.VerifySignature(bytes.NewReader(sig), bytes.NewReader(text)); err != nil || !strings.Contains(string(text), digest) {
		t.Errorf("%v: the signature is of\n%s", err, text)
	}
}

// fluxBuild does what the kustomize controller does with a fetched source, with the controller's own packages: it looks
// at the directory that the Kustomization names, makes a kustomization of all manifests where there is none, and builds
// it without leaving the source.
func fluxBuild(t *testing.T, root, text string) []map[string]any {
	t.Helper()
	all := decode[map[string]any](t, text)
	object := unstructured.Unstructured{Object: all[1]}
	path, _, err := unstructured.NestedString(all[1], "spec", "path")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, path)
	if _, err := kustomize.NewGeneratorWithIgnore(root, "", object).WriteFile(dir, kustomize.WithSaveOriginalKustomization()); err != nil {
		t.Fatal(err)
	}
	built, err := kustomize.SecureBuild(root, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, decode[map[string]any](t, string(text))...)
	}
	return objects
}

// ordered sorts objects by kind and name: kustomize has an order of its own.
func ordered(objects []map[string]any) []map[string]any {
	id := func(o map[string]any) string {
		meta, _ := o["metadata"].(map[string]any)
		return fmt.Sprint(o["kind"], meta["namespace"], meta["name"])
	}
	return slices.SortedFunc(slices.Values(objects), func(a, b map[string]any) int { return strings.Compare(id(a), id(b)) })
}
