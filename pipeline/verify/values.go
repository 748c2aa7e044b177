// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/secret/credential"
)

// longest is how much of a value is shown in text.
const longest = 160

// shortSingleLine writes a value in one line, cut where it is long.
func shortSingleLine(v any) string {
	var out string
	if s, ok := v.(string); ok && !strings.ContainsAny(s, "\n\r") {
		out = s
	} else {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		out = string(text)
	}
	if runes := []rune(out); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return out
}

// hidden replaces a value that is a credential.
const hidden = "***"

// secretName is in the names of variables whose values are credentials, whatever they look like. Short words count where they are one of
// their own: DB_PASS and basicAuth, but not bypass and author.
var secretName = lazyregexp.New(`(?i:passw|passphrase|token|secret|credential|authorization|(?:api|access|private)[_-]?key|` +
	`(?:^|[^a-z])(?:pass|pwd|auth)(?:[^a-z]|$))|[a-z0-9](?:Pass|Pwd|Auth)(?:[^a-z]|$)`)

// lastApplied is the annotation in which kubectl apply keeps the whole object, with the values of all its variables.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// secretNames are fields that name Secrets and files, and are none themselves.
var secretNames = []string{"secretName", "secretNamespace", "secretFile"}

// isSecret reports whether a text below a key is a credential by the name of the key.
func isSecret(key string) bool {
	return key == lastApplied || secretName.MatchString(key) && !slices.Contains(secretNames, key)
}

// redactCredentials returns a change without credentials: what a webhook puts into a pod is in no repository, and more
// people may read a report than the cluster.
func (c change) redactCredentials() change {
	for i, s := range c.path {
		if s.key == "env" && i+2 < len(c.path) && c.path[i+2].key == "value" && secretName.MatchString(c.path[i+1].key) {
			c.want, c.found = maskPresentValue(c.want), maskPresentValue(c.found)
			return c
		}
	}
	last := c.path[len(c.path)-1]
	hide := func(v any) any {
		if _, ok := v.(string); ok && !last.element && isSecret(last.key) {
			return maskPresentValue(v)
		}
		return withoutCredentials(v)
	}
	c.want, c.found = hide(c.want), hide(c.found)
	return c
}

// maskPresentValue hides a value, but not its absence.
func maskPresentValue(v any) any {
	if v == nil || v == "" {
		return v
	}
	return hidden
}

