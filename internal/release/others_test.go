// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Programs of others that check releases, and a release that is made already.
var (
	cosign = flag.String("cosign", "", "cosign")
	syft   = flag.String("syft", "", "syft")
	made   = flag.String("made", "", "the directory of a release, whose bills of materials syft looks at")
)

// password is that of the key that cosign makes.
const password = "correct horse"

// checked is a release that is signed with a key of cosign's, and pushed, in a directory where people check it.
type checked struct {
	t             *testing.T
	dir, registry string
}

func (c *checked) run(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(*cosign)+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+c.t.TempDir(),
		"COSIGN_PASSWORD="+password, "SIGSTORE_NO_CACHE=true")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// documented are the commands of docs/install.md by which a release is checked, for this release.
func (c *checked) documented() (commands []string) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "install.md"))
	if err != nil {
		c.t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Checking\n")
	_, block, _ := strings.Cut(section, "```sh\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		c.t.Fatal("docs/install.md does not say how a release is checked")
	}
	block = strings.NewReplacer("\\\n", " ", "registry.example.com", c.registry).Replace(block)
	for line := range strings.Lines(block) {
		commands = append(commands, strings.TrimSpace(line))
	}
	return commands
}

// newChecked makes the release with stand-ins for the programs.
func newChecked(t *testing.T) *checked {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	c := &checked{t: t, dir: t.TempDir(), registry: strings.TrimPrefix(server.URL, "http://")}
	if out, err := c.run(*cosign, "generate-key-pair"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	o := options(newTree(t), filepath.Join(t.TempDir(), "out"), filepath.Join(c.dir, "cosign.key"))
	o.Images, o.Password, o.Platforms = c.registry, password, []Platform{{"linux", "amd64"}, {"linux", "arm64"}}
	if err := Make(t.Context(), o, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := Main(t.Context(), []string{"push", "-out", o.Out, "-images", o.Images}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	ours, theirs := readOut(t, o.Out, "cosign.pub"), readOut(t, c.dir, "cosign.pub")
	if !bytes.Equal(bytes.TrimSpace(ours), bytes.TrimSpace(theirs)) {
		t.Errorf("the key of the release is\n%s\nand cosign's\n%s", ours, theirs)
	}
	if err := os.CopyFS(c.dir+"/release", os.DirFS(o.Out)); err != nil {
		t.Fatal(err)
	}
	c.dir += "/release"
	return c
}

// TestCosignVerifies runs what docs/install.md says, with cosign itself and a key that it made; and has it refuse what is not the release.
func TestCosignVerifies(t *testing.T) {
	if *cosign == "" {
		t.Skip("-cosign names no program; make e2e-release-proofs does")
	}
	c := newChecked(t)
	commands := c.documented()
	for _, want := range []string{"cosign verify-blob ", "sha256sum ", "cosign verify-blob-attestation ", "cosign verify "} {
		if !slices.ContainsFunc(commands, func(one string) bool { return strings.HasPrefix(one, want) }) {
			t.Fatalf("no command begins with %q: %q", want, commands)
		}
	}
	for _, one := range commands {
		if out, err := c.run("sh", "-c", one); err != nil {
			t.Errorf("%s: %v\n%s", one, err, out)
		}
	}

	other := newKey(t, "")
	public := filepath.Join(t.TempDir(), "other.pub")
	if out, err := c.run("openssl", "pkey", "-in", other, "-pubout", "-out", public); err != nil {
		t.Skipf("openssl: %v\n%s", err, out)
	}
	for _, one := range commands {
		if !strings.HasPrefix(one, "cosign ") {
			continue
		}
		if out, err := c.run("sh", "-c", strings.Replace(one, "--key cosign.pub", "--key "+public, 1)); err == nil {
			t.Errorf("%s passes with another key\n%s", one, out)
		}
	}
	for _, name := range []string{"checksums.txt", "prerig_v0.2.0_linux_amd64.tar.gz"} {
		if err := os.WriteFile(filepath.Join(c.dir, name), append(readOut(t, c.dir, name), '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for _, one := range commands {
		if strings.HasPrefix(one, "cosign verify ") {
			continue // it is about the registry
		}
		refused++
		if out, err := c.run("sh", "-c", one); err == nil {
			t.Errorf("%s passes with other files\n%s", one, out)
		}
	}
	if refused != 3 {
		t.Errorf("%d commands look at files", refused)
	}
}

// TestSyftFindsTheSame compares the bills of materials of a release with what syft finds itself in its archives and images, and has syft
// read both formats.
func TestSyftFindsTheSame(t *testing.T) {
	if *syft == "" || *made == "" {
		t.Skip("-syft and -made name no program and no release; make e2e-release-proofs does")
	}
	bills, err := filepath.Glob(filepath.Join(*made, "*.spdx.json"))
	if err != nil || len(bills) < 4 {
		t.Fatalf("%d bills of materials: %v", len(bills), err)
	}
	for _, bill := range bills {
		file := strings.TrimSuffix(bill, ".spdx.json")
		t.Run(filepath.Base(file), func(t *testing.T) {
			source := "file:" + file
			if strings.HasSuffix(file, "_image.tar") {
				source = "oci-archive:" + file
			}
			found := runSyft(t, "scan", source, "--override-default-catalogers", "go-module-binary-cataloger")
			if len(found) < 5 {
				t.Fatalf("syft finds only %v in %s", found, source)
			}
			for _, format := range []string{".spdx.json", ".cdx.json"} {
				ours := runSyft(t, "convert", file+format)
				for url := range found {
					if !ours[url] && !strings.HasPrefix(url, "pkg:golang/github.com/prerig/prerig") {
						t.Errorf("%s lacks %s", filepath.Base(file)+format, url)
					}
				}
				for url := range ours {
					if !found[url] && !strings.HasPrefix(url, "pkg:golang/github.com/prerig/prerig") && !strings.HasPrefix(url, "pkg:oci/") {
						t.Errorf("%s has %s, which syft does not find", filepath.Base(file)+format, url)
					}
				}
			}
			t.Logf("%d modules, such as %s", len(found), slices.Sorted(maps.Keys(found))[0])
		})
	}
}

// runSyft returns the package URLs that syft tells of.
func runSyft(t *testing.T, args ...string) map[string]bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), *syft, append(args, "--quiet", "--output", "syft-json")...)
	cmd.Env = append(os.Environ(), "SYFT_CHECK_FOR_APP_UPDATE=false")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("syft %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	var document struct {
		Artifacts []struct{ PURL string }
	}
	if err := json.Unmarshal(out, &document); err != nil {
		t.Fatal(err)
	}
	urls := map[string]bool{}
	for _, one := range document.Artifacts {
		urls[strings.ToLower(one.PURL)] = true // the type golang of package URLs has small letters; syft writes them as they are in programs
	}
	return urls
}
