// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package secret_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/secret"
)

var ctx = context.Background()

// written returns a directory with files.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSecretsAreReadByName(t *testing.T) {
	secrets := secret.Dir{Path: written(t, map[string]string{
		"apps/git/password": "pw\n", "apps/git/username": "u", "apps/git/.hosts": "git.example.com", "plain/token": "t", "apps/..data/password": "x",
		"apps/empty/.hosts": "git.example.com",
	})}
	keys, err := secrets.Secret(ctx, "apps", "git", secret.At("https://git.example.com/x"))
	if err != nil || string(keys["password"]) != "pw" || string(keys["username"]) != "u" || len(keys) != 2 {
		t.Errorf("%v, %v", keys, err)
	}
	for _, name := range []string{"..", "../plain", "/etc", "", ".hidden", "none", "empty"} {
		if _, err := secrets.Secret(ctx, "apps", name, secret.Purpose{}); err == nil {
			t.Errorf("%q was read", name)
		}
	}
}

// A secret goes to the servers that it names, and over plain http only where it says so.
func TestSecretsGoToTheirServersOnly(t *testing.T) {
	for _, tc := range []struct {
		hosts, url string
		ok         bool
	}{
		{"git.example.com", "https://git.example.com/org/repo.git", true},
		{"git.example.com", "https://GIT.example.com:443/org/repo.git", true},
		{"git.example.com", "ssh://git@git.example.com/org/repo", true},
		{"git.example.com", "git@git.example.com:org/repo.git", true},
		{"# ours\n\n git.example.com # of the platform\n", "https://git.example.com/x", true},
		{"git.example.com", "https://git.example.com.evil.org/org/repo.git", false},
		{"git.example.com", "https://evil.org/git.example.com", false},
		{"git.example.com", "https://git.example.com@evil.org/x", false},
		{"git.example.com", "https://git.example.com:8443/org/repo.git", false},
		{"git.example.com:8443", "https://git.example.com:8443/org/repo.git", true},
		{"git.example.com", "http://git.example.com/org/repo.git", false},
		{"https://git.example.com", "http://git.example.com/org/repo.git", false},
		{"http://git.example.com", "http://git.example.com/org/repo.git", true},
		{"http://git.example.com", "https://git.example.com/org/repo.git", false},
		{"http://127.0.0.1:3000", "http://127.0.0.1:3000/a", true},
		{"http://127.0.0.1:3000", "http://127.0.0.1:3001/a", false},
		{"[::1]:8443", "https://[::1]:8443/a", true},
		{"https://git.example.com/shop/*", "https://git.example.com/shop/web.git", true},
		{"https://git.example.com/shop/*", "https://git.example.com/shop/deep/web", true},
		{"https://git.example.com/shop/*", "https://git.example.com/other/web", false},
		{"https://git.example.com/shop/*", "https://git.example.com/shop/../other/web", false},
		{"https://git.example.com/shop/web", "https://git.example.com/shop/web2", false},
		{"*", "https://git.example.com/x", false},
		{"", "https://git.example.com/x", false},
	} {
		secrets := secret.Dir{Path: written(t, map[string]string{"apps/git/password": "pa55w0rd", "apps/git/.hosts": tc.hosts})}
		_, err := secrets.Secret(ctx, "apps", "git", secret.At(tc.url))
		if (err == nil) != tc.ok {
			t.Errorf("%q for %s: %v", tc.hosts, tc.url, err)
		}
		if err != nil && strings.Contains(err.Error(), "pa55w0rd") {
			t.Errorf("the error holds the secret: %v", err)
		}
	}
}

func TestSecretsWithoutServers(t *testing.T) {
	dir := written(t, map[string]string{"apps/git/password": "pw"})
	for _, tc := range []struct {
		required bool
		purpose  secret.Purpose
		want     string
	}{
		{false, secret.At("https://git.example.com/x"), ""},
		{false, secret.At("http://git.example.com/x"), "over plain http"},
		{false, secret.AtRegistry("oci://registry.example.com/x", true), "over plain http"},
		{false, secret.AtRegistry("oci://registry.example.com/x", false), ""},
		{false, secret.Purpose{URL: "http://flux.example.com/hook", Signs: true}, ""},
		{true, secret.At("https://git.example.com/x"), "does not say which servers it is for; write git.example.com into its key .hosts"},
		{true, secret.Purpose{}, ""},
	} {
		_, err := secret.Dir{Path: dir, RequireHosts: tc.required}.Secret(ctx, "apps", "git", tc.purpose)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
