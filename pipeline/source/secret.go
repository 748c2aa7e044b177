// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Secrets reads secrets by name.
type Secrets interface {
	// Secret returns the keys of a secret. Errors never contain a value.
	Secret(ctx context.Context, namespace, name string) (map[string][]byte, error)
}

// DirSecrets reads secrets from a directory: NAMESPACE/NAME/KEY, and NAME/KEY for pipelines without a namespace, as they
// are when Secrets are mounted. Pipelines of a namespace cannot reach the secrets of another.
type DirSecrets struct{ Dir string }

// maxSecret bounds the size of one key.
const maxSecret = 1 << 20

// Secret implements Secrets.
func (s DirSecrets) Secret(_ context.Context, namespace, name string) (map[string][]byte, error) {
	at := path.Join(namespace, name)
	if name == "" || strings.ContainsAny(namespace+name, "/\\") || !fs.ValidPath(at) || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("%q is not a name of a secret", name)
	}
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return nil, errors.New("the directory of secrets cannot be opened; is it there? --secrets or the configuration names it")
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), at)
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
		if err != nil {
			return nil, fmt.Errorf("key %s cannot be read", entry.Name())
		}
		if entry.Name() == "password" || entry.Name() == "username" || entry.Name() == "bearerToken" || entry.Name() == "token" {
			content = []byte(strings.TrimRight(string(content), "\r\n"))
		}
		secret[entry.Name()] = content
	}
	if len(secret) == 0 {
		return nil, fmt.Errorf("secret %s has no keys", at)
	}
	return secret, nil
}
