// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"sigs.k8s.io/yaml"
)

// newKey writes a key as openssl makes it, or as cosign does with a password.
func newKey(t *testing.T, password string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return writeKey(t, key, password)
}

func writeKey(t *testing.T, key any, password string) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "PRIVATE KEY", Bytes: der}
	if password != "" {
		block.Type = "ENCRYPTED SIGSTORE PRIVATE KEY"
		if block.Bytes, err = encrypted.Encrypt(der, []byte(password)); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "cosign.key")
	writeFile(t, name, string(pem.EncodeToMemory(block)))
	return name
}

func options(root, out, key string) Options {
	return Options{Root: root, Out: out, Version: "v0.2.0", Images: "localhost", Key: key, Unsigned: key == "", Platforms: Platforms, Builder: "https://example.com/builder"}
}

// TestSameBytes makes the same release twice: in other directories, for another home and umask, and with a key that was read in
// another form.
func TestSameBytes(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	first := newTree(t)
	second := filepath.Join(t.TempDir(), "another", "folder")
	runGit(t, first, "clone", "--quiet", first, second)

	outs := []string{t.TempDir(), filepath.Join(t.TempDir(), "deeper", "out")}
	if err := Make(t.Context(), options(first, outs[0], writeKey(t, key, "")), io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // they are below HOME
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, strings.TrimSpace(string(value)))
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("GOFLAGS", "-ldflags=-X=main.version=v9")
	t.Setenv("GOAMD64", "v3")
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	o := options(second, outs[1], writeKey(t, key, "secret"))
	o.Password = "secret"
	if err := Make(t.Context(), o, io.Discard); err != nil {
		t.Fatal(err)
	}

	names := [2][]string{}
	for i, out := range outs {
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names[i] = append(names[i], e.Name())
		}
	}
	if strings.Join(names[0], "\n") != strings.Join(names[1], "\n") || len(names[0]) < 60 {
		t.Fatalf("the files are %v\nand %v", names[0], names[1])
	}
	for _, name := range names[0] {
		if a, b := readOut(t, outs[0], name), readOut(t, outs[1], name); !bytes.Equal(a, b) {
			t.Errorf("%s differs", name)
		}
	}
	checkRelease(t, outs[0])
	checkProofs(t, outs[0], &key.PublicKey)
}

func readOut(t *testing.T, out, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checkRelease looks at a release of the tree that newTree makes.
func checkRelease(t *testing.T, out string) {
	t.Helper()
	for name, want := range map[string][]string{
		"install.yaml":           {"image: localhost/prerig:v0.2.0@sha256:", "kind: CustomResourceDefinition", "kind: StatefulSet"},
		"crds.yaml":              {"kind: CustomResourceDefinition"},
		"release-notes.md":       {"- Something new.", "- all: begin", "`localhost/prerig-fn:v0.2.0@sha256:"},
		"prerig.rb":              {"version \"0.2.0\"", "prerig_v0.2.0_darwin_arm64.tar.gz", "on_linux do"},
		"krew.yaml":              {"bin: prerig.exe", "bin: prerig\n", "version: v0.2.0", "prerig_v0.2.0_windows_arm64.zip"},
		"flux-plugin.yaml":       {"kind: Plugin", "bin: flux-prerig\n", "version: 0.2.0", "extractPath: prerig.exe", "checksum: sha256:"},
		"kustomize-catalog.yaml": {"kind: Catalog", "bin: prerig-fn.exe"},
		"kpt-function.yaml":      {"image: localhost/prerig-fn:v0.2.0@sha256:"},
		"checksums.txt":          {"  prerig_v0.2.0_linux_amd64.deb\n", "  prerig_v0.2.0.intoto.jsonl\n", "  prerig_v0.2.0_image.tar.spdx.json\n"},
	} {
		text := string(readOut(t, out, name))
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q", name, part)
			}
		}
	}
	// The quick start has its files, and no others.
	listed, err := exec.CommandContext(t.Context(), "tar", "tzf", filepath.Join(out, "prerig_v0.2.0_linux_arm64.tar.gz")).Output()
	if err != nil || !strings.Contains(string(listed), "examples/prerig-inject/shop.yaml\n") || strings.Contains(string(listed), ".expected") {
		t.Errorf("the archive has %s, %v", listed, err)
	}
	checkFluxPlugin(t, out)
	// The programs know their version, commit and renderer.
	dir := t.TempDir()
	for _, product := range []string{"prerig", "prerig-fn"} {
		archive := filepath.Join(out, product+"_v0.2.0_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz")
		if text, err := exec.CommandContext(t.Context(), "tar", "xzf", archive, "-C", dir).CombinedOutput(); err != nil {
			t.Fatalf("unpacking %s: %v\n%s", archive, err, text)
		}
	}
	id, err := exec.CommandContext(t.Context(), "go", "tool", "buildid", filepath.Join(dir, "prerig-render")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{"prerig": "v0.2.0 go:" + string(id), "prerig-fn": "2026-11-23T20:00:00Z\n"} {
		said, err := exec.CommandContext(t.Context(), filepath.Join(dir, program)).CombinedOutput()
		if err != nil || !strings.Contains(string(said), want) || !strings.HasPrefix(string(said), "v0.2.0 ") {
			t.Errorf("%s says %q, %v, and not %q", program, said, err, want)
		}
	}
}

