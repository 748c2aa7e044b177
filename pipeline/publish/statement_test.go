// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/attestation"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

const shopStatement = publish.StatementDir + "/apps__shop.sigstore"

// attested is a branch with statements, and the keys that trust them.
type attested struct {
	*gittest.Repository
	branch *publish.Branch
	public []byte
	keys   []crypto.PublicKey
}

func newAttested(t *testing.T) *attested {
	t.Helper()
	secret, public := cosignKey(t)
	key, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	a := &attested{Repository: gittest.New(t).Repository(t, "config"), public: public, keys: []crypto.PublicKey{key}}
	a.branch = branch(t, a.Repository, "rendered")
	a.branch.Attester = signer(t, secret)
	return a
}

// statement returns the trusted statement at a revision, which must be about exactly the files of the directory shop.
func (a *attested) statement(t *testing.T, revision string) *attestation.Statement {
	t.Helper()
	statement, err := attestation.Open([]byte(a.Git("show", revision+":"+shopStatement)), a.keys)
	if err != nil {
		t.Fatal(err)
	}
	digests := statement.Digests()
	files := strings.Fields(a.Git("ls-tree", "-r", "--name-only", revision, "shop"))
	for _, name := range files {
		content := []byte(a.Git("show", revision+":"+name) + "\n")
		if digests[name] != attestation.SHA256(content)["sha256"] {
			t.Errorf("%s at %s has another digest than its statement", name, revision)
		}
	}
	if len(files) != len(digests) {
		t.Errorf("the statement at %s is about %v, but the files are %v", revision, digests, files)
	}
	return statement
}

func attestedChange(t *testing.T, objects ...render.Object) publish.Change {
	t.Helper()
	c := change(t, "apps/shop", "shop", objects...)
	c.Policies = publish.AttestedPolicies([]render.Policy{{Origin: "mesh.yaml", YAML: "kind: InjectionPolicy\n"}})
	c.Snapshots = []string{"sha256:5eed"}
	return c
}

// TestStatementIsAboutThePublishedFiles publishes, changes and removes files: the statement on the branch is always about exactly what
// is there, and a run without a change makes no commit.
func TestStatementIsAboutThePublishedFiles(t *testing.T) {
	a := newAttested(t)
	run(t, a.branch, attestedChange(t, configMap("a", "1"), configMap("b", "1")))
	statement := a.statement(t, "rendered")
	inputs := statement.Predicate.BuildDefinition.ResolvedDependencies
	if len(inputs) != 3 || inputs[0].URI != "git+https://git.example.com/config.git" || inputs[0].Digest["gitCommit"] != "abc" ||
		inputs[1].Name != "policy mesh.yaml" || inputs[1].Digest["sha256"] == "" || inputs[2].Digest["sha256"] != "5eed" {
		t.Errorf("the inputs are %+v", inputs)
	}
	if got := statement.Predicate.BuildDefinition.ExternalParameters.Pipeline; got != "apps/shop" {
		t.Errorf("the pipeline is %q", got)
	}
	if again := run(t, a.branch, attestedChange(t, configMap("b", "1"), configMap("a", "1"))); again.Changed {
		t.Error("the same files made a commit")
	}
	run(t, a.branch, attestedChange(t, configMap("a", "2")))
	a.statement(t, "rendered")
	gone := attestedChange(t)
	gone.Remove = true
	run(t, a.branch, gone)
	if got := a.Git("ls-tree", "-r", "--name-only", "rendered", publish.StatementDir); got != "" {
		t.Errorf("after the removal, the branch has %s", got)
	}
}

// TestStatementFollowsTheSettings turns statements on, to another key, and off, without a change of the files.
func TestStatementFollowsTheSettings(t *testing.T) {
	a, other := newAttested(t), newAttested(t)
	attester := a.branch.Attester
	for _, step := range []struct {
		what     string
		attester *publish.ArtifactSigner
	}{{"off at first", nil}, {"on", attester}, {"another key", other.branch.Attester}, {"the first key", attester}, {"off", nil}} {
		a.branch.Attester = step.attester
		if !run(t, a.branch, attestedChange(t, configMap("a", "1"))).Changed {
			t.Errorf("%s: no commit", step.what)
		}
		if step.attester == attester {
			a.statement(t, "rendered")
		}
		if got := a.Git("ls-tree", "-r", "--name-only", "rendered", publish.StatementDir); (got == "") != (step.attester == nil) {
			t.Errorf("%s: the branch has %q", step.what, got)
		}
	}
}

// TestStatementIsMadeAnewAfterAnEdit mends a statement that a person has edited.
func TestStatementIsMadeAnewAfterAnEdit(t *testing.T) {
	a := newAttested(t)
	run(t, a.branch, attestedChange(t, configMap("a", "1")))
	w := &reviewed{t: t, repo: a.Repository}
	w.commitTo("rendered", shopStatement, "{}")
	if !run(t, a.branch, attestedChange(t, configMap("a", "1"))).Changed {
		t.Error("the edited statement was left")
	}
	a.statement(t, "rendered")
}

