// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/quantity"
	"github.com/prerig/prerig/fn/strict"
)

// Schema is a schema of the API server, reduced to what constrains values.
type Schema struct {
	Ref        string             `json:"$,omitempty"`
	Type       string             `json:"t,omitempty"`
	Format     string             `json:"f,omitempty"`
	Items      *Schema            `json:"i,omitempty"`
	Values     *Schema            `json:"v,omitempty"`
	Properties map[string]*Schema `json:"p,omitempty"`
	Required   []string           `json:"r,omitempty"`
	Enum       []string           `json:"e,omitempty"`
}

// Formats of types that decode themselves, beside those of OpenAPI.
const (
	FormatQuantity    = "quantity"
	FormatDuration    = "duration"
	formatIntOrString = "int-or-string"
)

// Fault describes what is wrong with a value.
type Fault string

// The faults.
const (
	// UnknownField is a field that the version does not have.
	UnknownField Fault = "unknown field"
	// WrongType is a value that the API server cannot decode.
	WrongType Fault = "wrong type"
	// Missing is the absence of a required field.
	Missing Fault = "missing"
	// WrongValue is a value of the right type that is not allowed.
	WrongValue Fault = "wrong value"
)

// Problem is one thing that is wrong with an object.
type Problem struct {
	Fault Fault
	// Path leads to the field: names as strings and indexes as ints.
	Path []any
	// Message describes what is wrong and what would be right.
	Message string
}

// Check returns what the API server would reject in an object of the kind when it decodes it strictly and checks
// required fields and enumerations. Values have the types of decoded JSON; a null counts as a missing field, as it
// does for the API server.
func (s *Server) Check(k Kind, object map[string]any) []Problem {
	c := &checker{server: s, hide: k.APIVersion == "v1" && k.Kind == "Secret"}
	c.check(&Schema{Ref: k.Definition}, object, nil)
	return c.problems
}

// checker walks one object.
type checker struct {
	server   *Server
	problems []Problem
	// hide keeps values out of messages.
	hide bool
}

func (c *checker) add(fault Fault, path []any, format string, args ...any) {
	c.problems = append(c.problems, Problem{Fault: fault, Path: slices.Clone(path), Message: fmt.Sprintf(format, args...)})
}

func (c *checker) check(s *Schema, value any, path []any) {
	enum := s.Enum
	name := s.Ref
	for s.Ref != "" {
		name = s.Ref
		s = c.server.decodeDefinition(s.Ref)
	}
	if value == nil {
		return
	}
	switch s.Type {
	case "object":
		c.checkObject(s, name, value, path)
	case "array":
		list, ok := value.([]any)
		if !ok {
			c.addType(path, value, "a list")
			return
		}
		for i, item := range list {
			c.check(s.Items, item, append(path, i))
		}
	case "string":
		c.checkString(s, enum, value, path)
	case "boolean":
		if _, ok := value.(bool); !ok {
			c.addType(path, value, "true or false")
		}
	case "integer":
		c.checkInteger(s, value, path)
	case "number":
		if !isNumber(value) {
			c.addType(path, value, "a number")
		}
	}
	// Without a type any value is allowed.
}

func (c *checker) addType(path []any, value any, want string) {
	found := describeValueType(value)
	if c.hide {
		found = "of another type"
	}
	c.add(WrongType, path, "it is %s; it must be %s", found, want)
}

func (c *checker) checkObject(s *Schema, name string, value any, path []any) {
	object, ok := value.(map[string]any)
	if !ok {
		c.addType(path, value, "a mapping")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		at := append(path, key)
		property := s.Properties[key]
		switch {
		case property != nil:
			c.check(property, object[key], at)
		case s.Values != nil:
			c.check(s.Values, object[key], at)
		case len(s.Properties) > 0:
			c.add(UnknownField, at, "Kubernetes %s does not have the field%s", c.server.Minor, strict.DidYouMean(key, slices.Sorted(maps.Keys(s.Properties))))
		}
	}
	if len(path) > 0 && path[0] == "status" {
		return // the API server drops it, or fills it in
	}
	for _, key := range s.Required {
		if object[key] == nil && !slices.Contains(optional[name], key) {
			c.add(Missing, append(path, key), "the field is required")
		}
	}
}

