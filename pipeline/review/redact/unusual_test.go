// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/review/redact"
)

// TestUnusualKeysOfASecretHideTheirValues has what holds the values begin in ways that are no plain key, after fields that are shown.
func TestUnusualKeysOfASecretHideTheirValues(t *testing.T) {
	const head = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n"
	const applied = "kubectl.kubernetes.io/last-applied-configuration"
	for name, text := range map[string]string{
		"in quotes":                   head + "\"stringData\":\n  password: CANARY\n",
		"in single quotes":            head + "'data':\n  password: CANARY\n",
		"escaped":                     head + "\"string\\x44ata\":\n  password: CANARY\n",
		"a blank before the colon":    head + "stringData :\n  password: CANARY\n",
		"a question mark":             head + "? stringData\n:\n  password: CANARY\n",
		"a question mark alone":       head + "?\n  stringData\n:\n  password: CANARY\n",
		"a tag":                       head + "!!str stringData:\n  password: CANARY\n",
		"a long tag":                  head + "!<tag:yaml.org,2002:str> stringData:\n  password: CANARY\n",
		"an anchor":                   head + "&x stringData:\n  password: CANARY\n",
		"an alias":                    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: &x stringData\n*x :\n  password: CANARY\n",
		"a merge":                     head + "<<: {stringData: {password: CANARY}}\n",
		"a merge over lines":          head + "<<:\n  stringData:\n    password: CANARY\n",
		"a merge of what is shown":    "kind: Secret\nmetadata:\n  labels: &x {stringData: {password: CANARY}}\n<<: *x\n",
		"before what is shown":        "'data':\n  password: CANARY\n" + head,
		"with line ends":              strings.ReplaceAll(head+"'data':\n  password: CANARY\n", "\n", "\r\n"),
		"after a line separator":      "kind: Secret\nmetadata:\n  name: \"a\u2028b\"\nstringData:\n  password: CANARY\n",
		"after a carriage return":     "kind: Secret\ntype: Opaque\rstringData: {password: CANARY}\n",
		"flow from the first line":    "{kind: Secret,\n stringData: {password: CANARY}}\n",
		"flow with plain keys":        "{\nkind: Secret,\n stringData: {password: CANARY}}\n",
		"flow after the start":        "a: 1\n--- {kind: Secret,\nmetadata: {name: a},\n stringData: {password: CANARY}}\n",
		"flow at depth 0":             head + "stringData: {\ntype: CANARY,\nmetadata: CANARY\n}\n",
		"quotes over lines":           head + "stringData:\n  password: \"x\ntype: CANARY\n CANARY\"\n",
		"quotes over lines at a key":  head + "stringData:\n  password: \"x\n  CANARY: y\"\n",
		"quotes at a key in what not": head + "sops:\n  password: \"x\n  CANARY: y\"\n",
		"a block in what is shown":    "kind: Secret\ntype: |\n  Opaque\n'data': {password: CANARY}\n",
		"keys twice":                  head + "'data':\n  password: CANARY\ndata: {}\n",
		"metadata twice":              head + "'data': {password: CANARY}\nmetadata:\n  name: a\n  b: CANARY\n",
		"an indented object":          "  kind: Secret\n  metadata:\n    name: a\n  'data':\n    password: CANARY\n",
		"items":                       "apiVersion: v1\nkind: List\nmetadata:\n  resourceVersion: ''\n'items':\n- kind: Secret\n  metadata:\n    name: a\n  'data':\n    password: CANARY\n",
		"items, indented":             "kind: List\nitems:\n  - metadata:\n      name: a\n    kind: Secret\n    metadata: {}\n    'data':\n      password: CANARY\n",
		"items without a break":       "kind: List\nmetadata: {}\n!!str items: [{kind: Secret, stringData: {\nmetadata: CANARY}}]\n",
		"a mapping as a type":         "kind: Secret\ntype:\n  stringData:\n    password: CANARY\n",
		"applied, escaped":            "kind: Secret\nmetadata:\n  annotations:\n    \"kubectl.kubernetes.io/last-applied-\\x63onfiguration\": '\n      CANARY'\n",
		"applied, less indented":      "kind: Secret\nmetadata:\n  annotations:\n    " + applied + ": \"a\n CANARY\"\n    b: c\n",
		"applied, with a ?":           "kind: Secret\nmetadata:\n  annotations:\n    ? " + applied + "\n    : |\n      CANARY\n",
		"applied, in flow":            "kind: Secret\nmetadata: {annotations: {" + applied + ": 'a\n  CANARY'}}\n",
		"applied, in flow, below":     "kind: Secret\nmetadata: {annotations: {\n  " + applied + ": 'a\n  CANARY', b: c}}\n",
		"applied, flow annotations":   "kind: Secret\nmetadata:\n  annotations: {" + applied + ":\n    CANARY}\n",
		"applied, merged":             "kind: Secret\nmetadata:\n  annotations:\n    <<: {\"kubectl.kubernetes.io/last-applied-\\x63onfiguration\":\n      CANARY}\n",
		"applied, an alias":           "kind: Secret\nmetadata:\n  labels: &x\n    \"kubectl.kubernetes.io/last-applied-\\x63onfiguration\": CANARY\n  annotations: *x\n",
	} {
		checkHidden(t, name, text)
	}
}

// TestUsualSecretsAreShownAsEver with what stands beside their values.
func TestUsualSecretsAreShownAsEver(t *testing.T) {
	const text = `# of a chart
---
# Source: chart/templates/secret.yaml
apiVersion: v1
kind: Secret # a comment
metadata:
  name: db
  # of the team
  labels: {app: db}
  annotations:
    note: |
      several

      lines
    kubectl.kubernetes.io/last-applied-configuration: |
      {"kind":"Secret"}
    other: "a
      b"
  managedFields:
  - fieldsV1:
      f:metadata:
        f:annotations:
          f:kubectl.kubernetes.io/last-applied-configuration: {}
          f:other: {}
# and its values
type: Opaque
immutable: true
data:
  # the password
  password: aHVudGVyMg==

  tls.crt: |
    a
    b
  empty:
"quoted": a
stringData: {a: b}
sops:
  mac: ENC
  lastmodified: "2024"
...
---
apiVersion: v1
kind: List
items:
- kind: Secret
  metadata:
    name: a
  data: {a: b}
---
"kind": ConfigMap
data: {a: Secret}
`
	want := strings.NewReplacer(
		"# of a chart", "***", "# Source: chart/templates/secret.yaml", "***", "kubectl.kubernetes.io/last-applied-configuration: |\n      {\"kind\":\"Secret\"}", "***\n      ***",
		"f:kubectl.kubernetes.io/last-applied-configuration: {}", "***", "# the password", "***", "aHVudGVyMg==", "***", "|\n    a\n    b\n", "***\n    ***\n    ***\n",
		"\"quoted\": a", "***", "{a: b}\nsops", "***\nsops", "ENC", "***", "\"2024\"", "***", "...", "***",
		"- kind: Secret\n", "***\n", "    name: a\n  data: {a: b}", "    ***\n  data: ***").Replace(text)
	for _, end := range []string{"\n", "\r\n"} {
		got, _ := redact.Pair([]byte(strings.ReplaceAll(text, "\n", end)), nil)
		if d := cmp.Diff(strings.ReplaceAll(want, "\n", end), string(got)); d != "" {
			t.Errorf("%q: %s", end, d)
		}
	}
}
