// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/istio/release"
)

// functionRow lists the releases that have one of Istio's own template functions. If the behaviour changed, each
// behaviour has its own row.
type functionRow struct {
	Name string
	release.Spans
	fn any
}

// The forms of a network in Multus' annotation if that is JSON: the whole NAMESPACE/NAME as its name, or separate
// namespace and name.
var (
	namedMultusNetworks = release.Between("1.9", "1.23.5").And(release.Between("1.24.0", "1.24.3")).And(release.Between("1.25.0", "1.25.0"))
	splitMultusNetworks = release.Since("1.23.6", "1.24.4", "1.25.1", "1.26")
)

// functionTable lists Istio's own functions (source: the function map in inject.go up to 1.10, in template.go
// since). They override sprig's functions of the same name.
var functionTable = []functionRow{
	{"formatDuration", release.Between("1.0", "1.13"), durationOrSecond},
	{"formatDuration", release.Since("1.14"), formatDuration},
	{"isset", release.Always(), isSet},
	{"excludeInboundPort", release.Always(), excludeInboundPort},
	{"includeInboundPorts", release.Between("1.0", "1.2"), everyInboundPort},
	{"includeInboundPorts", release.Since("1.3"), includeInboundPorts},
	{"applicationPorts", release.Between("1.0", "1.2"), everyApplicationPort},
	{"applicationPorts", release.Since("1.3"), applicationPorts},
	{"annotation", release.Always(), annotationOr},
	{"toJson", release.Between("1.0", "1.18"), toJSON},
	{"kubevirtInterfaces", release.Since("1.1"), returnUnchanged},
	{"valueOrDefault", release.Between("1.1", "1.1"), stringOrDefault},
	{"valueOrDefault", release.Since("1.2"), valueOrDefault},
	{"toJSON", release.Since("1.1"), toJSON},
	{"fromJSON", release.Since("1.1"), fromJSON},
	{"toYaml", release.Since("1.1"), toYAML},
	{"indent", release.Since("1.1"), indentFollowingLines},
	{"directory", release.Since("1.1"), directoryWithSlash},
	{"contains", release.Since("1.2"), containsNeedle},
	{"render", release.Between("1.2", "1.13"), unboundFunction},
	{"structToJSON", release.Since("1.3"), structToJSON},
	{"toLower", release.Since("1.3"), strings.ToLower},
	{"protoToJSON", release.Since("1.4"), unboundFunction},
	{"env", release.Since("1.5"), unboundFunction},
	{"appendMultusNetwork", release.Between("1.8", "1.8"), appendAnyMultusNetwork},
	{"appendMultusNetwork", namedMultusNetworks, appendNamedMultusNetwork},
	{"appendMultusNetwork", splitMultusNetworks, appendMultusNetwork},
	{"excludeInterfaces", release.Since("1.15"), returnUnchanged},
	{"omit", release.Since("1.18"), omitKeys},
	{"strdict", release.Since("1.18"), stringDict},
	{"toJsonMap", release.Since("1.18"), toJSONMaps},
	{"mergeMaps", release.Since("1.21"), mergeMaps},
	{"omitNil", release.Since("1.28.6", "1.29.1", "1.30"), omitNil},
	{"otelResourceAttributes", release.Since("1.30"), otelResourceAttributes},
}

// sprigSpans are the versions that have sprig's functions (source: sprig.TxtFuncMap in inject.go of 1.8 and later).
var sprigSpans = release.Since("1.8")

// mutatingFunctions modify a map argument, which may be the injector's values. Templates that call one get a copy
// of the values.
var mutatingFunctions = map[string]bool{
	"set": true, "unset": true, "merge": true, "mergeOverwrite": true, "mustMerge": true, "mustMergeOverwrite": true,
}

// functionsOf returns the functions of a version. env, protoToJSON, toYaml and render are bound to an injector later.
func functionsOf(p *Profile) template.FuncMap {
	istios := template.FuncMap{}
	for _, row := range functionTable {
		if row.Contains(p.release) {
			istios[row.Name] = row.fn
		}
	}
	if sprigSpans.Contains(p.release) {
		istios = gotemplate.Functions(istios)
	} else {
		gotemplate.Bound(istios)
	}
	printCheckOf(p).wrapPrintingFunctions(istios)
	return istios
}

// unboundFunction is a placeholder for functions that need an injector, which binds them.
func unboundFunction(...any) string { return "" }

// textTemplateFunctions are those of text/template itself.
var textTemplateFunctions = map[string]bool{
	"and": true, "or": true, "not": true, "call": true, "html": true, "index": true, "slice": true, "js": true, "len": true,
	"print": true, "printf": true, "println": true, "urlquery": true,
	"eq": true, "ne": true, "lt": true, "le": true, "gt": true, "ge": true, "break": true, "continue": true,
}

// FunctionVersions describes the versions of Istio in which templates can call a function, such as "1.28 and
// later". It returns "" for a function that no version has.
func FunctionVersions(name string) string {
	if textTemplateFunctions[name] {
		return release.Always().String()
	}
	return functionSpans(name).String()
}

// functionSpans are the versions that have one of Istio's or sprig's functions.
func functionSpans(name string) release.Spans {
	var spans release.Spans
	if _, ok := sprigNames()[name]; ok {
		spans = append(spans, sprigSpans...)
	}
	for _, row := range functionTable {
		if row.Name == name {
			spans = append(spans, row.Spans...)
		}
	}
	return spans
}

// sprigNames returns the names of sprig's functions.
func sprigNames() map[string]any { return sprig.GenericFuncMap() }
