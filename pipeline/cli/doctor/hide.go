// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// secretWatch remembers the values of the secrets that were read, so that none is printed, whatever a server
// includes in its errors.
type secretWatch struct {
	from   secret.Reader
	mu     sync.Mutex
	values map[string]bool // in all forms that are looked for
}

// shortestHidden is how long a value must be to be looked for: shorter ones are words of any sentence.
const shortestHidden = 6

// Secret implements secret.Reader.
func (w *secretWatch) Secret(ctx context.Context, namespace, name string,
	purpose secret.Purpose) (map[string][]byte, error) {
	keys, err := w.from.Secret(ctx, namespace, name, purpose)
	for key, value := range keys {
		switch key {
		case "ca.crt", "known_hosts", "username", secret.KeyHosts:
			continue // they are public
		case oci.KeyDockerConfig:
			w.noteDockerConfig(value)
		case "password":
			w.rememberPassword(strings.TrimSpace(string(keys["username"])), strings.TrimSpace(string(value)))
		}
		w.rememberSecretLines(value)
	}
	return keys, err
}

// rememberSecretLines remembers a value, by its lines.
func (w *secretWatch) rememberSecretLines(value []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.values == nil {
		w.values = map[string]bool{}
	}
	for line := range bytes.Lines(value) {
		text := strings.TrimSpace(string(line))
		if len(text) < shortestHidden {
			continue
		}
		for _, form := range encodedSecretForms(text) {
			if len(form) >= shortestHidden {
				w.values[form] = true
			}
		}
	}
}

// rememberPassword remembers a password, and how it is sent with a name by HTTP.
func (w *secretWatch) rememberPassword(username, password string) {
	if password == "" {
		return
	}
	w.rememberSecretLines([]byte(password))
	w.rememberSecretLines([]byte(base64.StdEncoding.EncodeToString([]byte(username + ":" + password))))
}

// noteDockerConfig remembers what is secret in a configuration of Docker.
func (w *secretWatch) noteDockerConfig(value []byte) {
	var config struct {
		Auths map[string]struct {
			Username, Password, Auth, IdentityToken, RegistryToken string
		} `json:"auths"`
	}
	if json.Unmarshal(value, &config) != nil {
		return // its lines are noted
	}
	for _, one := range config.Auths {
		w.rememberPassword(one.Username, one.Password)
		if both, err := base64.StdEncoding.DecodeString(one.Auth); err == nil {
			username, password, _ := strings.Cut(string(both), ":")
			w.rememberPassword(username, strings.TrimRight(password, "\x00"))
		}
		for _, text := range []string{one.Auth, one.IdentityToken, one.RegistryToken} {
			w.rememberSecretLines([]byte(text))
		}
	}
}

// encodedSecretForms are the forms in which a server may repeat a value, or an error quotes it.
func encodedSecretForms(text string) []string {
	quoted := strconv.Quote(text)
	asJSON, _ := json.Marshal(text)
	out := []string{
		text, quoted[1 : len(quoted)-1], string(asJSON[1 : len(asJSON)-1]),
		url.QueryEscape(text), url.PathEscape(text), strings.TrimPrefix(url.UserPassword("", text).String(), ":"),
	}
	// In base64 it depends on how many bytes are before it, as a name is in what HTTP sends, which characters are its
	// own.
	for before, others := range []int{0, 2, 3} {
		padded := append(make([]byte, before), text...)
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := encoding.EncodeToString(padded)
			if len(padded)%3 != 0 {
				encoded = encoded[:len(encoded)-1] // it is partly of what comes after
			}
			out = append(out, encoded[others:], url.QueryEscape(encoded[others:]))
		}
	}
	return append(out, base64.StdEncoding.EncodeToString([]byte(text)), base64.URLEncoding.EncodeToString([]byte(text)),
		base64.RawStdEncoding.EncodeToString([]byte(text)))
}

// hideSecretValues replaces the values in a text, the longest first: a value may be the beginning of another.
func (w *secretWatch) hideSecretValues(text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	values := slices.SortedFunc(maps.Keys(w.values), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	for _, value := range values {
		text = strings.ReplaceAll(text, value, "***")
	}
	return text
}
