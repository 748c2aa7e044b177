// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"net"
	"testing"
)

func TestHostAndPortAreThoseOfNet(t *testing.T) {
	for _, s := range []string{
		"", ":", "a", "a:", ":1", "a:1", "a.b:15012", "a:b:1", "::1:1", "[::1]:1", "[::1]1", "[::1]", "[::1:1", "::1]:1", "[a]:1", "[[::1]]:1",
		"[]:1", "a]:1", "[a:1", "a:[1]", "a:1]", "[fe80::1%eth0]:1", "x[::1]:1", "[::1]x:1", "[]", "[:1", "]:1", "[a]:b:1",
	} {
		wantHost, wantPort, err := net.SplitHostPort(s)
		host, port, ok := hostAndPort(s)
		if ok != (err == nil) || ok && (host != wantHost || port != wantPort) {
			t.Errorf("%q: got %q, %q, %t; want %q, %q, %v", s, host, port, ok, wantHost, wantPort, err)
		}
	}
}
