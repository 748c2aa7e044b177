// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// Meta holds the fields that identify an object.
type Meta struct {
	APIVersion, Kind, Name, Namespace string
}

// Element returns the apiVersion and kind of the elements of a list that name neither, as clients of the API take them from a typed list such
// as a DeploymentList (decodeToList in apimachinery's unstructured/helpers.go): the API server leaves them out in its lists. Of a List or a
// ResourceList, whose elements may be of any kind, it is empty.
func (m Meta) Element() Meta {
	if m.Kind == "List" || m.Kind == "ResourceList" {
		return Meta{}
	}
	return Meta{APIVersion: m.APIVersion, Kind: strings.TrimSuffix(m.Kind, "List")}
}

// Peek reads apiVersion, kind, metadata.name and metadata.namespace by a scan that is much cheaper than decoding. ok is
// false for what is not an object and for text that the scan is not sure about (quoted or repeated keys, anchors, merge
// keys, tabs, …): then the caller decodes.
func (d *Document) Peek() (m Meta, ok bool) {
	m, ok = d.Scan()
	if !ok || m.Kind == "" {
		return Meta{}, false
	}
	return m, true
}

// Scan is Peek for text that need not be an object. sure reports whether the scan understood the text as a mapping;
// a field of m that is empty, kind included, is then absent from the text.
func (d *Document) Scan() (m Meta, sure bool) {
	i := d.contentStart()
	if i == len(d.text) {
		return Meta{}, false // no content, or content after a directive or on the line of the document start
	}
	if d.text[i] == '{' {
		sure = peekFlow(d.text[i:], &m)
	} else {
		m, sure = peekBlock(&d.documentText, i)
	}
	if !sure {
		return Meta{}, false
	}
	return m, true
}

// StartsList reports whether the document's first token begins a list, so that it can be no mapping. A list behind a
// document start on the same line, a tag or an anchor is not seen.
func (d *documentText) StartsList() bool {
	i := d.contentStart()
	return i < len(d.text) && (d.text[i] == '[' || isDash(d.text, i))
}

// keyValue splits the current line into its key and the text of its value without a comment. The key is "" where it is
// not plainly one.
func (l *lineScanner) keyValue() (key, val string) {
	end := lineEnd(l.s, l.off)
	s := l.s[l.off:end]
	i := strings.IndexByte(s, ':')
	if i <= 0 || i+1 < len(s) && !isBlankOrEnd(s[i+1]) {
		i = l.keyEnd(l.off, end) - l.off - 1
	}
	if i > 0 {
		key = strings.TrimRight(s[:i], " \t") // blanks may precede the colon
	}
	if !plainKey(key) {
		// A key of another form can be none of those that matter, unless it is quoted or merged.
		if j := l.keyEnd(l.off, end); j >= 0 && s[0] != '"' && s[0] != '\'' && s[0] != '<' && s[0] != '-' {
			return s[:j-l.off-1], ""
		}
		return "", ""
	}
	val = trimValue(s[i+1:])
	switch key {
	case "apiVersion", "kind", "metadata", "name", "namespace", "items":
		l.watch = -1
		if val != "" {
			l.watch = l.start
		}
	}
	return key, val
}

func plainKey(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '/' || c == '_' || c == '-') {
			return false
		}
	}
	return s != "" && s[0] != '-'
}

// trimValue removes blanks and a comment from the text of a value.
func trimValue(s string) string {
	s = strings.TrimLeft(s, " \t")
	if s == "" || s[0] == '#' {
		return ""
	}
	if s[0] != '"' && s[0] != '\'' {
		if i := strings.Index(s, " #"); i >= 0 {
			s = s[:i]
		}
	} else if end, ok := quoteEnd(s, 0); ok {
		return s[:end]
	}
	return strings.TrimRight(s, " \t\r")
}

