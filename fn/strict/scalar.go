// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// What a scalar must be.
const (
	wantText   = "a string"
	wantBool   = "true or false"
	wantInt    = "a whole number"
	wantNumber = "a number"
	wantTime   = "a time with its unit, such as 5m"
)

func (r *valueReader) decodeScalar(at []any, v any, target reflect.Value) {
	if r.Loose {
		v = looseScalar(v, target.Type())
	}
	switch target.Kind() {
	case reflect.String:
		if s, ok := v.(string); ok {
			target.SetString(s)
			return
		}
		r.problems.WrongType(at, v, wantText)
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			target.SetBool(b)
			return
		}
		r.problems.WrongType(at, v, wantBool)
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, ok := v.(int64)
		if f, isFloat := v.(float64); isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			i, ok = int64(f), true
		}
		switch {
		case ok && !target.OverflowInt(i):
			target.SetInt(i)
		case target.Type() == reflect.TypeFor[time.Duration]():
			r.problems.WrongType(at, v, wantTime)
		default:
			r.problems.WrongType(at, v, wantInt)
		}
	case reflect.Float64:
		switch v := v.(type) {
		case float64:
			target.SetFloat(v)
		case int64:
			target.SetFloat(float64(v))
		default:
			r.problems.WrongType(at, v, wantNumber)
		}
	default:
		r.addProblem(at, "cannot be read: the type %s is not supported", target.Type())
	}
}

// looseScalar converts a text to the type, or a number or bool to its text, if the type requires that; otherwise it
// returns v.
func looseScalar(v any, t reflect.Type) any {
	text, isText := v.(string)
	switch {
	case t.Kind() == reflect.String:
		switch v.(type) {
		case int64, float64, bool:
			return fmt.Sprint(v)
		}
		return v
	case !isText:
		return v
	case t == reflect.TypeFor[time.Duration]():
		if d, err := time.ParseDuration(text); err == nil {
			return int64(d)
		}
	}
	switch t.Kind() {
	case reflect.Bool:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if i, err := strconv.ParseInt(text, 0, 64); err == nil {
			return i
		}
	case reflect.Float64:
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	}
	return v
}