// optional lists the fields that the schemas call required although the API server accepts an object without them:
// they are not pointers in its Go types, and their zero value is allowed or defaulted. For some, this holds only in
// the schemas of older versions.
var optional = map[string][]string{
	"io.k8s.api.networking.v1.NetworkPolicySpec":                                               {"podSelector"},
	"io.k8s.api.apps.v1.StatefulSetSpec":                                                       {"serviceName"},
	"io.k8s.api.core.v1.HTTPHeader":                                                            {"value"},
	"io.k8s.api.core.v1.ISCSIPersistentVolumeSource":                                           {"lun"},
	"io.k8s.api.core.v1.ISCSIVolumeSource":                                                     {"lun"},
	"io.k8s.api.core.v1.LimitRangeSpec":                                                        {"limits"},
	"io.k8s.api.core.v1.PreferredSchedulingTerm":                                               {"preference"},
	"io.k8s.api.core.v1.Sysctl":                                                                {"value"},
	"io.k8s.api.rbac.v1.RoleRef":                                                               {"apiGroup"},
	"io.k8s.api.scheduling.v1.PriorityClass":                                                   {"value"},
	"io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern":                               {"status"},
	"io.k8s.api.discovery.v1.EndpointSlice":                                                    {"endpoints"},
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion": {"served", "storage"},
}

func (c *checker) checkString(s *Schema, enum []string, value any, path []any) {
	text, isText := value.(string)
	switch s.Format {
	case formatIntOrString:
		if !isText && !isInteger(value, math.MinInt32, math.MaxInt32) {
			c.addType(path, value, "an integer or a string")
		}
		return
	case FormatQuantity:
		c.checkQuantity(value, path)
		return
	}
	if !isText {
		c.addType(path, value, "a string"+quoteHint(value))
		return
	}
	switch s.Format {
	case "byte":
		if _, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(text)); err != nil {
			c.add(WrongType, path, "it is not base64: %v", err)
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339Nano, text); err != nil {
			c.add(WrongType, path, "it is %q; it must be a time such as 2026-01-31T12:00:00Z", text)
		}
	case FormatDuration:
		if _, err := time.ParseDuration(text); err != nil {
			c.add(WrongType, path, "it is %q; it must be a duration such as 1h30m", text)
		}
	}
	if len(s.Enum) > 0 {
		enum = s.Enum
	}
	// An empty value counts as unset: it is defaulted, or it is required.
	if len(enum) > 0 && text != "" && !slices.Contains(enum, text) {
		c.add(WrongValue, path, "%q is not allowed; it can be %s", text, joinWithOr(enum))
	}
}

// checkQuantity reads a quantity as the API server does: a string or a number.
func (c *checker) checkQuantity(value any, path []any) {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case map[string]any, []any, bool:
		c.addType(path, value, "a quantity such as 500m or 1Gi")
		return
	default:
		text = describeValueType(v)
		if b, err := json.Marshal(v); err == nil {
			text = string(b)
		}
	}
	if _, err := quantity.Parse(strings.TrimSpace(text)); err != nil {
		c.add(WrongType, path, "%q is no quantity such as 500m or 1Gi", text)
	}
}

func (c *checker) checkInteger(s *Schema, value any, path []any) {
	lowest, highest := int64(math.MinInt64), int64(math.MaxInt64)
	if s.Format == "int32" {
		lowest, highest = math.MinInt32, math.MaxInt32
	}
	switch {
	case isInteger(value, lowest, highest):
	case isNumber(value):
		c.add(WrongType, path, "%v is not an integer of the type %s", value, s.Format)
	default:
		c.addType(path, value, "an integer")
	}
}

func isNumber(value any) bool {
	switch value.(type) {
	case int, int64, uint64, float64, json.Number:
		return true
	}
	return false
}

func isInteger(value any, lowest, highest int64) bool {
	switch v := value.(type) {
	case int:
		return int64(v) >= lowest && int64(v) <= highest
	case int64:
		return v >= lowest && v <= highest
	case float64:
		return v == math.Trunc(v) && v >= float64(lowest) && v <= float64(highest)
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		return err == nil && n >= lowest && n <= highest
	}
	return false
}

// describeValueType names a value with its type.
func describeValueType(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "the string " + strconv.Quote(v)
	case bool:
		return fmt.Sprintf("the boolean %v", v)
	}
	return fmt.Sprintf("the number %v", value)
}

// quoteHint returns advice for a value that YAML does not read as a string.
func quoteHint(value any) string {
	switch value.(type) {
	case map[string]any, []any:
		return ""
	}
	return "; put it in quotes"
}

func joinWithOr(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}
