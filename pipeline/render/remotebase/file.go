// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package remotebase

import (
	"net/url"
	"path"
	"slices"
)

// IsFile reports whether an entry of a kustomization is the URL of a file that kustomize loads over HTTP. kustomize loads every URL
// that is answered and treats the others as repositories; the extension of the name decides here, as no server is asked.
func IsFile(entry string) bool {
	at, err := url.Parse(entry)
	return err == nil && (at.Scheme == "https" || at.Scheme == "http") && at.Host != "" && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(at.Path))
}
