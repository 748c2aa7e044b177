// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/secret"
)

// heldSecrets are secrets in memory.
type heldSecrets map[string]map[string][]byte

func (h heldSecrets) Secret(_ context.Context, _, name string, _ secret.Purpose) (map[string][]byte, error) {
	return h[name], nil
}

// TestNoValueOfASecretIsRepeated of what a registry answers that echoes all that it gets, in all forms.
func TestNoValueOfASecretIsRepeated(t *testing.T) {
	const password, auth, token = `correct+horse/"battery"&5`, "in-the-auth-field", "registry-token-of-docker"
	both := base64.StdEncoding.EncodeToString([]byte("robot:" + auth))
	r := &report{}
	r.secrets.from = heldSecrets{
		"plain": {"username": []byte("bot"), "password": []byte(password + "\n")},
		"docker": {".dockerconfigjson": []byte(fmt.Sprintf(`{"auths":{"a.example.com":{"username":"bot","password":%q},`+
			`"b.example.com":{"auth":%q},"c.example.com":{"registrytoken":%q}}}`, password, both, token))},
		"longer": {"token": []byte("correct"), "token2": []byte("correct-and-its-tail")},
	}
	for name := range r.secrets.from.(heldSecrets) {
		if _, err := r.secrets.Secret(t.Context(), "", name, secret.Purpose{}); err != nil {
			t.Fatal(err)
		}
	}
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		user, pass, ok := req.BasicAuth()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="a"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"errors":[{"code":"DENIED","message":%q}]}`, req.Header.Get("Authorization")+" "+user+" "+pass)
	}))
	t.Cleanup(func() { echo.CloseClientConnections(); _ = echo.Config.Close() })
	at, err := name.ParseReference(strings.TrimPrefix(echo.URL, "http://")+"/a:b", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		url.QueryEscape(password), url.PathEscape(password), fmt.Sprintf("%q", password), (&url.URL{Host: "h", User: url.UserPassword("bot", password)}).String(),
		base64.StdEncoding.EncodeToString([]byte(password)), base64.URLEncoding.EncodeToString([]byte("x-access-token:" + password)),
		"at correct-and-its-tail", both, auth, token, base64.StdEncoding.EncodeToString([]byte("a:" + token + ":b")),
	}
	for _, with := range []authn.Basic{{Username: "bot", Password: password}, {Username: "robot", Password: auth}, {Username: "another", Password: password}} {
		_, err := remote.Get(at, remote.WithAuth(&with), remote.WithContext(t.Context()))
		if err == nil {
			t.Fatal("the registry denies nothing")
		}
		texts = append(texts, err.Error())
	}
	for _, text := range texts {
		r.addFailure(Secrets, text, errors.New(text), text)
	}
	for _, f := range r.sortedRedactedFindings() {
		if f.Severity != result.Error || !strings.Contains(f.Message, "***") {
			t.Errorf("nothing is hidden in %s", f.Message)
		}
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for _, value := range []string{password, auth, token, "-and-its-tail"} {
				for before := range 3 {
					encoded := encoding.EncodeToString([]byte(strings.Repeat(":", before) + value))
					if all := f.Where + f.Message + f.Advice; strings.Contains(all, encoded[4:len(encoded)-4]) || strings.Contains(all, value) ||
						strings.Contains(all, url.QueryEscape(value)) {
						t.Errorf("it says %s", f.Message)
					}
				}
			}
		}
	}
}
