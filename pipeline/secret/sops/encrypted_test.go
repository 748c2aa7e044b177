// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"strings"
	"testing"
)

// TestIsEncryptedFile has each of SOPS' formats, as sops 3.9 writes them, and the same with a value that can be read.
func TestIsEncryptedFile(t *testing.T) {
	t.Parallel()
	const e = "ENC[AES256_GCM,data:b3w=,iv:SCZa=,tag:kWhe==,type:str]"
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"dotenv": {"#" + e + "\nA=" + e + "\nB=\n\nsops_age__list_0__map_enc=-----BEGIN AGE ENCRYPTED FILE-----\\nYWdl\\n\nsops_age__list_0__map_recipient=age1\n" +
			"sops_lastmodified=2026-01-01T00:00:00Z\nsops_mac=" + e + "\nsops_unencrypted_suffix=_unencrypted\nsops_version=3.9.0\n", true},
		"dotenv with a value":    {"A=" + e + "\nB=c4nary\nsops_mac=" + e + "\n", false},
		"dotenv with a comment":  {"# c4nary\nA=" + e + "\nsops_mac=" + e + "\n", false},
		"dotenv without a mac":   {"A=" + e + "\nsops_version=3.9.0\n", false},
		"ini":                    {"[db]\nuser     = " + e + "\npassword = " + e + "\n; " + e + "\n\n[sops]\nage__list_0__map_enc = -----BEGIN\nmac = " + e + "\nversion = 3.9.0\n", true},
		"ini with a value":       {"[db]\nuser = c4nary\n\n[sops]\nmac = " + e + "\n", false},
		"ini with a comment":     {"; c4nary\n[sops]\nmac = " + e + "\n", false},
		"yaml":                   {"a: " + e + "\nb:\n  - c: " + e + "\n  - \"\"\nsops:\n  age: []\n  mac: " + e + "\n  unencrypted_suffix: _unencrypted\n", true},
		"yaml with a value":      {"a: " + e + "\nb: 1\nsops:\n  mac: " + e + "\n", false},
		"yaml with two docs":     {"a: " + e + "\nsops:\n  mac: " + e + "\n---\na: c4nary\n", false},
		"yaml, no mac":           {"a: " + e + "\nsops: {version: 3.9.0}\n", false},
		"yaml, suffix":           {"a_unencrypted: {b: c}\nsops:\n  mac: " + e + "\n  unencrypted_suffix: _unencrypted\n", true},
		"yaml, encrypted regex":  {"host: db\npassword: " + e + "\nsops:\n  mac: " + e + "\n  encrypted_regex: ^password$\n", true},
		"yaml, regex and value":  {"host: db\npassword: c4nary\nsops:\n  mac: " + e + "\n  encrypted_regex: ^password$\n", false},
		"yaml, unencrypted":      {"host: db\npassword: " + e + "\nsops:\n  mac: " + e + "\n  unencrypted_regex: ^host$\n", true},
		"yaml, encrypted suffix": {"host: db\npassword_enc:\n  a: " + e + "\nsops:\n  mac: " + e + "\n  encrypted_suffix: _enc\n", true},
		"json":                   {"{\n\t\"a\": \"" + e + "\",\n\t\"sops\": {\"mac\": \"" + e + "\"}\n}", true},
		"json with a value":      {"{\"a\": \"c4nary\", \"sops\": {\"mac\": \"" + e + "\"}}", false},
		"binary":                 {"{\n\t\"data\": \"" + e + "\",\n\t\"sops\": {\n\t\t\"age\": [],\n\t\t\"mac\": \"" + e + "\"\n\t}\n}", true},
		"nothing":                {"", false},
		"a text":                 {"c4nary", false},
		"text after":             {strings.Repeat(e+"\n", 2) + "c4nary", false},
	} {
		if got := IsEncryptedFile(tc.text); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
