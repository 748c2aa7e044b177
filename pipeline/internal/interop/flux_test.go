// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	fluxoci "github.com/fluxcd/pkg/oci"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
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

// source gives the source of a file and the path of its Kustomization.
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
	s := serve(t, files, map[string]string{"flux-receiver/token": token + "\n"},
		"      url: oci://registry.example.com/rendered/shop", "      url: oci://"+host+"/rendered/shop\n      insecure: true",
		"https://flux.example.com/hook/REPLACE-WITH-STATUS-WEBHOOKPATH", receiver.URL+"/hook/abc")

	git, path := source(t, files["cluster/git.yaml"])
	if git.Spec.URL != "https://git.example.com/team/config.git" {
		t.Errorf("the GitRepository has the URL %s, the pipeline's is another", git.Spec.URL)
	}
	checkout := t.TempDir()
	if out, err := exec.Command("git", "clone", "-q", "-b", git.Spec.Ref.Branch, s.repository.URL, checkout).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fromGit := build(t, filepath.Join(checkout, path))
	checkInjected(t, fromGit)

	oci, path := source(t, files["cluster/oci.yaml"])
	name := host + strings.TrimPrefix(oci.Spec.URL, "oci://registry.example.com") + ":" + oci.Spec.Ref.Tag
	client, pulled := fluxoci.NewClient([]crane.Option{crane.Insecure}), t.TempDir()
	s.eventually(t, "the artifact", func() bool {
		_, err := client.Pull(t.Context(), name, pulled)
		return err == nil
	})
	if fromOCI := build(t, filepath.Join(pulled, path)); fromOCI != fromGit {
		t.Errorf("the artifact holds something else than the branch:\n%s", fromOCI)
	}

	s.eventually(t, "the call of the Receiver", func() bool { return called.Load() > 0 })
	r := decode[fluxObject](t, files["cluster/receiver.yaml"])[0]
	if r.Spec.Type != "generic-hmac" || len(r.Spec.Resources) != 2 || r.Spec.Resources[0].Name != git.Metadata.Name || r.Spec.Resources[1].Name != oci.Metadata.Name {
		t.Errorf("the Receiver is not about the two sources: %+v", r.Spec)
	}
}

// build does what the kustomize controller does with a directory that has no kustomization: it makes one of all
// manifests, and builds it.
func build(t *testing.T, dir string) string {
	t.Helper()
	var resources []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() != "." && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		resources = append(resources, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := objects.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
