// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package gotemplate makes text/template safe for untrusted templates: they end, they cannot produce huge output,
// and the same input produces the same output. It is independent of Istio.
package gotemplate

import (
	"fmt"
	"maps"
	"slices"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// Functions returns sprig's functions, overridden by own ones of the same names. Those of sprig's functions whose
// result depends on something other than the input (the clock, randomness, the environment, the network) fail by
// their name, and those that return values in the order of a map return them sorted. No function changes a list
// that is passed to it. All are bounded as described for Bound. The caller owns the map.
func Functions(own template.FuncMap) template.FuncMap {
	m := template.FuncMap{}
	maps.Copy(m, sprig.TxtFuncMap())
	maps.Copy(m, orderedFunctions)
	m["sortAlpha"] = sortedCopy(m["sortAlpha"])
	for name, dependsOn := range refusedFunctions {
		m[name] = refusedFunction(name, dependsOn)
	}
	m["env"] = refusedFunction("env", "the environment")
	maps.Copy(m, own)
	Bound(m)
	return m
}

// Refused reports whether a function of sprig's fails by its name, as its result depends on more than the input.
func Refused(name string) bool { return refusedFunctions[name] != "" }

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

// orderedFunctions replace sprig's functions that return values in the random order of a map.
var orderedFunctions = map[string]any{
	"keys":   orderedKeys,
	"values": orderedValues,
}

// refusedFunction is what a refused function does when a template calls it.
func refusedFunction(name, dependsOn string) func(...any) (string, error) {
	return func(...any) (string, error) {
		return "", fmt.Errorf("function %q is refused: its result depends on %s, so the same input would not give the same output",
			name, dependsOn)
	}
}

// orderedKeys are the keys of maps, each map's in order.
func orderedKeys(dicts ...map[string]any) []string {
	var out []string
	for _, d := range dicts {
		out = append(out, slices.Sorted(maps.Keys(d))...)
	}
	return out
}

// orderedValues are the values of a map in the order of its keys.
func orderedValues(dict map[string]any) []any {
	out := make([]any, 0, len(dict))
	for _, k := range slices.Sorted(maps.Keys(dict)) {
		out = append(out, dict[k])
	}
	return out
}

// sortedCopy is sprig's sortAlpha for a list that others may read: sprig sorts a list of texts where it is.
func sortedCopy(sortAlpha any) any {
	sorted, ok := sortAlpha.(func(any) []string)
	if !ok {
		return sortAlpha
	}
	return func(list any) []string {
		if texts, ok := list.([]string); ok {
			list = slices.Clone(texts)
		}
		return sorted(list)
	}
}
