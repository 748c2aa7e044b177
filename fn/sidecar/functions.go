// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"text/template"
	"time"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/quantity"
	"github.com/prerig/prerig/fn/sidecar/opentelemetry"
)

// templateFunctions are what templates can call: sprig's without those that read anything but the input, and a few of
// our own.
func templateFunctions() template.FuncMap {
	return gotemplate.Functions(template.FuncMap{
		"toYaml": toYAML, "fromYaml": fromYAML, "required": requireValue, "seconds": durationSeconds,
		"include":      unboundInclude,
		"milliseconds": durationMilliseconds, "wholeQuantity": wholeQuantity, "fnv32a": fnv32aHex,
		"openTelemetryCollector": opentelemetry.ReadCollector, "openTelemetryInstrument": opentelemetry.Instrument,
	})
}

// toYAML writes a value as YAML without a line break at its end, so that it can be indented.
func toYAML(v any) string { return strings.TrimSuffix(string(manifest.Marshal(v)), "\n") }

// fromYAML reads YAML or JSON.
func fromYAML(text string) (any, error) { return manifest.Decode([]byte(text)) }

// requireValue returns the value, and fails with the message where it is empty.
func requireValue(message string, v any) (any, error) {
	if v == nil || v == "" {
		return nil, errors.New(message)
	}
	return v, nil
}

// durationSeconds returns a duration such as 1m30s in whole seconds, rounded up.
func durationSeconds(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s is not a duration", foreign.Quote(text))
	}
	return int64(math.Ceil(d.Seconds())), nil
}

// durationMilliseconds returns a duration such as 1.5s in whole milliseconds, rounded down.
func durationMilliseconds(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s is not a duration", foreign.Quote(text))
	}
	return d.Milliseconds(), nil
}

// wholeQuantity returns a quantity such as 1500m as a whole number, rounded up.
func wholeQuantity(text string) (int64, error) {
	q, err := quantity.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("%s is not a quantity", foreign.Quote(text))
	}
	return q.Value(), nil
}

// fnv32aHex returns the FNV-1a hash of a text in hexadecimal digits, which controllers use to shorten names. It is not
// a security measure.
func fnv32aHex(text string) string {
	hash := fnv.New32a()
	hash.Write([]byte(text))
	return fmt.Sprintf("%x", hash.Sum32())
}

// unboundInclude is a placeholder for include, which is bound to the templates of each rendering.
func unboundInclude(string, any) (string, error) { return "", nil }
