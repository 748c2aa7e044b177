// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package externalartifact

import (
	"net/http"
	"path"
	"strings"
)

// ServeHTTP serves archives to clients that know their path, which includes their digest. It neither lists nor
// accepts archives.
func (k *Keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are answered", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	file, written, err := k.archives.openByURLPath(name)
	if err != nil {
		http.Error(w, "there is no such artifact", http.StatusNotFound)
		return
	}
	defer file.Close()
	h := w.Header()
	h.Set("Content-Type", "application/gzip")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", `"`+strings.TrimSuffix(path.Base(name), archiveEnding)+`"`)
	http.ServeContent(w, r, "", written, file)
}
