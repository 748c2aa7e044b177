// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"regexp"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// IsEncryptedFile reports whether SOPS has encrypted a file: YAML, JSON, dotenv, INI or the JSON around a binary file.
// Values that SOPS was configured to leave readable, such as those of encrypted_regex, may be readable; all others are
// not.
func IsEncryptedFile(content string) bool {
	return isEncryptedDotenv(content) || isEncryptedINI(content) || isEncryptedYAML(content)
}

// IsEncryptedSet reports whether values are those of a dotenv file that SOPS has encrypted, with its metadata among
// them.
func IsEncryptedSet(values map[string]string) bool {
	if !isSealed(values["sops_mac"]) {
		return false
	}
	for key, value := range values {
		if value != "" && !isSealed(value) && !flatMetadata.MatchString(key) {
			return false
		}
	}
	return true
}

// flatMetadata are the keys of SOPS' metadata in a dotenv file (stores/flatten.go).
var flatMetadata = lazyregexp.New(`^sops_(mac|version|lastmodified|mac_only_encrypted|shamir_threshold|(un)?encrypted_(suffix|regex|comment_regex)|` +
	`(kms|gcp_kms|azure_kv|hc_vault|hckms|age|pgp|key_groups)__list_\d+__\w+)$`)

// isSealed reports whether a text is a value that SOPS has encrypted.
func isSealed(text string) bool {
	return strings.HasPrefix(text, sealStart) && strings.HasSuffix(text, "]")
}

func isEncryptedDotenv(content string) bool {
	values := map[string]string{}
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\r\n")
		if comment, ok := strings.CutPrefix(line, "#"); ok {
			if !isSealed(strings.TrimSpace(comment)) {
				return false
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok && line != "" {
			return false
		}
		if ok {
			values[key] = value
		}
	}
	return IsEncryptedSet(values)
}

// isEncryptedINI reads sections with lines KEY = VALUE; that of SOPS is called sops.
func isEncryptedINI(content string) bool {
	section, sealed := "", false
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), "`\"")
		switch {
		case line == "":
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		case section == "sops":
			sealed = sealed || key == "mac" && isSealed(value)
		case strings.HasPrefix(line, ";") || strings.HasPrefix(line, "#"):
			if !isSealed(strings.TrimSpace(line[1:])) {
				return false
			}
		case !ok || value != "" && !isSealed(value):
			return false
		}
	}
	return sealed
}

func isEncryptedYAML(content string) bool {
	file, err := manifest.Parse("", []byte(content))
	if err != nil {
		return false
	}
	some := false
	for _, doc := range file.Docs {
		if doc.Empty() {
			continue
		}
		object, err := doc.Object()
		metadata, _ := object["sops"].(map[string]any)
		mac, _ := metadata["mac"].(string)
		if err != nil || !isSealed(mac) {
			return false
		}
		some = true
		rule := newReadableRule(metadata)
		for key, value := range object {
			if key != "sops" && !isSealedValue(value, []string{key}, rule) {
				return false
			}
		}
	}
	return some
}

// isSealedValue reports whether all texts below a key are encrypted, but for those that may be readable.
func isSealedValue(value any, path []string, mayRead func(path []string) bool) bool {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if !isSealedValue(v, append(path[:len(path):len(path)], key), mayRead) {
				return false
			}
		}
		return true
	case []any:
		for _, v := range value {
			if !isSealedValue(v, path, mayRead) {
				return false
			}
		}
		return true
	case nil:
		return true
	case string:
		return value == "" || isSealed(value) || mayRead(path)
	}
	return mayRead(path)
}

// newReadableRule returns which values SOPS leaves readable by its metadata: a rule applies to a key and all that is
// below it.
func newReadableRule(metadata map[string]any) func(path []string) bool {
	return func(path []string) bool {
		for name, value := range metadata {
			rule, _ := value.(string)
			inverted, kind, _ := strings.Cut(name, "encrypted_")
			match := ruleMatchers[kind]
			if match == nil || rule == "" || inverted != "" && inverted != "un" {
				continue
			}
			found := slices.ContainsFunc(path, func(key string) bool { return match(rule, key) })
			if found == (inverted == "un") {
				return true
			}
		}
		return false
	}
}

// ruleMatchers are the ways in which SOPS chooses values by their keys.
var ruleMatchers = map[string]func(rule, key string) bool{
	"suffix": func(rule, key string) bool { return strings.HasSuffix(key, rule) },
	"regex": func(rule, key string) bool {
		pattern, err := regexp.Compile(rule)
		return err == nil && pattern.MatchString(key)
	},
}
