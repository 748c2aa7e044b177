// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"

	"github.com/prerig/prerig/pipeline/daemon/event"
)

// EventReceivers reads the receivers' secrets, and has them read again for each delivery. Errors name files, never what
// is in them. The transport fetches the keys that tokens are checked with.
func (c *Config) EventReceivers(transport http.RoundTripper) ([]event.Receiver, error) {
	var out []event.Receiver
	for i, r := range c.Receivers {
		key := fmt.Sprintf("receivers[%d]", i)
		receiver := event.Receiver{Name: r.Name, Provider: event.Provider(r.Provider), Insecure: r.Insecure}
		if r.Secret != "" {
			file := &secretFile{name: r.Secret}
			if err := file.readSecretFile(); err != nil {
				return nil, c.Placed(key+".secret", fmt.Errorf("reading the secret of receiver %q: %w", r.Name, err))
			}
			receiver.Secret, receiver.Secrets = file.last[0], file.currentSecrets
		}
		if r.Audience != "" || r.Email != "" {
			verifier, err := event.NewTokenVerifier(r.Audience, r.Email, "", transport)
			if err != nil {
				return nil, fmt.Errorf("setting up receiver %q: %w", r.Name, err)
			}
			receiver.Token = verifier
		}
		if err := receiver.Validate(); err != nil {
			if !slices.Contains(event.Providers(), r.Provider) {
				key += ".provider"
			}
			return nil, c.Placed(key, err)
		}
		out = append(out, receiver)
	}
	return out, nil
}

// secretFile holds one secret on each line: while a secret is changed, senders use the old one or the new one.
type secretFile struct {
	name string

	mu   sync.Mutex
	last [][]byte
}

// currentSecrets returns the current content of the file. While it cannot be read, or is empty, its last content
// remains valid.
func (f *secretFile) currentSecrets() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.readSecretFile()
	return f.last
}

// maxSecrets bounds how many secrets one receiver has: each is tried.
const maxSecrets = 4

func (f *secretFile) readSecretFile() error {
	text, err := os.ReadFile(f.name)
	if err != nil {
		return err
	}
	var found [][]byte
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			found = append(found, line)
		}
	}
	if len(found) == 0 || len(found) > maxSecrets {
		return fmt.Errorf("%s must hold one secret, or up to %d on a line each, found %d", f.name, maxSecrets,
			len(found))
	}
	f.last = found
	return nil
}
