// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/review/redact"
)

func TestPair(t *testing.T) {
	const before = `apiVersion: v1
data:
  gone: Z29uZQ==
  password: aHVudGVyMg==
  same: c2FtZQ==
kind: Secret
metadata:
  name: db
  namespace: shop
type: Opaque
---
apiVersion: v1
data:
  password: visible
kind: ConfigMap
metadata:
  name: Secret
`
	const after = `apiVersion: v1
data:
  # hunter3
  new: bmV3
  password: |
    aHVu
    dGVyMw==
  same: c2FtZQ==
kind: Secret
metadata:
  name: db
  namespace: shop
type: Opaque
---
apiVersion: v1
data:
  password: visible
kind: ConfigMap
metadata:
  name: Secret
`
	oldShown, nowShown := redact.Pair([]byte(before), []byte(after))
	want := strings.NewReplacer("Z29uZQ==", "***", "aHVudGVyMg==", "*** (before)", "c2FtZQ==", "***").Replace(before)
	if d := cmp.Diff(want, string(oldShown)); d != "" {
		t.Errorf("before: %s", d)
	}
	want = strings.NewReplacer("# hunter3", "***", "bmV3", "***", "|\n    aHVu\n    dGVyMw==", "*** (after)\n    ***\n    ***", "c2FtZQ==", "***").Replace(after)
	if d := cmp.Diff(want, string(nowShown)); d != "" {
		t.Errorf("after: %s", d)
	}
}

// TestNothingOfASecretIsShown however it is written.
func TestNothingOfASecretIsShown(t *testing.T) {
	for name, text := range map[string]string{
		"stringData":        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  key: CANARY\n",
		"flow":              "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {key: CANARY}\n",
		"flow over lines":   "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {\n  key: CANARY,\n  type: CANARY\n}\n",
		"JSON":              `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"key":"CANARY"}}` + "\n",
		"JSON over lines":   "{\n\"kind\": \"Secret\",\n\"data\": {\"key\": \"CANARY\"}}\n",
		"folded":            "kind: Secret\nmetadata:\n  name: a\nstringData:\n  key: >-\n    CANARY\n    type: CANARY\n",
		"value below":       "kind: Secret\nstringData:\n  key:\n    CANARY\n",
		"quoted keys":       "\"kind\": Secret\n\"stringData\":\n  \"key\": CANARY\n",
		"quoted over lines": "kind: Secret\nstringData:\n  key: \"CANARY\n    CANARY\n\n    type: CANARY\"\n",
		"question mark":     "kind: Secret\nstringData:\n  ? key\n  : CANARY\n",
		"anchors":           "kind: Secret\nstringData:\n  key: &a CANARY\n  other: *a\n",
		"a list":            "kind: List\nitems:\n- kind: Secret\n  stringData: {key: CANARY}\n",
		"a list of lists":   "kind: List\nitems:\n- kind: List\n  items:\n  - kind: Secret\n    stringData:\n      key: CANARY\n",
		"kubectl apply":     "kind: Secret\nmetadata:\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: |\n      {\"data\":{\"key\":\"CANARY\"}}\n  name: a\n",
		"the same in flow":  "kind: Secret\nmetadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: 'CANARY'}}\n",
		"the same in parts": "kind: Secret\nmetadata:\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: \"a\n      CANARY\"\n    b: c\n",
		"not YAML":          "kind: Secret\nstringData: [CANARY\n",
		"twice the key":     "kind: Secret\nstringData: {a: CANARY}\nstringData:\n  a: CANARY\n",
		"line ends":         "kind: Secret\r\nstringData:\r\n  key: CANARY\r\n",
		"after others":      "a: 1\n---\nb: 2\n--- {kind: Secret, stringData: {key: CANARY}}\n",
		"SOPS":              "kind: Secret\nstringData:\n  key: CANARY\nsops:\n  mac: CANARY\n",
	} {
		checkHidden(t, name, text)
	}
}

