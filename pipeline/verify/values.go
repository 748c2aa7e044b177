// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/credential"
)

// longest is how much of a value is shown in text.
const longest = 160

// short writes a value in one line, cut where it is long.
func short(v any) string {
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

// hidden stands for a value that is a credential.
const hidden = "***"

// secretName is in the names of variables whose values are credentials, whatever they look like. Short words count where they are one of
// their own: DB_PASS and basicAuth, but not bypass and author.
var secretName = regexp.MustCompile(`(?i:passw|passphrase|token|secret|credential|authorization|(?:api|access|private)[_-]?key|` +
	`(?:^|[^a-z])(?:pass|pwd|auth)(?:[^a-z]|$))|[a-z0-9](?:Pass|Pwd|Auth)(?:[^a-z]|$)`)

// lastApplied is the annotation in which kubectl apply keeps the whole object, with the values of all its variables.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// secretNames are fields that name Secrets and files, and are none themselves.
var secretNames = []string{"secretName", "secretNamespace", "secretFile"}

// isSecret reports whether a text below a key is a credential by the name of the key.
func isSecret(key string) bool {
	return key == lastApplied || secretName.MatchString(key) && !slices.Contains(secretNames, key)
}

// shown returns a change without credentials: what a webhook puts into a pod is in no repository, and more people may read
// a report than the cluster.
func (c change) shown() change {
	for i, s := range c.path {
		if s.key == "env" && i+2 < len(c.path) && c.path[i+2].key == "value" && secretName.MatchString(c.path[i+1].key) {
			c.want, c.found = masked(c.want), masked(c.found)
			return c
		}
	}
	last := c.path[len(c.path)-1]
	hide := func(v any) any {
		if _, ok := v.(string); ok && !last.element && isSecret(last.key) {
			return masked(v)
		}
		return withoutCredentials(v)
	}
	c.want, c.found = hide(c.want), hide(c.found)
	return c
}

// masked hides a value, but not that there is none.
func masked(v any) any {
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
				out[key] = masked(value)
				continue
			}
			out[key] = withoutCredentials(value)
		}
		if name, ok := v["name"].(string); ok && secretName.MatchString(name) {
			if _, ok := v["value"].(string); ok {
				out["value"] = masked(v["value"])
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
				out[i] = argument(before, word)
			}
			before = word
		}
		return out
	}
	return v
}

// An option or a variable with its value, in a text that may be a command of a shell: after an = sign, or in the next word.
var (
	assigned = regexp.MustCompile(`([\w.-]+)=("[^"]*"|'[^']*'|\S+)`)
	followed = regexp.MustCompile(`(--?[A-Za-z][\w.-]*)\s+("[^"]*"|'[^']*'|[^\s"'-]\S*)`)
	option   = regexp.MustCompile(`^--?[A-Za-z][\w.-]*$`)
)

// argument hides in an argument of a command what is a credential by the name of its option, which may be the argument before.
func argument(before, word string) string {
	if option.MatchString(before) && isSecret(before) && word != "" && !strings.HasPrefix(word, "--") {
		return hidden
	}
	if name, value, ok := strings.Cut(word, "="); ok && value != "" && isSecret(name) && !strings.ContainsAny(name, " \t\n") {
		return name + "=" + hidden // with all words that follow
	}
	for _, form := range []*regexp.Regexp{assigned, followed} {
		word = form.ReplaceAllStringFunc(word, func(found string) string {
			parts := form.FindStringSubmatch(found)
			if !isSecret(parts[1]) {
				return found
			}
			return strings.TrimSuffix(found, parts[2]) + hidden
		})
	}
	return word
}
