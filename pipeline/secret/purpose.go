// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package secret

import (
	"cmp"
	"fmt"
	"net"
	"strings"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

// KeyHosts is the key of a secret that lists the servers it is for: a line for each, either HOST or HOST:PORT, for
// https and ssh only; the same prefixed with http://, if credentials may be sent over the network in the clear; or
// a URL with a path, of one repository or ending in /* for all below. A # begins a comment.
const KeyHosts = ".hosts"

// Purpose is what a secret is asked for.
type Purpose struct {
	// URL of the server that it is used with. It is empty for a key that is only used here, such as one that signs
	// commits.
	URL string
	// Signs reports whether the secret signs what the server receives, and is not sent itself.
	Signs bool
}

// At is the purpose of credentials that are sent to a server.
func At(url string) Purpose { return Purpose{URL: url} }

// AtRegistry is the purpose of credentials for a repository of artifacts, oci://HOST/PATH.
func AtRegistry(url string, insecure bool) Purpose {
	return At(map[bool]string{false: "https://", true: "http://"}[insecure] + strings.TrimPrefix(url, "oci://"))
}

// checkSecretPurpose returns an error if a secret with these hosts must not be used for the purpose; stated reports
// whether it names any. A secret that a server learns cannot be taken back, so in doubt it is not sent.
func (p Purpose) checkSecretPurpose(hosts string, stated, required bool) error {
	if p.URL == "" {
		return nil
	}
	server, err := giturl.Parse(p.URL)
	if err != nil {
		return err
	}
	plain := server.Scheme == "http" && !p.Signs
	if !stated {
		switch {
		case plain:
			return fmt.Errorf("it would go to %s over plain http; if that is meant, write http://%s into its key %s",
				server.Host, server.Host, KeyHosts)
		case required:
			return fmt.Errorf("it does not say which servers it is for; write %s into its key %s", server.Host,
				KeyHosts)
		}
		return nil
	}
	for line := range strings.Lines(hosts) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" && p.hostLineAllowsServer(line, server, plain) {
			return nil
		}
	}
	return fmt.Errorf("it is not for %s: its key %s does not name that server%s", server.Host, KeyHosts,
		map[bool]string{true: " with http:// in front"}[plain])
}

// hostLineAllowsServer reports whether a line of a secret's hosts allows a server.
func (p Purpose) hostLineAllowsServer(line string, server giturl.URL, plain bool) bool {
	scheme, rest, hasScheme := strings.Cut(line, "://")
	if hasScheme && strings.Contains(strings.TrimSuffix(rest, "/"), "/") {
		return p.isBelow(line)
	}
	if !hasScheme {
		scheme, rest = "", line
	}
	if plain != (scheme == "http") && !p.Signs {
		return false
	}
	if scheme != "" && scheme != server.Scheme {
		return false
	}
	host, port := splitHost(strings.TrimSuffix(rest, "/"))
	usual := giturl.DefaultPort(server.Scheme)
	return strings.EqualFold(host, server.Hostname()) && cmp.Or(port, usual) == cmp.Or(server.Port(), usual)
}

// isBelow reports whether the server's URL is that of a repository which a pattern allows.
func (p Purpose) isBelow(line string) bool {
	pattern, err := giturl.ParsePattern(line)
	if err != nil {
		return false
	}
	address, err := giturl.ParseAddress(p.URL)
	if err != nil {
		return false
	}
	_, ok := pattern.Match(&address)
	return ok
}

func splitHost(text string) (host, port string) {
	if host, port, err := net.SplitHostPort(text); err == nil {
		return host, port
	}
	return strings.Trim(text, "[]"), ""
}