// checkHidden sees that a text shows nothing of the values that stand for CANARY, whatever it is compared with.
func checkHidden(t *testing.T, name, text string) {
	t.Helper()
	const canary = "correct-horse-battery"
	for _, value := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
		secret := []byte(strings.ReplaceAll(text, "CANARY", value))
		for _, other := range []string{"", "kind: Secret\nstringData:\n  key: other\n", strings.ReplaceAll(text, "CANARY", "other")} {
			shown, otherShown := redact.Pair(secret, []byte(other))
			swapped, swappedShown := redact.Pair([]byte(other), secret)
			if all := string(shown) + string(otherShown) + string(swapped) + string(swappedShown); strings.Contains(all, value) {
				t.Errorf("%s:\n%s", name, all)
			}
			if got, want := strings.Count(string(shown), "\n"), strings.Count(string(secret), "\n"); got != want {
				t.Errorf("%s: %d lines of %d:\n%s", name, got, want, shown)
			}
		}
	}
}

// TestOnlyTheWordIsAKind: letters beside it are a part of the value, and nothing else is.
func TestOnlyTheWordIsAKind(t *testing.T) {
	for _, kind := range []string{"Secret", "'Secret'", `"Secret"`, "!!str Secret", "&a Secret", "\n  Secret", "\n- Secret", "Secret # a", ">-\n  Secret", "\"\\\nSecret\""} {
		text := "kind: " + kind + "\nstringData:\n  key: canary\n"
		if shown, _ := redact.Pair([]byte(text), nil); strings.Contains(kind, "- ") != strings.Contains(string(shown), "canary") {
			t.Errorf("kind %s:\n%s", kind, shown)
		}
	}
	for _, text := range []string{
		`kind: "\x53ecret"` + "\nstringData:\n  key: canary\n",
		`kind: "Secr\u0065t"` + "\nstringData:\n  key: canary\n",
		`kind: "\U00000053ecret"` + "\nstringData:\n  key: canary\n",
		"kind: \"Sec\\\n  ret\"\nstringData:\n  key: canary\n",
		"kind: \"Sec\\\r\n  ret\"\nstringData:\n  key: canary\n",
		"kind: !!binary U2VjcmV0\nstringData:\n  key: canary\n",
		"kind: !<tag:yaml.org,2002:binary> U2VjcmV0\nstringData:\n  key: canary\n",
		"kind: !!b%69nary U2VjcmV0\nstringData:\n  key: canary\n",
		"%TAG !a! tag:yaml.org,2002:bi\n---\nkind: !a!nary U2VjcmV0\nstringData:\n  key: canary\n",
		`{"kind":"Secr\u0065t","stringData":{"key":"canary"}}`,
		`{"k\u0069nd":"\u0053ecret","stringData":{"key":"canary"}}`,
		`{"kind":"List","items":[{"kind":"Secr\u0065t","stringData":{"key":"canary"}}]}`,
		"a: 1\n---\nkind: \"Secr\\u0065t\"\nstringData:\n  key: canary\n",
		"\xff\xfe" + strings.Join(strings.Split("kind: Secret\nstringData:\n  key: canary\n", ""), "\x00") + "\x00",
	} {
		for _, other := range []string{"", text, strings.ReplaceAll(text, "canary", "other")} {
			was, now := redact.Pair([]byte(text), []byte(other))
			then, is := redact.Pair([]byte(other), []byte(text))
			if all := strings.ReplaceAll(string(was)+string(now)+string(then)+string(is), "\x00", ""); strings.Contains(all, "canary") {
				t.Errorf("%q:\n%s", text, all)
			}
		}
	}
	for _, text := range []string{"kind: Pod\nspec: {imagePullSecrets: [{name: a}]}\n", "kind: SecretStore\ndata: {a: b}\n", "kind: Secrets\ndata: {a: b}\n",
		`kind: "S\x65cretStore"` + "\ndata: {a: b}\n", "kind: ConfigMap\ndata: {a: \"\\u0053ecret\"}\nbinaryData: {a: U2VjcmV0}\n"} {
		if shown, _ := redact.Pair([]byte(text), nil); string(shown) != text {
			t.Errorf("got\n%s", shown)
		}
	}
}

// TestWhatIsNoSecretIsShown also where it says the word.
func TestWhatIsNoSecretIsShown(t *testing.T) {
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  volumes:\n  - name: a\n    secret: {secretName: Secret}\n"
	if got, _ := redact.Pair([]byte(text), nil); string(got) != text {
		t.Errorf("got\n%s", got)
	}
}
