// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package redact hides the values of Secrets in manifests that are shown to people, line by line, so that a
// difference still shows which of them are new, removed or changed, as kubectl diff does.
package redact

import (
	"bytes"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// Replacements for a value: one that is the same in both texts or only in one, and one that differs.
const (
	hidden       = "***"
	hiddenBefore = "*** (before)"
	hiddenAfter  = "*** (after)"
)

// Pair returns two versions of a file of manifests with the same lines, in which the values of Secrets are hidden.
// Text that cannot be parsed as manifests and may contain Secret somewhere is hidden as a whole.
func Pair(old, now []byte) (oldShown, nowShown []byte) {
	if !maySaySecret(old) && !maySaySecret(now) {
		return old, now
	}
	before, after := readFile(old), readFile(now)
	return before.hideSecretValues(after.values, hiddenBefore), after.hideSecretValues(before.values, hiddenAfter)
}

// file is the documents of a text, and what the Secrets among them hold, by their names and keys.
type file struct {
	text      []byte
	documents []document
	values    map[string]string
	unread    bool
}

type document struct {
	text   []byte
	secret string // its name, "" for what is no Secret
	read   *manifest.Document
	object map[string]any // of what may be a Secret; nil where it cannot be read
}

func readFile(text []byte) file {
	f := file{text: text, values: map[string]string{}}
	parsed, err := manifest.Parse("", text)
	if err != nil {
		f.unread = true
		return f
	}
	for _, one := range parsed.Docs {
		d := document{text: one.Raw(), read: one}
		if hasKind(d.text) || mayEncode(d.text) {
			f.recordSecretDocument(&d)
		}
		f.documents = append(f.documents, d)
	}
	return f
}

// recordSecretDocument names a document that is a Secret, or may be or contain one, and records its values.
func (f *file) recordSecretDocument(d *document) {
	object, err := d.read.Object()
	if err != nil {
		d.secret = "?"
		return
	}
	d.object = object
	kind := false
	for key, value := range object {
		switch {
		case strings.EqualFold(key, "items") && value != nil:
			d.secret = "?" // a list may hold some
			return
		case strings.EqualFold(key, "kind") && value == "Secret":
			kind = true
		}
	}
	if !kind {
		return
	}
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, named := metadata["name"].(string)
	d.secret = namespace + "/" + name
	if !named && metadata["name"] != nil {
		d.secret = "?"
		return
	}
	for _, field := range []string{"data", "stringData"} {
		values, ok := object[field].(map[string]any)
		if !ok && object[field] != nil {
			d.secret = "?"
			return
		}
		for key, value := range values {
			f.values[valueKey(d.secret, field, key)], _ = value.(string)
		}
	}
}

func valueKey(secret, field, key string) string { return secret + "\x00" + field + "\x00" + key }

// hideSecretValues returns the text with the values of its Secrets hidden; one that differs from the other text's is
// replaced by changed.
func (f *file) hideSecretValues(other map[string]string, changed string) []byte {
	if f.unread {
		return hideLines(f.text)
	}
	var out bytes.Buffer
	for _, d := range f.documents {
		if d.secret == "" {
			out.Write(d.text)
			continue
		}
		out.Write(d.hideValues(func(field, key string) string {
			at := valueKey(d.secret, field, key)
			if before, ok := other[at]; ok && before != f.values[at] {
				return changed
			}
			return hidden
		}))
	}
	return out.Bytes()
}

// entryRule is an entry of a block mapping whose key needs no quotes, as those of a Secret need none.
var entryRule = lazyregexp.New(`^( *)([-._a-zA-Z0-9]+):`)

// hideValues hides all but what is known to be open: the open fields, and the keys of the others.
func (d document) hideValues(show func(field, key string) string) []byte {
	var out strings.Builder
	sections, number := d.unambiguousSections(), 0
	var in section
	indent, noted := -1, false // noted: in what kubectl apply notes, which holds the values once more
	for line := range strings.Lines(string(d.text)) {
		number++
		body := strings.TrimRight(line, "\r\n")
		end := line[len(body):]
		entry := entryRule.FindStringSubmatch(body)
		begins := len(sections) > 0 && sections[0].line == number
		if begins {
			in, sections, indent, noted = sections[0], sections[1:], -1, false
		}
		switch {
		case strings.HasPrefix(body, "---") && strings.TrimSpace(body) == "---", body == "":
		case begins && (entry == nil || entry[1] != "" || entry[2] != in.field):
			in.open = false // its key is not written as usual
			body = hideLine(body)
		case begins:
			if !in.open || strings.Contains(body, lastApplied) {
				body = shownEntry(body, entry[0], hidden)
			}
		case in.open:
			depth := len(body) - len(strings.TrimLeft(body, " "))
			if noted = strings.Contains(body, lastApplied) || noted && depth > indent; noted || in.isInLastApplied(number) {
				body = hideLine(body)
			}
			if !noted || strings.Contains(line, lastApplied) {
				indent = depth
			}
		case entry != nil && in.keys[entry[2]] && (indent < 0 || len(entry[1]) == indent):
			indent = len(entry[1])
			body = shownEntry(body, entry[0], show(in.field, entry[2]))
		default:
			body = hideLine(body)
		}
		out.WriteString(body + end)
	}
	return []byte(out.String())
}

// shownEntry is an entry whose value is hidden, where it has one in its line.
func shownEntry(line, key, shown string) string {
	if strings.TrimSpace(line[len(key):]) == "" {
		return line
	}
	return key + " " + shown
}

// hideLine hides all of a line but its indentation.
func hideLine(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " "))] + hidden
}

func hideLines(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		body := bytes.TrimRight(line, "\r\n")
		out.WriteString(hideLine(string(body)))
		out.Write(line[len(body):])
	}
	return out.Bytes()
}
