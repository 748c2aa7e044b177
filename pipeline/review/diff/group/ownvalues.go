// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package group

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ownValue is a value that is an object's own, and what it is.
type ownValue struct{ param, value string }

// meshProxy is not a container of the user, so that its name is the same for all.
const meshProxy = "istio-proxy"

// ownValues returns the values of an object that lines elsewhere in it may be derived from: only those that the
// change does not touch, as otherwise they are the change. For a new object these are only its name and namespace:
// the rest of it is the change.
func (u *Unit) ownValues(old, now locatedManifest) []ownValue {
	var out []ownValue
	add := func(param, value string) {
		if len(value) > 1 {
			out = append(out, ownValue{param, value})
		}
	}
	add("name", u.object.Name)
	add("namespace", u.object.Namespace)
	before, after := podValues(old.root, u.object.Kind), podValues(now.root, u.object.Kind)
	for _, v := range before {
		if slices.Contains(after, v) {
			add(v.param, v.value)
		}
	}
	return out
}

// podValues are those of the pod.
func podValues(root *yaml.Node, kind string) (out []ownValue) {
	pod, _ := podRoot(root, kind)
	if pod == nil {
		return nil
	}
	add := func(param string, n *yaml.Node) {
		if n != nil && n.Kind == yaml.ScalarNode && n.Value != "" {
			out = append(out, ownValue{param, n.Value})
		}
	}
	labels := childNode(pod, "metadata", "labels")
	add("app", childNode(labels, "app"))
	add("app name", childNode(labels, "app.kubernetes.io/name"))
	add("canonical name", childNode(labels, "service.istio.io/canonical-name"))
	add("service account", childNode(pod, "spec", "serviceAccountName"))
	var names []string
	ports := 0
	containers := childNode(pod, "spec", "containers")
	if containers == nil { // a Pod that no server would take
		return out
	}
	for _, c := range containers.Content {
		name := childNode(c, "name")
		if name == nil || name.Value == meshProxy {
			continue
		}
		names = append(names, name.Value)
		add(placeholderName("container", len(names)), name)
		if list := childNode(c, "ports"); list != nil {
			for _, port := range list.Content {
				ports++
				add(placeholderName("port", ports), childNode(port, "containerPort"))
			}
		}
	}
	if len(names) > 1 {
		out = append(out, ownValue{"containers", strings.Join(names, ",")})
	}
	return out
}

func placeholderName(what string, n int) string {
	if n == 1 {
		return what
	}
	return what + " " + strconv.Itoa(n)
}

// ReplaceName replaces a name with <name> where it occurs in a text as a word.
func ReplaceName(text, name string) string { return substitution{{"name", name}}.replaceValues(text) }

// substitution lists placeholders and their values, the longest value first.
type substitution []ownValue

// replaceValues replaces values that occur as words with placeholders.
func (s substitution) replaceValues(text string) string {
	if len(s) == 0 {
		return text
	}
	var out strings.Builder
	visitPieces(text, s.findMatches(text), func(plain string, own *ownValue) {
		out.WriteString(plain)
		if own != nil {
			out.WriteString("<" + own.param + ">")
		}
	})
	return out.String()
}

// valueMatch is a value in a text.
type valueMatch struct {
	at  int
	own *ownValue
}

// findMatches finds where values occur as words, by position; of several at one position, the one of the first
// value comes first.
func (s substitution) findMatches(text string) (out []valueMatch) {
	var first [256]bool
	for _, v := range s {
		first[v.value[0]] = true
	}
	for at := 0; at < len(text); at++ {
		if !first[text[at]] || at > 0 && wordByte(text[at-1]) {
			continue
		}
		for i := range s {
			end := at + len(s[i].value)
			if strings.HasPrefix(text[at:], s[i].value) && (end == len(text) || !wordByte(text[end])) {
				out = append(out, valueMatch{at, &s[i]})
			}
		}
	}
	return out
}

// visitPieces splits the text into pieces: the plain text, and the value that follows it. A match within another is
// ignored.
func visitPieces(text string, found []valueMatch, visit func(plain string, own *ownValue)) {
	from := 0
	for _, m := range found {
		if m.at >= from {
			visit(text[from:m.at], m.own)
			from = m.at + len(m.own.value)
		}
	}
	visit(text[from:], nil)
}

// digestText is that of the text with placeholders, of which all are the matches of a larger substitution.
func (s substitution) digestText(text string, all []valueMatch, more ...string) changeDigest {
	var chosen []valueMatch
	for _, m := range all {
		for i := range s {
			if s[i].value == m.own.value {
				chosen = append(chosen, valueMatch{m.at, &s[i]})
			}
		}
	}
	parts := more
	visitPieces(text, chosen, func(plain string, own *ownValue) {
		parts = append(parts, plain)
		if own != nil {
			parts = append(parts, own.param)
		}
	})
	return digestOf(parts...)
}

func wordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

// maxWays bounds how many substitutions are tried for one run.
const maxWays = 48

// allSubstitutions returns the substitutions that make a difference to a text: none, and each combination of what a
// value can be taken for, with fewer values first; and the places of all of the values.
func allSubstitutions(text string, own []ownValue) ([]substitution, []valueMatch) {
	byValue := map[string][]ownValue{}
	var all substitution
	for _, v := range own {
		if len(byValue[v.value]) == 0 {
			all = append(all, v)
		}
		byValue[v.value] = append(byValue[v.value], v)
	}
	sortLongest(all)
	var present []string
	found := all.findMatches(text)
	for _, m := range found {
		if !slices.Contains(present, m.own.value) {
			present = append(present, m.own.value)
		}
	}
	sort.Strings(present)
	out := []substitution{nil}
	for _, value := range present {
		n := len(out)
		for _, v := range byValue[value] {
			for _, s := range out[:n] {
				if len(out) < maxWays {
					out = append(out, append(s[:len(s):len(s)], v))
				}
			}
		}
	}
	if len(present) > 5 { // too many combinations: all at once is what a new injection needs
		var every substitution
		for _, value := range present {
			every = append(every, byValue[value][0])
		}
		out = append(out, every)
	}
	for _, s := range out {
		sortLongest(s)
	}
	sort.SliceStable(out, func(i, j int) bool { return len(out[i]) < len(out[j]) })
	return out, found
}

func sortLongest(s substitution) {
	sort.SliceStable(s, func(i, j int) bool {
		if len(s[i].value) != len(s[j].value) {
			return len(s[i].value) > len(s[j].value)
		}
		return s[i].value < s[j].value
	})
}