// readSimple reads the text of a value that is a string on one line; null and an empty value are "".
func readSimple(val string, out *string) bool {
	if val == "" {
		return true
	}
	switch c := val[0]; c {
	case '"', '\'':
		if len(val) < 2 || val[len(val)-1] != c || strings.ContainsAny(val[1:len(val)-1], "\\'\"\n") {
			return false
		}
		*out = val[1 : len(val)-1]
		return true
	case '|', '>', '&', '*', '!', '{', '[', '%', '@', '`', '?', '-', '#', ',':
		return false
	}
	s, ok := resolveScalar(val).(string)
	if !ok || strings.Contains(val, ": ") {
		return false
	}
	*out = s
	return true
}

// metaValue reads metadata in flow style on the line of its key.
func metaValue(val string, m *Meta) bool {
	if val == "" {
		return true
	}
	root, err := parseText(val, 0, -1, true, nil)
	if err != nil || root.kind != mappingKind {
		return false
	}
	v, err := (&nodeDecoder{}).decodeValue(root)
	if err != nil {
		return false
	}
	return metaMap(v.(map[string]any), m)
}

func metaMap(md map[string]any, m *Meta) bool {
	for k, out := range map[string]*string{"name": &m.Name, "namespace": &m.Namespace} {
		if v, there := md[k]; there && v != nil {
			s, ok := v.(string)
			if !ok {
				return false
			}
			*out = s
		}
	}
	return true
}

// peekFlow scans a JSON object: only its own keys and those of metadata are looked at.
func peekFlow(s string, m *Meta) bool {
	seen := map[string]bool{}
	return jsonKeys(s, func(key, val string) bool {
		switch key {
		case "apiVersion", "kind", "metadata":
			if seen[key] {
				return false
			}
			seen[key] = true
		}
		switch key {
		case "apiVersion":
			return jsonString(val, &m.APIVersion)
		case "kind":
			return jsonString(val, &m.Kind)
		case "metadata":
			if val == "null" {
				return true
			}
			return jsonKeys(val, func(key, val string) bool {
				if key == "name" && !seen["m.name"] {
					seen["m.name"] = true
					return jsonString(val, &m.Name)
				}
				if key == "namespace" && !seen["m.namespace"] {
					seen["m.namespace"] = true
					return jsonString(val, &m.Namespace)
				}
				return key != "name" && key != "namespace"
			})
		}
		return true
	})
}

func jsonString(val string, out *string) bool {
	if len(val) < 2 || val[0] != '"' || strings.IndexByte(val, '\\') >= 0 {
		return false
	}
	*out = val[1 : len(val)-1]
	return true
}

// jsonKeys calls f for the keys and the text of the values of the JSON object that s starts with.
func jsonKeys(s string, f func(key, val string) bool) bool {
	if s == "" || s[0] != '{' {
		return false
	}
	skip := func(i int) int {
		for i < len(s) && isBlankOrEnd(s[i]) {
			i++
		}
		return i
	}
	i := skip(1)
	if i < len(s) && s[i] == '}' {
		return true
	}
	for i < len(s) && s[i] == '"' {
		end, ok := quoteEnd(s, i)
		if !ok || strings.IndexByte(s[i:end], '\\') >= 0 {
			return false
		}
		key := s[i+1 : end-1]
		if i = skip(end); i >= len(s) || s[i] != ':' {
			return false
		}
		i = skip(i + 1)
		if end, ok = jsonValueEnd(s, i); !ok || !f(key, s[i:end]) {
			return false
		}
		if i = skip(end); i >= len(s) || s[i] != ',' {
			return i < len(s) && s[i] == '}'
		}
		i = skip(i + 1)
	}
	return false
}

func jsonValueEnd(s string, i int) (int, bool) {
	if i >= len(s) {
		return 0, false
	}
	switch s[i] {
	case '"':
		return quoteEnd(s, i)
	case '{', '[':
		return flowEnd(s, i)
	}
	j := i
	for j < len(s) && s[j] != ',' && s[j] != '}' && !isBlankOrEnd(s[j]) {
		if strings.IndexByte("\"'{[]:#&*!|>", s[j]) >= 0 {
			return 0, false
		}
		j++
	}
	return j, j > i
}
