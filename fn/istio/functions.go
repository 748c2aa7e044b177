// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// functionRow says which minors have one of Istio's own template functions. Where the behaviour changed there is one row
// per behaviour.
type functionRow struct {
	Name string
	Span
	fn any
}

// functionTable lists Istio's own functions (source: the function map in inject.go up to 1.10, in template.go since). They
// stand over sprig's of the same name.
var functionTable = []functionRow{
	{"formatDuration", Span{0, newest}, formatDuration},
	{"isset", Span{0, newest}, isSet},
	{"excludeInboundPort", Span{0, newest}, excludeInboundPort},
	{"includeInboundPorts", Span{0, 2}, everyInboundPort},
	{"includeInboundPorts", Span{3, newest}, includeInboundPorts},
	{"applicationPorts", Span{0, 2}, everyApplicationPort},
	{"applicationPorts", Span{3, newest}, applicationPorts},
	{"annotation", Span{0, newest}, annotation},
	{"toJson", Span{0, 18}, toJSON},
	{"kubevirtInterfaces", Span{1, newest}, identity},
	{"valueOrDefault", Span{1, 1}, stringOrDefault},
	{"valueOrDefault", Span{2, newest}, valueOrDefault},
	{"toJSON", Span{1, newest}, toJSON},
	{"fromJSON", Span{1, newest}, fromJSON},
	{"toYaml", Span{1, newest}, toYAML},
	{"indent", Span{1, newest}, indent},
	{"directory", Span{1, newest}, directory},
	{"contains", Span{2, newest}, containsNeedle},
	{"render", Span{2, 13}, unbound},
	{"structToJSON", Span{3, newest}, structToJSON},
	{"toLower", Span{3, newest}, strings.ToLower},
	{"protoToJSON", Span{4, newest}, unbound},
	{"env", Span{5, newest}, unbound},
	{"appendMultusNetwork", Span{8, newest}, appendMultusNetwork},
	{"excludeInterfaces", Span{15, newest}, identity},
	{"omit", Span{18, newest}, omitKeys},
	{"strdict", Span{18, newest}, stringDict},
	{"toJsonMap", Span{18, newest}, toJSONMaps},
	{"mergeMaps", Span{21, newest}, mergeMaps},
	{"omitNil", Span{28, newest}, omitNil},
	{"otelResourceAttributes", Span{30, newest}, otelResourceAttributes},
}

// sprigSpan is the versions that have sprig's functions (source: sprig.TxtFuncMap in inject.go of 1.8 and later).
var sprigSpan = Span{8, newest}

// refusedFunctions are sprig's functions whose result depends on something other than the input, with what that is. A
// template that calls one fails.
var refusedFunctions = map[string]string{
	"expandenv": "the environment",

	"now": "the clock", "ago": "the clock", "durationRound": "the clock",
	"date": "the clock or the time zone", "date_in_zone": "the time zone data of the machine",
	"date_modify": "the clock", "dateInZone": "the time zone data of the machine", "dateModify": "the clock",
	"htmlDate": "the clock or the time zone", "htmlDateInZone": "the time zone data of the machine",
	"must_date_modify": "the clock", "mustDateModify": "the clock",
	"toDate": "the time zone", "mustToDate": "the time zone", "unixEpoch": "the clock",

	"randAlphaNum": "randomness", "randAlpha": "randomness", "randAscii": "randomness", "randNumeric": "randomness",
	"randBytes": "randomness", "randInt": "randomness", "shuffle": "randomness", "uuidv4": "randomness",
	"bcrypt": "randomness", "htpasswd": "randomness", "encryptAES": "randomness",
	"genPrivateKey": "randomness", "genCA": "randomness and the clock", "genCAWithKey": "randomness and the clock",
	"genSelfSignedCert": "randomness and the clock", "genSelfSignedCertWithKey": "randomness and the clock",
	"genSignedCert": "randomness and the clock", "genSignedCertWithKey": "randomness and the clock",

	"getHostByName": "the network",
}

