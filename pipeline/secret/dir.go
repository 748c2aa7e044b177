// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
)

// Reader reads secrets by name.
type Reader interface {
	// Secret returns the keys of a secret for a purpose, or an error where it is not meant for that. Errors never
	// contain a value.
	Secret(ctx context.Context, namespace, name string, purpose Purpose) (map[string][]byte, error)
}

// Read returns the keys of the secret that a pipeline of a namespace refers to, or nil without a reference. from
// may be nil if no secrets exist.
func Read(ctx context.Context, from Reader, namespace string, ref *meta.LocalObjectReference,
	purpose Purpose) (map[string][]byte, error) {
	if ref == nil {
		return nil, nil
	}
	if from == nil {
		return nil, fmt.Errorf("reading secret %s: no secrets are configured", ref.Name)
	}
	keys, err := from.Secret(ctx, namespace, ref.Name, purpose)
	if err != nil {
		return nil, fmt.Errorf("reading secret %s: %w", ref.Name, err)
	}
	return keys, nil
}

// Dir reads secrets from a directory: NAMESPACE/NAME/KEY, and NAME/KEY for pipelines without a namespace, as they are
// when Secrets are mounted. Pipelines of a namespace cannot reach the secrets of another, and a secret with the key
// KeyHosts is for the servers that it names. Without it one is for every server, but over plain http for none.
type Dir struct {
	// Path of the directory.
	Path string
	// RequireHosts rejects secrets that do not declare which servers they are for.
	RequireHosts bool
}

// maxSecret bounds the size of one key.
const maxSecret = 1 << 20

// Secret implements Reader.
func (s Dir) Secret(_ context.Context, namespace, name string, purpose Purpose) (map[string][]byte, error) {
	at := path.Join(namespace, name)
	if name == "" || strings.ContainsAny(namespace+name, "/\\") || !fs.ValidPath(at) || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("%q is not a name of a secret", name)
	}
	root, err := os.OpenRoot(s.Path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("opening the directory of secrets: %w", fs.ErrPermission)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no %s, as the directory of secrets does not exist; create the file %s/KEY in it, or specify another directory with --secrets or in the configuration", at, at)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), at)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("opening the secret %s: %w", at, fs.ErrPermission)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no secret %s", at)
	}
	secret := map[string][]byte{}
	for _, entry := range entries {
		// A mounted Secret has its files behind links, and hidden directories beside them.
		if strings.HasPrefix(entry.Name(), "..") || entry.IsDir() {
			continue
		}
		info, err := root.Stat(path.Join(at, entry.Name()))
		if err != nil || info.IsDir() || info.Size() > maxSecret {
			continue
		}
		content, err := root.ReadFile(path.Join(at, entry.Name()))
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("reading key %s: %w", entry.Name(), fs.ErrPermission)
		}
		if err != nil {
			return nil, fmt.Errorf("key %s cannot be read", entry.Name())
		}
		secret[entry.Name()] = content
	}
	return Release(at, secret, purpose, s.RequireHosts)
}

// Release returns the keys of a secret for a purpose, or an error if the secret is not meant for it. at names the
// secret in messages; required rejects a secret that does not declare which servers it is for.
func Release(at string, keys map[string][]byte, purpose Purpose, required bool) (map[string][]byte, error) {
	hosts, stated := keys[KeyHosts]
	delete(keys, KeyHosts)
	if len(keys) == 0 {
		return nil, fmt.Errorf("secret %s has no keys", at)
	}
	if err := purpose.checkSecretPurpose(string(hosts), stated, required); err != nil {
		return nil, fmt.Errorf("secret %s may not be used: %w", at, err)
	}
	for _, name := range []string{"password", "username", "bearerToken", "token"} {
		if value, ok := keys[name]; ok { // editors and pipes end it with a line
			keys[name] = bytes.TrimRight(value, "\r\n")
		}
	}
	return keys, nil
}
