// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// guardHandler lets through who may.
func (s *Server) guardHandler(access Access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		looks := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case access.Trusted:
		case access.Loopback && !isLocal(r.Host):
			// A page from elsewhere whose name was made to point here must not read ours.
			http.Error(w, "this address is only for names of this machine", http.StatusMisdirectedRequest)
			return
		case looks && (access.Loopback || access.Insecure || r.URL.Path == "/healthz" || r.URL.Path == "/readyz"):
		case !s.isAuthorized(r):
			w.Header().Set("WWW-Authenticate", `Basic realm="prerig", charset="UTF-8"`)
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		case !looks && r.Header.Get("Authorization") != "" && !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "):
			// A browser that remembers a password sends it along with what other pages make it ask for.
			http.Error(w, "changes need the token as a bearer token", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isAuthorized: the token is a bearer token, or for browsers the password of any user.
func (s *Server) isAuthorized(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		_, token, _ = r.BasicAuth()
	}
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.Token))
	return s.Token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Loopback reports whether an address is of this machine only.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && host != "" && isLocal(host)
}

// Token reads the token from its file, which is made where it does not exist.
func Token(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		random := make([]byte, 24)
		if _, err := rand.Read(random); err != nil {
			return "", fmt.Errorf("making a token: %w", err)
		}
		text = []byte(hex.EncodeToString(random) + "\n")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return "", fmt.Errorf("making a token: %w", err)
		}
		err = writeWhole(file, text)
	}
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 16 {
		return "", fmt.Errorf("reading the token: %s holds less than 16 characters; write a longer one, or remove the file to have one made", file)
	}
	return token, nil
}

// writeWhole makes a file that is there with all of its content or not at all, also when this is the last that the process
// or the machine does.
func writeWhole(file string, content []byte) error {
	beside, err := os.CreateTemp(filepath.Dir(file), ".token-") // readable for its owner only
	if err != nil {
		return err
	}
	defer os.Remove(beside.Name()) // gone by then, if all went well
	_, err = beside.Write(content)
	if err := errors.Join(err, beside.Sync(), beside.Close()); err != nil {
		return err
	}
	return os.Rename(beside.Name(), file)
}
