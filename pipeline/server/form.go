// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
)

// formKey creates the tokens of forms. Each is bound to the credential of the user that received the form, so that
// a page of another site can neither know one nor submit one that its author received.
type formKey [sha256.Size]byte

func newFormKey() (k formKey) {
	_, _ = rand.Read(k[:])
	return k
}

// formField is the name of the field with a form's token.
const formField = "csrf"

// formToken returns the token for forms that are shown to who asks, or "" without a credential.
func (k formKey) formToken(r *http.Request) string {
	credential := requestOf(r).credential
	if credential == "" {
		return ""
	}
	sum := hmac.New(sha256.New, k[:])
	sum.Write([]byte(credential))
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// isOwnForm reports whether a submitted form was issued to its sender.
func (k formKey) isOwnForm(r *http.Request) bool {
	return requestOf(r).credential != "" && hmac.Equal([]byte(r.PostFormValue(formField)), []byte(k.formToken(r)))
}

// isBrowserRequest reports whether a request's headers identify a browser as the sender.
func isBrowserRequest(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
}
