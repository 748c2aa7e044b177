// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/prerig/prerig/pipeline/attestation"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/publish"
)

// attestingKey is a key with the file of its public part.
func attestingKey(t *testing.T) (key *ecdsa.PrivateKey, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	text, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	must(t, err)
	public = filepath.Join(t.TempDir(), "cosign.pub")
	must(t, os.WriteFile(public, text, 0o600))
	return key, public
}

func attestedPod(name, image string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: shop}\nspec: {containers: [{name: app, image: '" + image + "'}]}\n"
}

// attest returns files with a signed statement about them.
func attest(t *testing.T, key *ecdsa.PrivateKey, files map[string]string) map[string]string {
	t.Helper()
	subjects, out := map[string][]byte{}, map[string]string{}
	for name, text := range files {
		subjects[name], out[name] = []byte(text), text
	}
	text, err := attestation.Sign(key, attestation.New(attestation.Files(subjects), attestation.Parameters{Pipeline: "shop"}, nil, "v1"))
	must(t, err)
	out[publish.StatementDir+"/shop.sigstore"] = string(text)
	return out
}

// TestVerifyAttestations changes files, statements and keys below pods that are as committed.
func TestVerifyAttestations(t *testing.T) {
	key, public := attestingKey(t)
	other, otherPublic := attestingKey(t)
	files := map[string]string{"web.yaml": attestedPod("web", "a:1")}
	saved := attestedPod("web", "a:1")
	for name, c := range map[string]struct {
		files map[string]string
		edit  func(map[string]string)
		keys  []string
		code  int
		text  string
	}{
		"covered":            {attest(t, key, files), nil, []string{public}, 0, "trusted statements cover 1 file of running pods, and not 0"},
		"one of two keys":    {attest(t, key, files), nil, []string{otherPublic, public}, 0, "cover 1 file"},
		"no statement":       {files, nil, []string{public}, 1, "web.yaml of 1 pod: no trusted statement covers it"},
		"of another key":     {attest(t, other, files), nil, []string{public}, 1, "none of the given keys signed it"},
		"a changed file":     {attest(t, key, files), func(f map[string]string) { f["web.yaml"] += "# later\n" }, []string{public}, 1, "changed after the statement"},
		"at another path":    {attest(t, key, files), func(f map[string]string) { f["b.yaml"] = f["web.yaml"]; delete(f, "web.yaml") }, []string{public}, 1, "b.yaml of 1 pod: no"},
		"a broken statement": {attest(t, key, files), func(f map[string]string) { f[publish.StatementDir+"/shop.sigstore"] = "{" }, []string{public}, 1, "reading the bundle"},
		"no key file":        {attest(t, key, files), nil, []string{"missing.pub"}, 2, "reading the key of --attestations"},
		"a file without key": {attest(t, key, files), nil, []string{"web.yaml"}, 2, "reading the key of --attestations"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.edit != nil {
				c.edit(c.files)
			}
			if code, out, text := verifyDirectory(t, c.files, saved, c.keys...); code != c.code || !strings.Contains(out+text, c.text) {
				t.Errorf("exit code %d, want %d and %q:\n%s%s", code, c.code, c.text, out, text)
			}
		})
	}
}

// TestAFileHasTheStatementOfOneOfItsPipelines: a pipeline takes over one of two files of a removed one, whose statement stays. A copy
// of an older statement under another name does not count.
func TestAFileHasTheStatementOfOneOfItsPipelines(t *testing.T) {
	key, public := attestingKey(t)
	statement := func(pipeline string, files map[string]string) string {
		subjects := map[string][]byte{}
		for name, text := range files {
			subjects[name] = []byte(text)
		}
		text, err := attestation.Sign(key, attestation.New(attestation.Files(subjects), attestation.Parameters{Pipeline: pipeline}, nil, "v1"))
		must(t, err)
		return string(text)
	}
	older, newer := attestedPod("web", "a:1"), attestedPod("web", "a:2")
	cart := attestedPod("cart", "a:1")
	removed := statement("shop/removed", map[string]string{"web.yaml": older, "cart.yaml": cart})
	for _, pipeline := range []string{"shop/aaa", "shop/zzz"} { // before and after the removed one
		files := map[string]string{
			"web.yaml": newer, "cart.yaml": cart,
			publish.StatementFile("shop/removed"): removed,
			publish.StatementFile(pipeline):       statement(pipeline, map[string]string{"web.yaml": newer}),
		}
		code, out, text := verifyDirectory(t, files, newer+"---\n"+cart, public)
		if code != 0 || !strings.Contains(out+text, "cover 2 files") {
			t.Errorf("%s took web.yaml over: exit code %d:\n%s%s", pipeline, code, out, text)
		}
		files = map[string]string{
			"web.yaml":                           older,
			publish.StatementFile(pipeline):      statement(pipeline, map[string]string{"web.yaml": newer}),
			publish.StatementDir + "/0.sigstore": statement(pipeline, map[string]string{"web.yaml": older}),
			publish.StatementDir + "/z.sigstore": statement(pipeline, map[string]string{"web.yaml": older}),
		}
		code, out, text = verifyDirectory(t, files, older, public)
		if code != 1 || !strings.Contains(out+text, "changed after the statement") {
			t.Errorf("%s has a copy of an older statement: exit code %d:\n%s%s", pipeline, code, out, text)
		}
	}
}

// verifyDirectory runs prerig verify with files as what is committed.
func verifyDirectory(t *testing.T, files map[string]string, saved string, keys ...string) (code int, out, text string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	args := []string{"verify", "--rendered", dir, "-"}
	for _, key := range keys {
		args = append(args, "--attestations", key)
	}
	return command(t, saved, args...)
}

// TestVerifyAttestationsOfOlderCommits has one pod of the newest commit, whose statement is trusted, and one of an older commit.
func TestVerifyAttestationsOfOlderCommits(t *testing.T) {
	key, public := attestingKey(t)
	for _, covered := range []bool{true, false} {
		repository := gittest.New(t).Repository(t, "config")
		before := map[string]string{"web.yaml": attestedPod("web", "a:1"), "cart.yaml": attestedPod("cart", "a:1")}
		older := before
		if covered {
			older = attest(t, key, before)
		}
		repository.Commit("older", older)
		repository.Commit("newer", attest(t, key, map[string]string{"web.yaml": attestedPod("web", "a:2"), "cart.yaml": before["cart.yaml"]}))
		saved := attestedPod("web", "a:1") + "---\n" + attestedPod("cart", "a:1")
		args := []string{"verify", "--rendered", repository.Work, "--revision", "main", "--attestations", public, "-o", "json", "-"}
		code, out, text := command(t, saved, args...)
		if covered && (code != 0 || !strings.Contains(out, `"covered": 2`)) {
			t.Errorf("exit code %d:\n%s%s", code, out, text)
		}
		if !covered && (code != 1 || !strings.Contains(out, `"covered": 1`) || !strings.Contains(out, "no trusted statement covers it")) {
			t.Errorf("without a statement in the older commit: exit code %d:\n%s%s", code, out, text)
		}
	}
}
