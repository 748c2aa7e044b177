// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package credential_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/secret/credential"
)

// madeUp returns a text of some length as tokens have, which begins with a prefix. It is no token of anybody.
func madeUp(prefix, letters string, length int) string {
	out := prefix
	for i := range length {
		out += string(letters[(i*7+3)%len(letters)])
	}
	return out
}

const (
	upper  = "QWERTYUIOPASDFGHJKLZXCVBNM234567"
	mixed  = "qWeRtYuIoP0aSdFgHjKl1zXcVbNm2"
	digits = "9182736450"
)

// keyPEM returns a new private key.
func keyPEM(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}))
}

func auth(text string) string {
	return fmt.Sprintf(`{"auths": {"registry.example.com": {"auth": "%s"}}}`, base64.StdEncoding.EncodeToString([]byte(text)))
}

func TestForms(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	key := keyPEM(t)
	quoted, err := json.Marshal(map[string]string{"private_key": key})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ value, want string }{
		{key, "a private key"},
		{string(quoted), "a private key"},
		{strings.Replace(key, "PRIVATE", "ENCRYPTED PRIVATE", 2), ""},
		{strings.Replace(key, "PRIVATE", "PUBLIC", 2), ""},
		{"-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----\n", ""},
		{"-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("A", 80) + "\n-----END RSA PRIVATE KEY-----\n", ""},
		{"id=" + madeUp("AKIA", upper, 16), "an access key of AWS"},
		{"AKIAIOSFODNN7EXAMPLE", ""},
		{"AKIAXXXXXXXXXXXXXXXX", ""},
		{madeUp("ghp_", mixed, 36), "a token of GitHub"},
		{madeUp("ghs_", mixed, 36), "a token of GitHub"},
		{madeUp("ghp_", mixed, 35), ""},
		{madeUp("github_pat_", mixed, 22) + madeUp("_", mixed, 59), "a token of GitHub"},
		{madeUp("glpat-", mixed, 20), "a token of GitLab"},
		{madeUp("xoxb-", digits, 12) + madeUp("-", mixed, 24), "a token of Slack"},
		{"https://hooks.slack.com/services/" + madeUp("T", upper, 8) + "/" + madeUp("B", upper, 8) + "/" + madeUp("", mixed, 24), "a webhook of Slack"},
		{"https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", ""},
		{madeUp("AIza", mixed, 35), "a key of Google's APIs"},
		{madeUp("sk_live_", mixed, 24), "a key of Stripe"},
		{madeUp("sk_test_", mixed, 24), ""},
		{madeUp("npm_", mixed, 36), "a token of npm"},
		{madeUp("SG.", mixed, 22) + madeUp(".", mixed, 43), "a key of SendGrid"},
		{madeUp("hvs.", mixed, 24), "a token of Vault"},
		{identity.String(), "a private key of age"},
		{identity.Recipient().String(), ""},
		{"postgres://app:h-unter2@db.shop.svc:5432/app", "a password in a URL"},
		{"see https://web:8080/a and redis://:h-unter2@cache:6379/0", "a password in a URL"},
		{"amqp://guest:p%40ss@mq", "a password in a URL"},
		{"postgres://app@db/app", ""},
		{"postgres://app:$(PASSWORD)@db/app", ""},
		{"postgres://app:${PASSWORD}@db/app", ""},
		{"postgres://app:<password>@db/app", ""},
		{"postgres://app:{{ .Password }}@db/app", ""},
		{"postgres://app:%s@db/app", ""},
		{"postgres://user:password@db/app", ""},
		{"postgres://user:YOUR_SECRET@db/app", ""},
		{"https://example.com/a:b@c", ""},
		{"https://example.com:8443/users/@me", ""},
		{"git@github.com:org/repo.git and mailto:someone@example.com", ""},
		{auth("robot:h-unter2"), "a registry's password"},
		{auth("robot:"), ""},
		{`{"auths": {"registry.example.com": {"auth": ""}}}`, ""},
		{`{"auth": "basic"}`, ""},
	} {
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"b": test.value}})
		if err != nil {
			t.Fatal(err)
		}
		// As YAML in block style it is found as well as in JSON.
		value, err := manifest.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range [][]byte{text, manifest.Marshal(value)} {
			file, err := manifest.Parse("a.yaml", form)
			if err != nil {
				t.Fatal(err)
			}
			found := credential.Find(file.Docs[0])
			if test.want == "" {
				if len(found) > 0 {
					t.Errorf("%q: %s", test.value, found[0])
				}
				continue
			}
			if len(found) != 1 || !strings.HasPrefix(found[0].Message, test.want+" can be read") || found[0].Field.Path != "data.b" {
				t.Errorf("%q: %v", test.value, found)
			}
			for _, one := range found {
				if strings.Contains(one.String(), "h-unter2") || strings.Contains(one.String(), test.value) {
					t.Errorf("it says too much: %s", one)
				}
			}
		}
	}
}

func TestWhereCredentialsAre(t *testing.T) {
	const text = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations:
    example.com/db.url: postgres://app:h-unter2@db/app
spec:
  template:
    spec:
      containers:
      - name: web
        args: [--plain, "--db=postgres://app:h-unter2@db/app"]
        env:
        - {name: PLAIN, value: a}
        - name: DB
          value: postgres://app:h-unter2@db/app
---
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {url: "postgres://app:h-unter2@db/app"}
`
	file, err := manifest.Parse("k8s/web.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, doc := range file.Docs {
		for _, one := range credential.Find(doc) {
			got = append(got, fmt.Sprintf("%s %s %s %s", one.File, one.ResourceRef, one.Field.Path, one.Severity))
		}
	}
	want := []string{
		`k8s/web.yaml:7 Deployment shop/web metadata.annotations["example.com/db.url"] warning`,
		"k8s/web.yaml:13 Deployment shop/web spec.template.spec.containers[0].args[1] warning",
		"k8s/web.yaml:17 Deployment shop/web spec.template.spec.containers[0].env[1].value warning",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found\n%s", strings.Join(got, "\n"))
	}
}
