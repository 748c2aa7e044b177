// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
)

// formKey creates the tokens of forms. Each is bound to the credential of the user that received the form, so that
// a page of another site can neither know one nor submit one that its author received.
type formKey struct{ key [sha256.Size]byte }

func newFormKey() (*formKey, error) {
	k := &formKey{}
	if _, err := rand.Read(k.key[:]); err != nil {
		return nil, fmt.Errorf("making the key of forms: %w", err)
	}
	return k, nil
}

// formToken returns the token for forms of a credential, or "" without a credential.
func (k *formKey) formToken(credential string) string {
	if credential == "" {
		return ""
	}
	sum := hmac.New(sha256.New, k.key[:])
	sum.Write([]byte(credential))
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// matchesFormToken reports whether a form has the token of a credential.
func (k *formKey) matchesFormToken(credential, token string) bool {
	return credential != "" && hmac.Equal([]byte(token), []byte(k.formToken(credential)))
}

// formField is the name of the field with a form's token.
const formField = "csrf"

// formOf returns the token for forms that are shown to who asks, "" for those who get none.
func (s *Server) formOf(r *http.Request) string { return s.forms.formToken(requestOf(r).credential) }

// isOwnForm reports whether a submitted form was issued to its sender.
func (s *Server) isOwnForm(r *http.Request) bool {
	return s.forms.matchesFormToken(requestOf(r).credential, r.PostFormValue(formField))
}

// isBrowserRequest reports whether a request's headers identify a browser as the sender.
func isBrowserRequest(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
}