// withoutCredentials returns a value in which texts that are credentials, and those of keys and variables with names of such,
// are hidden.
func withoutCredentials(v any) any {
	switch v := v.(type) {
	case string:
		if credential.IsOne(v) {
			return hidden
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if _, ok := value.(string); ok && isSecret(key) {
				out[key] = maskPresentValue(value)
				continue
			}
			out[key] = withoutCredentials(value)
		}
		if name, ok := v["name"].(string); ok && secretName.MatchString(name) {
			if _, ok := v["value"].(string); ok {
				out["value"] = maskPresentValue(v["value"])
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		before := ""
		for i, value := range v {
			out[i] = withoutCredentials(value)
			word, isText := out[i].(string)
			if isText {
				out[i] = maskCredentialArgument(before, word)
			}
			before = word
		}
		return out
	}
	return v
}

// A name before its value, in a text that may be a command of a shell: an option or a variable before an = sign, a header or a key before
// a colon, or an option before the next word.
var (
	named    = lazyregexp.New(`([\w.-]+)(=|:[ \t]+|\\?["'][ \t]*:[ \t]*)|([\w-]*(?i:authorization)):`)
	followed = lazyregexp.New(`(--?[A-Za-z][\w.-]*)\s+("[^"]*"|'[^']*'|[^\s"'-]\S*)`)
	option   = lazyregexp.New(`^--?[A-Za-z][\w.-]*$`)
	quote    = lazyregexp.New(`^\\?["']`)
	next     = lazyregexp.New(`[,&;][\w.-]+=`)
)

// aboutSecret matches the end of option names that describe a credential, or its location.
var aboutSecret = lazyregexp.New(`(?i:[_.-](?:mode|name|namespace|path|file|dir|directory|type|method|provider|ttl|timeout))$|` +
	`[a-z0-9](?:Mode|Name|Namespace|Path|File|Dir|Directory|Type|Method|Provider|TTL|Timeout)$`)

// isSecretOption reports whether the value of an option is a credential by its name.
func isSecretOption(name string) bool { return isSecret(name) && !aboutSecret.MatchString(name) }

// maskCredentialArgument hides in an argument of a command what is a credential by the name of its option, which may be
// the argument before.
func maskCredentialArgument(before, word string) string {
	if option.MatchString(before) && isSecretOption(before) && word != "" && !strings.HasPrefix(word, "--") {
		return hidden
	}
	if name, value, ok := strings.Cut(word, "="); ok && value != "" && isSecretOption(name) && !strings.ContainsAny(name, " \t\n") {
		return name + "=" + hidden // with all words that follow
	}
	return followed.ReplaceAllStringFunc(withoutNamed(word), func(found string) string {
		parts := followed.FindStringSubmatch(found)
		if !isSecretOption(parts[1]) {
			return found
		}
		return strings.TrimSuffix(found, parts[2]) + hidden
	})
}

// withoutNamed hides the values that directly follow names of credentials. A value may itself be a name with a value.
func withoutNamed(text string) string {
	var out strings.Builder
	done := 0
	for _, at := range named.FindAllStringSubmatchIndex(text, -1) {
		start, end := at[0], at[1]
		if start < done || !isSecretOption(strings.TrimRight(text[start:end], "=:\\\"' \t")) {
			continue
		}
		if length := valueLength(text, start, end); length > 0 {
			out.WriteString(text[done:end] + hidden)
			done = end + length
		}
	}
	return out.String() + text[done:]
}

// valueLength returns how long the value is that begins at end, after a name that begins at start. Where it is not clear it is rather
// longer: who reads a report misses less by that than by a password in it.
func valueLength(text string, start, end int) int {
	value, open := text[end:], openQuote(text[:end])
	if q := quote.FindString(value); q != "" && (len(q) > 1 || q[0] != open || !endsWord(value[1:])) {
		if i := strings.Index(value[len(q):], q); i >= 0 {
			return i + 2*len(q)
		}
		return len(value)
	}
	if i := strings.IndexByte(value, open); open != 0 && i >= 0 {
		value = value[:i]
	}
	if text[end-1] != '=' { // a header or a key has its line
		if i := strings.IndexAny(value, "\r\n"); i >= 0 {
			value = value[:i]
		}
		return len(value)
	}
	// Only in a command can a blank end it: not in an argument of its own, nor where quotes begin with the name.
	quoted := open != 0 && start > 0 && text[start-1] == open
	if i := strings.IndexAny(value, " \t\r\n"); i >= 0 && !quoted && strings.ContainsAny(text[:start], " \t\r\n") {
		value = value[:i]
	}
	if at := next.FindStringIndex(value); at != nil {
		value = value[:at[0]]
	}
	return len(value)
}

// endsWord reports whether a shell word has ended where the text continues: then a quote right before closes. A
// quote in the middle of a word rather opens: an earlier apostrophe need not have been a quote.
func endsWord(text string) bool {
	return text == "" || strings.ContainsRune(" \t\r\n;&|)", rune(text[0]))
}

// openQuote returns the quote that is open at the end of a text, as a shell reads it, or 0.
func openQuote(text string) byte {
	var open byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && open != '\'':
			i++
		case c == open:
			open = 0
		case c == '#' && open == 0 && (i == 0 || endsWord(text[i-1:])): // a comment, to the end of its line
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return 0
			}
			i += end
		case open == 0 && (c == '"' || c == '\''):
			open = c
		}
	}
	return open
}
