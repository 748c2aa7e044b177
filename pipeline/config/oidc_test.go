// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestSignInsThatAreNotSafe(t *testing.T) {
	const fine = "external_url: https://prerig.example.com\nadmin:\n  oidc:\n    issuer: https://login.example.com\n    client_id: prerig\n    grants:\n    - {group: dev, role: operate, namespaces: [shop]}\n"
	if _, _, err := load(t, fine); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ old, new, want string }{
		"issuer in the clear":  {"https://login", "http://login", "configuration admin.oidc.issuer: must be an https:// URL"},
		"page in the clear":    {"https://prerig", "http://prerig", "configuration external_url: must be an https:// URL"},
		"no page":              {"external_url: https://prerig.example.com\n", "", "configuration external_url: must be an https:// URL"},
		"no client":            {"    client_id: prerig\n", "", "admin.oidc.client_id: must be given"},
		"nobody":               {"\n    - {group: dev, role: operate, namespaces: [shop]}", " []", "must assign a role to a group"},
		"no group":             {"group: dev", "group: ''", "[0].group must be given"},
		"no role":              {"operate", "root", "[0].role: must be metrics, read, operate or administer"},
		"metrics":              {"operate", "metrics", "metrics are read with a token"},
		"an empty list":        {"[shop]", "[]", "namespaces: must name at least one; leave it out for all"},
		"for ever":             {"    client_id", "    session: 9000h\n    client_id", "admin.oidc.session: must be from 1m"},
		"grants without a URL": {"    issuer: https://login.example.com\n", "", "admin.oidc.issuer: must be given"},
		"everybody looks":      {"admin:\n", "admin:\n  insecure: true\n", "cannot be given where users have names"},
	} {
		text := strings.Replace(fine, tc.old, tc.new, 1)
		if _, _, err := load(t, text); text == fine || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
