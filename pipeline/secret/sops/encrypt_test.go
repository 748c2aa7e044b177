// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sops_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/secret/sops"
)

// documents are Secrets that are odd in one way or another.
var documents = map[string]string{
	"stringData": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  password: c4nary-1\n  user: app\ntype: Opaque\n",
	"data":       "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\ndata:\n  key.bin: AAEC/w==\n  empty: \"\"\n  nothing:\n",
	"comments": "# of the shop\napiVersion: v1\nkind: Secret\nmetadata:\n  name: db # its name\nstringData:\n  # c4nary-2 was the last one\n  password: c4nary-3 # c4nary-4\n" +
		"  # c4nary-5 at the end\n# the type\ntype: Opaque\n",
	"many lines":      "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  config.yaml: |\n    password: c4nary-6\n    # and a comment\n\n  folded: >-\n    a\n    c4nary-7\n",
	"scalars":         "apiVersion: v1\nkind: Secret\nimmutable: true\nmetadata:\n  name: db\n  generation: 3\n  creationTimestamp: 2026-01-02T03:04:05Z\n  annotations: {a: \"1.50\", b: '2026-01-02', c: \"on\", d: \"\"}\nstringData: {a: \"true\", b: \"007\", c: \"1e3\", d: \"null\", e: \"c4nary-8\"}\n",
	"data elsewhere":  "apiVersion: v1\nkind: Secret\nmetadata:\n  name: data\n  annotations: {data: c4nary-9}\n  finalizers: [data, other]\nstringData: {stringData: c4nary-10}\n",
	"other order":     "type: Opaque\nstringData: {z: c4nary-11, a: c4nary-12}\nmetadata: {name: db}\nkind: Secret\napiVersion: v1\n",
	"looks encrypted": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {a: \"ENC[not\", b: \"c4nary-13: [x\"}\n",
	"letters":         "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {a: \"c4nary-14 äöü € 日本 \\U0001F600\\u0007\\0\"}\n",
	"long":            "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {a: \"" + strings.Repeat("c4nary-15", 20_000) + "\"}\n",
}

var seed = bytes.Repeat([]byte("s"), sops.MinSeed)

func newIdentity(t *testing.T) *age.X25519Identity {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func encrypt(t *testing.T, seed []byte, owner, id, text string, to ...*age.X25519Identity) string {
	t.Helper()
	var recipients []string
	for _, one := range to {
		recipients = append(recipients, one.Recipient().String())
	}
	e, err := sops.New(seed, owner, recipients)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Encrypt(id, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestValuesAreDecrypted decrypts data keys with the age library, and values and MAC with the standard library.
func TestValuesAreDecrypted(t *testing.T) {
	first, second := newIdentity(t), newIdentity(t)
	for name, text := range documents {
		t.Run(name, func(t *testing.T) {
			out := encrypt(t, seed, "team/shop", "v1 Secret db", text, first, second)
			if strings.Contains(out, "c4nary") {
				t.Errorf("a value can be read:\n%s", out)
			}
			var got struct {
				Data, StringData map[string]*string
				SOPS             struct {
					Age []struct{ Recipient, Enc string }
					Mac string
				}
			}
			if err := yaml.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			if len(got.SOPS.Age) != 2 || got.SOPS.Age[0].Recipient != first.Recipient().String() {
				t.Fatalf("the recipients are %v", got.SOPS.Age)
			}
			key := openKey(t, got.SOPS.Age[0].Enc, first)
			if diff := cmp.Diff(key, openKey(t, got.SOPS.Age[1].Enc, second)); diff != "" {
				t.Error("the recipients have other keys", diff)
			}
			var want struct{ Data, StringData map[string]*string }
			if err := yaml.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			for field, values := range map[string]map[string]*string{"data": got.Data, "stringData": got.StringData} {
				for name, value := range values {
					if value != nil && *value != "" {
						*value = openValue(t, *value, key, field+":"+name+":")
					}
				}
			}
			if diff := cmp.Diff(want, struct{ Data, StringData map[string]*string }{got.Data, got.StringData}); diff != "" {
				t.Error(diff)
			}
			if mac := openValue(t, got.SOPS.Mac, key, "1970-01-01T00:00:00Z"); !regexp.MustCompile("^[0-9A-F]{128}$").MatchString(mac) {
				t.Errorf("the MAC is %q", mac)
			}
		})
	}
}

func openKey(t *testing.T, text string, identity age.Identity) []byte {
	t.Helper()
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(text)), identity)
	if err != nil {
		t.Fatal(err)
	}
	key, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

var valueRule = regexp.MustCompile(`^ENC\[AES256_GCM,data:(.*),iv:(.*),tag:(.*),type:str\]$`)

func openValue(t *testing.T, value string, key []byte, bound string) string {
	t.Helper()
	parts := valueRule.FindStringSubmatch(value)
	if parts == nil {
		t.Fatalf("%q is not encrypted", value)
	}
	var raw [4][]byte
	for i := 1; i < 4; i++ {
		var err error
		if raw[i], err = base64.StdEncoding.DecodeString(parts[i]); err != nil {
			t.Fatal(err)
		}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, len(raw[2]))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gcm.Open(nil, raw[2], append(raw[1], raw[3]...), []byte(bound))
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// TestTheSameIsTheSame: what is written depends on the seed, the owner, the object, the recipients and the values, and what is not
// encrypted changes the MAC alone.
func TestTheSameIsTheSame(t *testing.T) {
	one, two := newIdentity(t), newIdentity(t)
	text := documents["stringData"]
	as := encrypt(t, seed, "team/shop", "v1 Secret db", text, one)
	if again := encrypt(t, seed, "team/shop", "v1 Secret db", text, one); again != as {
		t.Error("it is another text the second time")
	}
	vector := regexp.MustCompile(`iv:[^,]*`)
	own := map[string]bool{}
	for _, found := range vector.FindAllString(as, -1) {
		if own[found] {
			t.Errorf("%s stands for two values", found)
		}
		own[found] = true
	}
	for name, other := range map[string]string{
		"another seed":      encrypt(t, bytes.Repeat([]byte("t"), 32), "team/shop", "v1 Secret db", text, one),
		"another owner":     encrypt(t, seed, "team/other", "v1 Secret db", text, one),
		"another object":    encrypt(t, seed, "team/shop", "v1 Secret db2", text, one),
		"another recipient": encrypt(t, seed, "team/shop", "v1 Secret db", text, two),
		"one more":          encrypt(t, seed, "team/shop", "v1 Secret db", text, one, two),
		"another value":     encrypt(t, seed, "team/shop", "v1 Secret db", strings.Replace(text, "c4nary-1", "c4nary-2", 1), one),
		"another key":       encrypt(t, seed, "team/shop", "v1 Secret db", strings.Replace(text, "user", "name", 1), one),
	} {
		for _, found := range vector.FindAllString(other, -1) {
			if own[found] {
				t.Errorf("%s: has %s too", name, found)
			}
		}
	}
	labelled := encrypt(t, seed, "team/shop", "v1 Secret db", strings.Replace(text, "metadata:\n", "metadata:\n  labels: {a: b}\n", 1), one)
	same := 0
	for _, found := range vector.FindAllString(labelled, -1) {
		if own[found] {
			same++
		}
	}
	if same != 2 || labelled == as {
		t.Errorf("a label leaves %d values as they were", same)
	}
}

// TestSOPSDecrypts has the program sops decrypt, which compares the MAC too.
func TestSOPSDecrypts(t *testing.T) {
	program, err := filepath.Abs("../../../dist/upstream/sops")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not built: make sops", program)
	}
	first, second := newIdentity(t), newIdentity(t)
	decrypt := func(t *testing.T, text string, identity *age.X25519Identity) (string, error) {
		file := filepath.Join(t.TempDir(), "secret.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program, "decrypt", file)
		cmd.Env = append(os.Environ(), "SOPS_AGE_KEY="+identity.String(), "SOPS_DISABLE_VERSION_CHECK=1")
		var out, problems bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &problems
		if err := cmd.Run(); err != nil {
			return "", errors.New(problems.String())
		}
		if problems.Len() > 0 {
			t.Errorf("it warns: %s", problems.String())
		}
		return out.String(), nil
	}
	for name, text := range documents {
		t.Run(name, func(t *testing.T) {
			out := encrypt(t, seed, "team/shop", "v1 Secret db", text, first, second)
			for _, identity := range []*age.X25519Identity{first, second} {
				plain, err := decrypt(t, out, identity)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				var want, got any
				if err := errors.Join(yaml.Unmarshal([]byte(text), &want), yaml.Unmarshal([]byte(plain), &got)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				for _, comment := range regexp.MustCompile(`(?m)# ?[^\n]*$`).FindAllString(text, -1) {
					if !strings.Contains(plain, strings.TrimSpace(comment)) {
						t.Errorf("the comment %q is gone:\n%s", comment, plain)
					}
				}
			}
			if _, err := decrypt(t, out, newIdentity(t)); err == nil {
				t.Error("anybody can decrypt it")
			}
			if _, err := decrypt(t, strings.Replace(out, "kind: Secret", "kind: Other", 1), first); err == nil || !strings.Contains(err.Error(), "MAC mismatch") {
				t.Errorf("what was tampered with is decrypted: %v", err)
			}
		})
	}
}

func TestWhatIsNotEncrypted(t *testing.T) {
	e, err := sops.New(seed, "shop", []string{newIdentity(t).Recipient().String()})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"a: &x {data: c4nary}\n":              "line 1 has an anchor or an alias",
		"stringData: {1: c4nary}\n":           "line 1 has a key that is not a text",
		"a: 99999999999999999999999\n":        "",
		"a: 18446744073709551615\n":           "line 1 holds a number that SOPS cannot read",
		"- c4nary\n":                          "it is not one YAML mapping",
		"a: 1\n---\nb: {data: {x: c4nary}}\n": "",
		"data: {a: \"c4nary\n":                "it is not one YAML mapping",
	} {
		out, err := e.Encrypt("x", []byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "c4nary") || strings.Contains(string(out), "c4nary") {
			t.Errorf("%q: a value is shown: %v\n%s", text, err, out)
		}
	}
}

func TestRecipients(t *testing.T) {
	identity := newIdentity(t)
	good := identity.Recipient().String()
	mistyped := good[:20] + map[bool]string{true: "p", false: "q"}[good[20] == 'q'] + good[21:]
	for text, want := range map[string]string{
		good: "", "": "is no recipient of age", "age1": "is no recipient of age", mistyped: "its checksum is wrong", strings.ToUpper(good): "is no recipient of age",
		good + "q": "its checksum is wrong", good[:len(good)-1]: "its checksum is wrong", "age1 x": "is no recipient of age",
		"ssh-ed25519 AAAA": "a kind that is not supported", "age1pq1qqqq": "a kind that is not supported", "age1yubikey1qqqq": "a kind that is not supported",
		identity.String(): "this is a private key",
	} {
		_, err := sops.New(seed, "shop", []string{text})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), identity.String()) {
			t.Errorf("the error holds a private key: %v", err)
		}
	}
	for range 50 {
		if _, err := sops.ParseRecipient(newIdentity(t).Recipient().String()); err != nil {
			t.Error(err)
		}
	}
	for what, f := range map[string]func() error{
		"there is no recipient": func() error { _, err := sops.New(seed, "", nil); return err },
		"named twice":           func() error { _, err := sops.New(seed, "", []string{good, good}); return err },
		"must have at least 32": func() error { _, err := sops.New(seed[1:], "", []string{good}); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