// checkFluxPlugin reads the manifest as flux does: it finds the platform, compares the archive's digest, takes the program out and
// stores it by the plugin's name.
func checkFluxPlugin(t *testing.T, out string) {
	t.Helper()
	var plugin struct {
		APIVersion, Kind, Name, Description, Bin string
		Versions                                 []struct {
			Version   string
			Platforms []struct{ OS, Arch, URL, Checksum, ExtractPath string }
		}
	}
	if err := yaml.Unmarshal(readOut(t, out, "flux-plugin.yaml"), &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.APIVersion != "cli.fluxcd.io/v1beta1" || plugin.Bin != "flux-"+plugin.Name || plugin.Description == "" || len(plugin.Versions) != 1 {
		t.Fatalf("the plugin is %+v", plugin)
	}
	started := false
	for _, platform := range plugin.Versions[0].Platforms {
		archive := path.Base(platform.URL)
		if sum := sha256.Sum256(readOut(t, out, archive)); platform.Checksum != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Errorf("the checksum of %s is %s", archive, platform.Checksum)
		}
		if platform.OS != runtime.GOOS || platform.Arch != runtime.GOARCH {
			continue
		}
		program, err := exec.CommandContext(t.Context(), "tar", "xzOf", filepath.Join(out, archive), platform.ExtractPath).Output()
		if err != nil {
			t.Fatalf("taking %s out of %s: %v", platform.ExtractPath, archive, err)
		}
		installed := filepath.Join(t.TempDir(), plugin.Bin)
		if err := os.WriteFile(installed, program, 0o755); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), installed).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(said), "v0.2.0 ") {
			t.Errorf("%s says %q, %v", plugin.Bin, said, err)
		}
		started = true
	}
	if !started {
		t.Errorf("no program for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
}

// TestRefused says what is wrong before anything is made.
func TestRefused(t *testing.T) {
	tree, key := newTree(t), newKey(t, "")
	tagged := newTree(t)
	runGit(t, tagged, "tag", "v0.2.0")
	writeFile(t, filepath.Join(tagged, "more"), "more")
	commitAll(t, tagged, "all: more")
	dirty := newTree(t)
	writeFile(t, filepath.Join(dirty, "LICENSE"), "another")
	untracked := newTree(t)
	writeFile(t, filepath.Join(untracked, "fn", "new.go"), "package fn")
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no version":      {func(o *Options) { o.Version = "" }, "VERSION is missing"},
		"no v":            {func(o *Options) { o.Version = "0.2.0" }, "no semantic version"},
		"two numbers":     {func(o *Options) { o.Version = "v0.2" }, "no semantic version"},
		"a word":          {func(o *Options) { o.Version = "vnext" }, "no semantic version"},
		"metadata":        {func(o *Options) { o.Version = "v0.2.0+linux" }, "cannot be the tag of an image"},
		"no key":          {func(o *Options) { o.Key = "" }, "there is no key to sign with"},
		"both":            {func(o *Options) { o.Unsigned = true }, "both set"},
		"key not there":   {func(o *Options) { o.Key = "none.key" }, "none.key: no such file"},
		"no key in it":    {func(o *Options) { o.Key = filepath.Join(tree, "LICENSE") }, "it can be ECDSA P-256"},
		"wrong password":  {func(o *Options) { o.Key, o.Password = newKey(t, "secret"), "guess" }, "COSIGN_PASSWORD"},
		"RSA":             {func(o *Options) { o.Key = writeKey(t, other, "") }, "no ECDSA key on P-256"},
		"images as URL":   {func(o *Options) { o.Images = "https://ghcr.io/prerig" }, "without https://"},
		"tree changed":    {func(o *Options) { o.Root = dirty }, "changes that are not committed, and the release could not be reproduced: commit or remove them:  M LICENSE"},
		"file more":       {func(o *Options) { o.Root = untracked }, "?? fn/"},
		"tag elsewhere":   {func(o *Options) { o.Root = tagged }, "the tag v0.2.0 is of commit"},
		"no repository":   {func(o *Options) { o.Root = t.TempDir() }, "git status"},
		"nothing to tell": {func(o *Options) { o.Root = silent(t) }, "CHANGELOG.md is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(tree, filepath.Join(t.TempDir(), "out"), key)
			o.Platforms = []Platform{}
			tc.change(&o)
			err := Make(t.Context(), o, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// silent is a tree whose changelog has nothing for the next version.
func silent(t *testing.T) string {
	tree := newTree(t)
	writeFile(t, filepath.Join(tree, "CHANGELOG.md"), "# Changes\n\n## v0.1.0\n\n- The first.\n")
	commitAll(t, tree, "changelog: forget")
	return tree
}

func TestParse(t *testing.T) {
	o, err := parseCommandLine([]string{"-version", "v1.0.0", "-platforms", "linux/amd64,darwin/arm64"}, io.Discard)
	if err != nil || len(o.Platforms) != 2 || o.Platforms[1] != (Platform{"darwin", "arm64"}) {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"-platforms", "plan9/amd64"}, {"something"}, {"-what"}} {
		if _, err := parseCommandLine(args, io.Discard); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