// TestStatementWaitsWithItsPullRequest has two pipelines in one pull request: the statement about the first one, which is read back from
// the branch of the pull request, stays as it was signed.
func TestStatementWaitsWithItsPullRequest(t *testing.T) {
	a, w := newAttested(t), newReviewed(t)
	a.Repository = w.repo
	p := w.restarted("prerig/rendered/all")
	p.Base.Attester = a.branch.Attester
	w.publish(p, change(t, "apps/cart", "cart", configMap("a", "1")))
	w.merge(w.newest(p.Head).Number)
	w.publish(p, attestedChange(t, configMap("a", "1")))
	signed := a.Git("show", p.Head+":"+shopStatement)
	w.publish(p, change(t, "apps/cart", "cart", configMap("a", "2")))
	if got := a.Git("show", p.Head+":"+shopStatement); got != signed {
		t.Errorf("the statement became %s", got)
	}
	a.statement(t, p.Head)
}

// TestStatementBelongsToItsPipeline: otherwise no role of the pipeline would allow a rollback of the commit.
func TestStatementBelongsToItsPipeline(t *testing.T) {
	a := newAttested(t)
	first := run(t, a.branch, attestedChange(t, configMap("a", "1")))
	second := run(t, a.branch, attestedChange(t, configMap("a", "2")))
	unowned, err := publish.UnownedAt(a.branch, second.Commit, first.Commit)
	if err != nil || len(unowned) > 0 {
		t.Errorf("no pipeline owns %v, %v", unowned, err)
	}
}

// secrets are those of one namespace.
type secrets map[string]map[string][]byte

// Secret implements secret.Reader.
func (s secrets) Secret(_ context.Context, _, name string, _ secret.Purpose) (map[string][]byte, error) {
	if s[name] == nil {
		return nil, fmt.Errorf("no secret %s", name)
	}
	return s[name], nil
}

// TestAttestationOfAnEntry reads the key that an entry of spec.publish names.
func TestAttestationOfAnEntry(t *testing.T) {
	a := newAttested(t)
	key, public := cosignKey(t)
	trusted, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	a.keys = []crypto.PublicKey{trusted}
	free := func(context.Context, string) (func(), error) { return func() {}, nil }
	for name, c := range map[string]struct{ secret, problem string }{
		"the key": {"attestation", ""}, "a missing secret": {"other", "no secret other"}, "a secret without a key": {"empty", "has no cosign.key"},
	} {
		to := v1alpha1.Publish{Git: &v1alpha1.GitPublish{URL: a.URL, Branch: "rendered", Path: "shop", Attestation: &v1alpha1.ArtifactSigning{}}}
		to.Git.Attestation.SecretRef.Name = c.secret
		known := secrets{"attestation": key, "empty": {"x": nil}}
		targets := publish.NewTargets(repositories{store: git.NewStore(t.TempDir(), git.DefaultLimits())}, known, free, tree.Limits{}, nil)
		target, err := targets.Open(ctx, "apps", to)
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := target.Publish(ctx, attestedChange(t, configMap("a", "1"))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a.statement(t, "rendered")
	}
}

// TestCosignVerifiesStatements asks the cosign command that PRERIG_COSIGN names, which shares no code with Prerig.
func TestCosignVerifiesStatements(t *testing.T) {
	cosign := os.Getenv("PRERIG_COSIGN")
	if cosign == "" {
		t.Skip("PRERIG_COSIGN names no cosign")
	}
	a := newAttested(t)
	run(t, a.branch, attestedChange(t, configMap("a", "1")))
	dir := t.TempDir()
	verify := func(statement, content string, public []byte) error {
		for name, text := range map[string][]byte{"statement": []byte(statement), "file.yaml": []byte(content), "cosign.pub": public} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		command := exec.Command(cosign, "verify-blob-attestation", "--bundle", "statement", "--key", "cosign.pub", "--type", "slsaprovenance1",
			"--insecure-ignore-tlog", "file.yaml")
		command.Dir = dir
		out, err := command.CombinedOutput()
		t.Logf("%s", bytes.TrimSpace(out))
		return err
	}
	statement, content := a.Git("show", "rendered:"+shopStatement), a.Git("show", "rendered:shop/shop/configmap-a.yaml")+"\n"
	if err := verify(statement, content, a.public); err != nil {
		t.Errorf("verifying the statement: %v", err)
	}
	if verify(statement, content+"\n", a.public) == nil {
		t.Error("a changed file was accepted")
	}
	if verify(statement, content, newAttested(t).public) == nil {
		t.Error("another key was accepted")
	}
}
