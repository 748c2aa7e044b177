// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/shape"
)

// allowsShapes reports whether a policy injects each pod by its text and its namespace alone.
func (pl *compiledPolicy) allowsShapes() bool {
	spec := &pl.policy.Spec
	return pl.istio != nil && pl.istio.Detection().Generation == istio.GenerationC && len(pl.sidecars) == 0 && spec.Images == nil && !pl.lints
}

// readsOf are the names under which the analysis of templates knows fields of workloads.
var readsOf = map[shape.Field]string{
	shape.Name: istio.ReadName, shape.Namespace: istio.ReadNamespace, shape.Account: istio.ReadAccount, shape.Container: istio.ReadContainer,
	shape.Checksum: istio.ReadAnnotations, shape.Image: istio.ReadImage, shape.Variable: istio.ReadVariables, shape.Reference: istio.ReadVariables,
	shape.Argument: istio.ReadArguments, shape.Command: istio.ReadCommand, shape.Volume: istio.ReadVolumes, shape.Quantity: istio.ReadResources,
}

// shapeFacts are what the rules of a run are made of.
type shapeFacts struct {
	reads     []*istio.Reads
	words     map[string]bool
	selectors string
	// configured reports whether ProxyConfigs exist, which select by labels and namespaces, and limited whether LimitRanges do.
	configured, limited bool
}

// newFacts reads the facts; nil where a template cannot be read.
func (r *shapeRun) newFacts() *shapeFacts {
	f := &shapeFacts{}
	for _, pl := range r.plans {
		one, err := pl.istio.Reads()
		if err != nil {
			return nil
		}
		f.reads = append(f.reads, one)
	}
	f.words = r.reservedWords()
	f.selectors, f.configured = r.selectors()
	f.limited = len(r.cluster.limits) > 0 || slices.ContainsFunc(r.plans, func(pl *compiledPolicy) bool { return len(pl.limitRanges) > 0 })
	return f
}

// copied reports whether the templates only print something.
func (f *shapeFacts) copied(what string) bool {
	return !slices.ContainsFunc(f.reads, func(one *istio.Reads) bool { return !one.Copied(what) })
}

// newRules returns what may be a slot under the policies of the run, for one goroutine.
func (r *shapeRun) newRules() *shape.Rules {
	f := r.facts()
	if f == nil {
		return &shape.Rules{Free: func(shape.Field) bool { return false }}
	}
	labels := map[string]bool{}
	return &shape.Rules{
		Free: func(field shape.Field) bool {
			what, ok := readsOf[field]
			return (!ok || f.copied(what)) && !(field == shape.Quantity && f.limited)
		},
		FreeLabel: func(key string) bool {
			free, known := labels[key]
			if !known {
				free = !f.configured && !isOurs(strings.TrimPrefix(key, recommendedLabels)) && !strings.Contains(f.selectors, key) && f.copied(istio.ReadLabel+key)
				if len(labels) < maxSeen {
					labels[strings.Clone(key)] = free
				}
			}
			return free
		},
		Reserved: func(name string) bool {
			return f.words[name] || isOurs(name) || slices.ContainsFunc(f.reads, func(one *istio.Reads) bool { return one.Compares(name) })
		},
		KnownNamespace: func(name string) bool {
			return f.configured || len(r.cluster.namespaces[name])+len(r.cluster.limits[name]) > 0 || r.isListed(name)
		},
	}
}

// isListed reports whether a policy lists a namespace.
func (r *shapeRun) isListed(name string) bool {
	return slices.ContainsFunc(r.plans, func(pl *compiledPolicy) bool {
		_, listed := pl.listedNamespace(name)
		return listed || len(pl.limitRanges[name]) > 0
	})
}

// recommendedLabels begin the labels that Kubernetes recommends for applications.
const recommendedLabels = "app.kubernetes.io/"

// isOurs reports whether a name or key is one that the injection may know.
func isOurs(name string) bool {
	for _, part := range []string{"istio", "kube", "openshift", "prerig"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// selectors returns all selectors of pods as text. configured reports whether ProxyConfigs exist, which select by labels and namespaces.
func (r *shapeRun) selectors() (text string, configured bool) {
	var all []any
	for _, pl := range r.plans {
		c := pl.istio.Config()
		all = append(all, c.NeverInjectSelector, c.AlwaysInjectSelector, pl.policy.Spec.Istio.Webhooks)
		configured = configured || len(pl.proxyConfigs(r.cluster)) > 0
	}
	for _, c := range r.cluster.webhooks {
		hooks, _ := c["webhooks"].([]any)
		for _, hook := range hooks {
			fields, _ := hook.(map[string]any) // beside them, a configuration has labels of its own, and those of certificates
			all = append(all, fields["objectSelector"], fields["namespaceSelector"], fields["matchConditions"])
		}
	}
	out, err := json.Marshal(all)
	return string(out), configured || err != nil
}

// reservedWords returns the words of all that configures the injection: a template, a selector or a setting may be about one.
func (r *shapeRun) reservedWords() map[string]bool {
	if known := r.table.words.Load(); known != nil {
		return *known
	}
	words := map[string]bool{}
	for word := range strings.FieldsSeq(engineWords) {
		words[word] = true
	}
	for _, pl := range r.plans {
		c := pl.istio.Config()
		for _, t := range c.Templates {
			addWords(words, t)
		}
		for _, v := range []any{c.Policy, c.DefaultTemplates, c.Aliases, c.InjectedAnnotations, pl.istio.Values(), pl.policy, r.cluster.webhooks} {
			if text, err := json.Marshal(v); err == nil {
				addWords(words, string(text))
			}
		}
		addWords(words, pl.istio.MeshText())
	}
	r.table.words.Store(&words)
	return words
}

// addWords adds the words of a text that could be names.
func addWords(words map[string]bool, text string) {
	inWord := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
	}
	for i := 0; i < len(text); i++ {
		start := i
		for i < len(text) && inWord(text[i]) {
			i++
		}
		if word := strings.Trim(text[start:i], "-_."); word != "" && !words[word] {
			words[strings.Clone(word)] = true
			for part := range strings.SplitSeq(word, ".") {
				words[strings.Clone(part)] = true
			}
		}
	}
}

// engineWords are the words that the injection itself compares names with. TestWordsOfTheInjectionAreReserved finds those that are missing.
const engineWords = `default local-path-storage auto`
