// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/verify/live"
)

// TestWrongKubeconfigNamesItsLine has what client-go accepts or reports in the words of its libraries.
func TestWrongKubeconfigNamesItsLine(t *testing.T) {
	const config = `apiVersion: v1
kind: Config
current-context: p
clusters:
- name: a
  cluster: {SERVER}
users:
- name: u
  user: {USER}
contexts:
- {name: p, context: {cluster: a, user: u}}
`
	const server = `server: "https://127.0.0.1:1"`
	for _, c := range []struct{ server, user, want string }{
		{server, "client-certificate-data: QUJD, client-key-data: QUJD", ":9, context p: client-certificate-data of the user u: it must be the base64 of a PEM file"},
		{server + ", certificate-authority-data: QUJD", "token: x", ":6, context p: certificate-authority-data of the cluster a: it must be the base64 of a PEM file"},
		{server, `token: "abc\n def"`, ":9, context p: token of the user u: the token has a space or a line break"},
		{`server: "https://127.0.0.1:99999"`, "token: x", `:6, context p: the server of the cluster a is "https://127.0.0.1:99999"; its port must be from 1 to 65535`},
		{`sever: "https://127.0.0.1:1"`, "token: x", "the cluster a has no server; add server: https://HOST:6443"},
		{server, "token: x", ""},
	} {
		name := filepath.Join(t.TempDir(), "config")
		text := strings.NewReplacer("SERVER", c.server, "USER", c.user).Replace(config)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := live.Config(name, "")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(c.want, ", context p", ""))) {
			t.Errorf("%s, %s: have %v, want %q", c.server, c.user, err, c.want)
		}
	}
}