// orderedFunctions stand for sprig's functions that return things in the random order of a map.
var orderedFunctions = map[string]any{
	"keys":   orderedKeys,
	"values": orderedValues,
}

// mutatingFunctions change a map that they are given, which may be the injector's values. Templates that call one get a
// copy of the values.
var mutatingFunctions = map[string]bool{
	"set": true, "unset": true, "merge": true, "mergeOverwrite": true, "mustMerge": true, "mustMergeOverwrite": true,
}

// refusal is what a refused function does when a template calls it.
func refusal(name, dependsOn string) func(...any) (string, error) {
	return func(...any) (string, error) {
		return "", fmt.Errorf("function %q is refused: its result depends on %s, so the same input would not give the same output",
			name, dependsOn)
	}
}

// functionsOf returns the functions of a version. env, protoToJSON, toYaml and render are bound to an injector later.
func functionsOf(p *Profile) template.FuncMap {
	m := template.FuncMap{}
	if sprigSpan.Contains(p.minor) {
		for name, fn := range sprig.TxtFuncMap() {
			m[name] = fn
		}
		for name, fn := range orderedFunctions {
			m[name] = fn
		}
		for name, why := range refusedFunctions {
			m[name] = refusal(name, why)
		}
	}
	for _, row := range functionTable {
		if row.Contains(p.minor) {
			m[row.Name] = row.fn
		}
	}
	boundFunctions(m)
	return m
}

// unbound stands for functions that need an injector, which binds them.
func unbound(...any) string { return "" }

// textTemplateFunctions are those of text/template itself.
var textTemplateFunctions = map[string]bool{
	"and": true, "or": true, "not": true, "call": true, "html": true, "index": true, "slice": true, "js": true, "len": true,
	"print": true, "printf": true, "println": true, "urlquery": true,
	"eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true, "break": true, "continue": true,
}

// FunctionVersions says in which versions of Istio templates can call a function, as text such as "1.28 and later". It
// returns "" for a function that no version has.
func FunctionVersions(name string) string {
	if textTemplateFunctions[name] {
		return Span{OldestMinor, newest}.String()
	}
	return spansText(functionSpans(name))
}

// functionSpans are the versions that have one of Istio's or sprig's functions.
func functionSpans(name string) []Span {
	var spans []Span
	if _, ok := sprigNames()[name]; ok {
		spans = append(spans, sprigSpan)
	}
	for _, row := range functionTable {
		if row.Name == name {
			spans = append(spans, row.Span)
		}
	}
	return spans
}

// sprigNames returns the names of sprig's functions.
func sprigNames() map[string]any { return sprig.GenericFuncMap() }

// spansText joins spans, merging those that touch.
func spansText(spans []Span) string {
	sort.Slice(spans, func(i, j int) bool { return spans[i].From < spans[j].From })
	var merged []Span
	for _, s := range spans {
		if n := len(merged); n > 0 && s.From <= merged[n-1].To+1 {
			merged[n-1].To = max(merged[n-1].To, s.To)
			continue
		}
		merged = append(merged, s)
	}
	parts := make([]string, len(merged))
	for i, s := range merged {
		parts[i] = s.String()
	}
	return strings.Join(parts, ", ")
}

// HermeticFunctions are sprig's functions for templates that are not Istio's: those whose result depends on something
// other than the input (the clock, randomness, the environment, the network) fail by their name, and those that give
// things in the order of a map give them sorted. The map is the caller's.
func HermeticFunctions() template.FuncMap {
	m := template.FuncMap{}
	maps.Copy(m, sprig.TxtFuncMap())
	maps.Copy(m, orderedFunctions)
	for name, dependsOn := range refusedFunctions {
		m[name] = refusal(name, dependsOn)
	}
	m["env"] = refusal("env", "the environment")
	boundFunctions(m)
	return m
}
