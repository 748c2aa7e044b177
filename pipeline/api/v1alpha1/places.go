// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/source/gitname"
)

// checkPublish checks the entries of spec.publish, and refuses one that has a place of an earlier one.
func (v *validator) checkPublish(p *RenderPipeline) {
	has := map[string]int{}
	for i, entry := range p.Spec.Publish {
		at := fmt.Sprintf("spec.publish[%d]", i)
		kinds := entry.publishKindsByName()
		named := map[string]bool{}
		for name, kind := range kinds {
			named[name] = kind != nil
		}
		v.checkExactlyOne(at, named)
		v.checkEnum(at+".secrets", string(entry.Secrets), "Refuse", "Allow", "Encrypt")
		v.checkEncryption(at+".encryption", entry)
		for _, name := range slices.Sorted(maps.Keys(kinds)) {
			if kinds[name] == nil {
				continue
			}
			kinds[name].check(v, at+"."+name, p)
			for _, place := range kinds[name].claimedPlaces() {
				if j, taken := has[place.Key]; taken && j != i {
					v.addError(at+"."+place.duplicateField, place.duplicateMessage, j)
				} else {
					has[place.Key] = i
				}
			}
		}
	}
}

// checkEncryption checks that recipients are set if Secrets are encrypted, and only then.
func (v *validator) checkEncryption(at string, entry Publish) {
	switch {
	case entry.Secrets != SecretsEncrypt && entry.Encryption != nil:
		v.addError(at, "is for secrets: Encrypt, and secrets is %s", entry.Secrets)
	case entry.Secrets != SecretsEncrypt:
	case entry.Encryption == nil || len(entry.Encryption.Age) == 0:
		v.addError(at+".age", "must be given with secrets: Encrypt: who can decrypt, as age1… that age-keygen prints")
	case entry.Encryption.SecretRef.Name == "":
		v.addError(at+".secretRef", "must be given: the name of a secret with the key seed; openssl rand -hex 32 makes one")
	}
}

// checkFormat checks how files are laid out and written.
func (v *validator) checkFormat(at string, layout Layout, style Style) {
	v.checkEnum(at+".layout", string(layout), "Objects", "Single")
	v.checkEnum(at+".style", string(style), "Canonical", "Preserve")
}

// checkPath checks that a path stays inside the tree that it is in.
func (v *validator) checkPath(at, value string) {
	clean := path.Clean(value)
	switch {
	case strings.HasPrefix(value, "/"):
		v.addError(at, "must be relative, found %q", value)
	case clean == ".." || strings.HasPrefix(clean, "../"):
		v.addError(at, "must not leave the tree, found %q", value)
	case gitname.CheckText(value) != nil:
		v.addError(at, "%s", gitname.CheckText(value))
	case strings.Contains(value, "\\"):
		v.addError(at, "must not contain a backslash")
	case len(value) > 1024 || slices.ContainsFunc(strings.Split(value, "/"), func(part string) bool { return len(part) > 255 }):
		v.addError(at, "must not be longer than 1024 bytes, nor a part of it than 255: it could not be checked out")
	}
}

// checkWrittenPath checks a path that is written to, which others must be able to check out as well.
func (v *validator) checkWrittenPath(at, value string) {
	before := len(v.errs)
	v.checkPath(at, value)
	clean := path.Clean(value)
	if len(v.errs) > before || clean == "." {
		return
	}
	if err := gitname.CheckPath(clean); err != nil {
		v.addError(at, "%s", err)
	}
}
