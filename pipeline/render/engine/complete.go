// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/render/remotebase"
)

// checkComplete compares the remote entries found by the scan with those that kustomize itself reads, which
// supports spellings that are not followed here: an entry that is not found cannot be checked and is rejected. It
// replaces aliases by their values.
func checkComplete(k *reference.File, content []byte) error {
	if k.From == "" && !bytes.ContainsAny(content, "@\\") && !bytes.Contains(content, []byte("://")) && !bytes.Contains(bytes.ToLower(content), []byte("github.com")) {
		return nil
	}
	var read types.Kustomization
	if err := read.Unmarshal(content); err != nil {
		return nil //nolint:nilerr // kustomize is going to report it
	}
	read.FixKustomization() // puts bases among resources
	left := map[string]int{}
	for _, e := range k.Remote {
		left[e.Value]++
	}
	for _, list := range [][]string{read.Resources, read.Components, read.Generators, read.Transformers, read.Validators} {
		for _, value := range list {
			if strings.Contains(value, "\n") {
				continue
			}
			if !reference.IsRemote(value) {
				if k.LeavesSource(value) {
					return fmt.Errorf("%s: %s leads out of the source that is mounted at %s", k.Shown, value, k.From)
				}
				continue
			}
			if left[value]--; left[value] < 0 {
				return fmt.Errorf("%s: %s is remote, and written in a way that cannot be followed; write it out under resources or components", k.Shown, remotebase.Redacted(value))
			}
		}
	}
	return nil
}

var userInfo = lazyregexp.New(`//[^/@]*@`)

// withoutCredentials removes user and password from a URL: messages end up in logs.
func withoutCredentials(value string) string { return userInfo.ReplaceAllString(value, "//") }
