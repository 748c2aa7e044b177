// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/secret"
)

// encrypting is a pipeline whose Secrets are encrypted with a seed, and the directory of secrets.
func encrypting(t *testing.T, seed string) (p *v1alpha1.RenderPipeline, to v1alpha1.Publish, targets *publish.Targets) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if seed != "" {
		if err := os.MkdirAll(filepath.Join(dir, "team/seed"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "team/seed/seed"), []byte(seed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p = &v1alpha1.RenderPipeline{}
	p.Metadata.Namespace, p.Metadata.Name = "team", "shop"
	to = v1alpha1.Publish{
		Git: &v1alpha1.GitPublish{Branch: "rendered"}, Secrets: v1alpha1.SecretsEncrypt,
		Encryption: &v1alpha1.Encryption{Age: []string{identity.Recipient().String()}, SecretRef: meta.LocalObjectReference{Name: "seed"}},
	}
	return p, to, publish.Readers(nil, secret.Dir{Path: dir}, nil)
}

func readableSecret(text string) render.Object {
	return render.Object{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "db", YAML: []byte("apiVersion: v1\nkind: Secret\nmetadata: {namespace: shop, name: db}\n" + text)}
}

const longSeed = "0123456789abcdef0123456789abcdef\n"

func TestSecretsAreEncrypted(t *testing.T) {
	p, to, targets := encrypting(t, longSeed)
	objects := []render.Object{
		readableSecret("# the password\nstringData: {password: c4nary}\ntype: Opaque\n"),
		{APIVersion: "v1", Kind: "Secret", YAML: []byte("apiVersion: v1\nkind: Secret\nmetadata: {generateName: db-}\ndata: {password: YzRuYXJ5}\n")},
		{APIVersion: "v1", Kind: "Secret", Name: "sealed", YAML: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: sealed}\ndata: {a: 'ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]'}\nsops: {mac: x}\n")},
		{APIVersion: "v1", Kind: "Secret", Name: "empty", YAML: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: empty}\ndata: {}\nstringData: {a: ''}\n")},
		{APIVersion: "v1", Kind: "Secret", Name: "anchored", YAML: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: anchored}\nstringData: {a: &x c4nary, b: *x}\n")},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "plain", YAML: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {a: b}\n")},
	}
	if err := publish.CheckGates(v1alpha1.RenderPipelineSpec{Publish: []v1alpha1.Publish{to}}, nil, objects); err != nil {
		t.Error(err)
	}
	for _, layout := range []v1alpha1.Layout{v1alpha1.LayoutObjects, v1alpha1.LayoutSingle} {
		for _, style := range []v1alpha1.Style{v1alpha1.StyleCanonical, v1alpha1.StylePreserve} {
			t.Run(string(layout)+string(style), func(t *testing.T) {
				to.Git.Layout, to.Git.Style = layout, style
				write := func() map[string][]byte {
					t.Helper()
					w, err := targets.Writer(t.Context(), p, to)
					if err != nil {
						t.Fatal(err)
					}
					files, err := w.Files(objects)
					if err != nil {
						t.Fatal(err)
					}
					return files
				}
				files := write()
				if diff := cmp.Diff(files, write()); diff != "" {
					t.Error("it is other text the second time", diff)
				}
				all := ""
				for name, content := range files {
					if strings.Contains(string(content), "c4nary") || strings.Contains(string(content), "YzRuYXJ5") {
						t.Errorf("%s shows a value:\n%s", name, content)
					}
					all += string(content)
				}
				if got := strings.Count(all, "\nsops:"); got != 4 {
					t.Errorf("%d Secrets are encrypted:\n%s", got, all)
				}
				if got := strings.Contains(all, "# the password"); got != (style == v1alpha1.StylePreserve) {
					t.Errorf("the comment is there: %v", got)
				}
				plain, err := publish.Files(objects, layout, style)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"secret-sealed.yaml", "secret-empty.yaml", "configmap-plain.yaml"} {
					if diff := cmp.Diff(string(plain[name]), string(files[name])); diff != "" {
						t.Error(name, diff)
					}
				}
				// The name of a file must not tell of what is in it.
				if layout == v1alpha1.LayoutObjects && slices.Equal(slices.Sorted(maps.Keys(plain)), slices.Sorted(maps.Keys(files))) {
					t.Error("the digest in the name of the object without a name is that of its plaintext")
				}
				for _, content := range files {
					for one := range strings.SplitSeq(string(content), "\n---\n") {
						if err := yaml.UnmarshalStrict([]byte(one), &map[string]any{}); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
}

func TestSecretsThatCannotBeEncrypted(t *testing.T) {
	for name, test := range map[string]struct{ seed, text, want string }{
		"no seed":           {"", "", "there is no secret team/seed"},
		"a short seed":      {"hunter2", "", "the seed has 7 bytes, and must have at least 32; openssl rand -hex 32 makes one"},
		"an empty seed":     {" \n", "", "the secret seed has no key seed"},
		"encrypted in part": {longSeed, "data: {a: 'ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]', b: c4nary}\nsops: {mac: x}\n", "SOPS has encrypted some of them"},
		"a number":          {longSeed, "stringData: {port: 5432, password: c4nary}\n", "stringData.port is not a text; quote it"},
		"a list":            {longSeed, "data: [c4nary]\n", "data is not a mapping"},
		"said once more":    {longSeed, "  annotations: {x: y}\nstringData: {a: c4nary}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, to, targets := encrypting(t, test.seed)
			object := readableSecret(test.text)
			if name == "said once more" {
				test.want = "the annotation kubectl.kubernetes.io/last-applied-configuration shows them"
				object.YAML = []byte("apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  annotations: {kubectl.kubernetes.io/last-applied-configuration: c4nary}\nstringData: {a: c4nary}\n")
			}
			w, err := targets.Writer(t.Context(), p, to)
			if err == nil {
				_, err = w.Files([]render.Object{object})
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "c4nary") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestForWhomSecretsAreEncrypted(t *testing.T) {
	pipeline := func(publish string) error {
		p, err := v1alpha1.Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop}\nspec:\n  source: {git: {url: https://example.com/a}}\n  publish:\n  - git: {branch: rendered}\n" + publish))
		if err != nil {
			return err
		}
		_, err = publishCheck(p)
		return err
	}
	_, to, _ := encrypting(t, "")
	for text, want := range map[string]string{
		"    secrets: Encrypt\n":                                                                              "spec.publish[0].encryption.age: must be given with secrets: Encrypt",
		"    secrets: Encrypt\n    encryption: {age: []}\n":                                                   "spec.publish[0].encryption.age: must be given",
		"    secrets: Encrypt\n    encryption: {age: [x], secretRef: {}}\n":                                   "spec.publish[0].encryption.secretRef: must be given",
		"    encryption: {age: [x], secretRef: {name: x}}\n":                                                  "spec.publish[0].encryption: is for secrets: Encrypt, and secrets is Refuse",
		"    secrets: Encrypt\n    encryption: {age: [age1x], secretRef: {name: x}}\n":                        "is no recipient of age",
		"    secrets: Encrypt\n    encryption: {age: [" + to.Encryption.Age[0] + "], secretRef: {name: x}}\n": "",
		"    secrets: Encode\n":                                                                               "Encrypt",
	} {
		if err := pipeline(text); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// publishCheck checks what the types of the entries do not tell.
func publishCheck(p *v1alpha1.RenderPipeline) (field string, err error) {
	for _, to := range p.Spec.Publish {
		if field, err = publish.Check(to); err != nil {
			return field, err
		}
	}
	return "", nil
}
