// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/quantity"
)

// The types of parameters.
const (
	typeString   = "string"
	typeInt      = "int"
	typeNumber   = "number"
	typeBool     = "bool"
	typeDuration = "duration"
	typeQuantity = "quantity"
	typeList     = "list"
	typeJSON     = "json"
)

// zeroValueFor returns what a template reads for a parameter that is not set.
func zeroValueFor(kind string) any {
	switch kind {
	case typeString, typeDuration, typeQuantity:
		return ""
	case typeBool:
		return false
	case typeList:
		return []any{}
	default:
		return nil
	}
}

// policyValue parses a policy's value: a value of the type, or its text.
func (p *compiledParameter) policyValue(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return p.parseText(v)
	case bool:
		if p.spec.Type == typeBool {
			return v, nil
		}
	case int64:
		if slices.Contains([]string{typeInt, typeNumber, typeQuantity}, p.spec.Type) {
			return p.parseText(strconv.FormatInt(v, 10))
		}
	case float64:
		if p.spec.Type == typeNumber || p.spec.Type == typeQuantity {
			return p.parseText(strconv.FormatFloat(v, 'f', -1, 64))
		}
	case []any:
		if p.spec.Type == typeList {
			return v, p.checkElements(v)
		}
	}
	if p.spec.Type == typeJSON {
		return v, nil
	}
	return nil, fmt.Errorf("%v is not a %s", v, p.spec.Type)
}

// parseText reads the text of an annotation. Durations and quantities stay text, as manifests want them.
func (p *compiledParameter) parseText(text string) (any, error) {
	switch p.spec.Type {
	case typeList:
		list := []any{}
		for e := range strings.SplitSeq(text, ",") {
			if e = strings.TrimSpace(e); e != "" {
				list = append(list, e)
			}
		}
		return list, p.checkElements(list)
	case typeJSON:
		v, err := manifest.Decode([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("it is not JSON or YAML: %w", err)
		}
		return v, p.checkText(text)
	case typeString:
		return text, p.checkText(text)
	}
	text = strings.TrimSpace(text)
	if err := p.checkText(text); err != nil {
		return nil, err
	}
	v, err := p.parseScalar(text)
	if err != nil {
		return nil, err
	}
	return v, p.checkBounds(text)
}

// parseScalar reads a text of the types that are not a list, json or string.
func (p *compiledParameter) parseScalar(text string) (any, error) {
	switch p.spec.Type {
	case typeBool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%s is not a bool; write true or false", foreign.Quote(text))
		}
		return v, nil
	case typeDuration, typeQuantity:
		if _, err := p.parseMeasure(text); err != nil {
			return nil, err
		}
		return text, nil
	default:
		return p.parseMeasure(text)
	}
}

// parseMeasure reads a text as something that can be compared: int64, float64, time.Duration or resource.Quantity.
func (p *compiledParameter) parseMeasure(text string) (any, error) {
	switch p.spec.Type {
	case typeInt:
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is not a whole number", foreign.Quote(text))
		}
		return v, nil
	case typeNumber:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%s is not a number", foreign.Quote(text))
		}
		return v, nil
	case typeDuration:
		v, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%s is not a duration such as 30s or 1m30s", foreign.Quote(text))
		}
		return v, nil
	case typeQuantity:
		v, err := quantity.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s is not a quantity such as 100m or 64Mi", foreign.Quote(text))
		}
		return v, nil
	}
	return nil, errors.New("this type has no bounds")
}

// checkText checks enum and pattern.
func (p *compiledParameter) checkText(text string) error {
	if len(p.spec.Enum) > 0 && !slices.Contains(p.spec.Enum, text) {
		return fmt.Errorf("%s is not one of %s", foreign.Quote(text), strings.Join(p.spec.Enum, ", "))
	}
	if p.pattern != nil && !p.pattern.MatchString(text) {
		return fmt.Errorf("%s does not match %s", foreign.Quote(text), p.spec.Pattern)
	}
	return nil
}

// checkElements checks those of a list.
func (p *compiledParameter) checkElements(list []any) error {
	for _, e := range list {
		text, ok := e.(string)
		if !ok {
			return fmt.Errorf("%v in the list is not a string", e)
		}
		if err := p.checkText(text); err != nil {
			return err
		}
	}
	return nil
}

// checkBounds checks minimum and maximum.
func (p *compiledParameter) checkBounds(text string) error {
	if p.low == nil && p.high == nil {
		return nil
	}
	v, err := p.parseMeasure(text)
	if err != nil {
		return err
	}
	if p.low != nil && compareMeasures(v, p.low) < 0 {
		return fmt.Errorf("%s is less than the minimum of %s", text, p.spec.Minimum)
	}
	if p.high != nil && compareMeasures(v, p.high) > 0 {
		return fmt.Errorf("%s is more than the maximum of %s", text, p.spec.Maximum)
	}
	return nil
}

// compareMeasures compares two values that measure gave for one parameter.
func compareMeasures(a, b any) int {
	switch a := a.(type) {
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return cmp.Compare(a, b.(float64))
	case time.Duration:
		return cmp.Compare(a, b.(time.Duration))
	case resource.Quantity:
		return a.Cmp(b.(resource.Quantity))
	}
	return 0
}

// copyOf copies a value of maps, lists and scalars.
func copyOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = copyOf(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = copyOf(e)
		}
		return out
	default:
		return v
	}
}
