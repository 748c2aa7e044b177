// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"math"
	"strconv"
	"strings"
)

// words are the unquoted scalars that are not strings, as sigs.k8s.io/yaml (go.yaml.in/yaml/v2, resolve.go) reads them.
var words = map[string]any{
	"": nil, "~": nil, "null": nil, "Null": nil, "NULL": nil,
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"true": true, "True": true, "TRUE": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
	"false": false, "False": false, "FALSE": false,
	".nan": math.NaN(), ".NaN": math.NaN(), ".NAN": math.NaN(),
	".inf": math.Inf(1), ".Inf": math.Inf(1), ".INF": math.Inf(1),
	"+.inf": math.Inf(1), "+.Inf": math.Inf(1), "+.INF": math.Inf(1),
	"-.inf": math.Inf(-1), "-.Inf": math.Inf(-1), "-.INF": math.Inf(-1),
}

// longestWord is the length of the longest of them.
const longestWord = 5

// resolveScalar returns the value of an unquoted scalar: nil, bool, int64, uint64 (only above the range of int64), float64 or
// string.
func resolveScalar(s string) any {
	if v, ok := resolveNonString(s); ok {
		return v
	}
	return s
}

// resolveNonString is resolveScalar for what is no string; ok is false for what is one. It makes no value of the many scalars
// that only have to be known for strings.
func resolveNonString(s string) (v any, ok bool) {
	if s == "" {
		return nil, true
	}
	c := s[0]
	switch {
	case c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.':
		if len(s) == 1 && c >= '0' && c <= '9' {
			return int64(c - '0'), true
		}
	case strings.IndexByte("yYnNtTfFoO~", c) >= 0 && len(s) <= 5:
		v, ok := words[s]
		return v, ok
	default:
		return nil, false
	}
	if !looksNumeric(s) {
		return nil, false
	}
	if v, ok := words[s]; ok {
		return v, true
	}
	return parseNumber(s)
}

// looksNumeric reports whether s has only characters that numbers have.
func looksNumeric(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || strings.IndexByte("xXoO_+-.iInN", c) >= 0) {
			return false
		}
	}
	return true
}

// parseNumber reads a number; ok is false for what is none.
func parseNumber(s string) (v any, ok bool) {
	if s[0] == '.' {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f, true
		}
		return nil, false
	}
	plain := s
	if strings.IndexByte(s, '_') >= 0 {
		plain = strings.ReplaceAll(s, "_", "")
	}
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return i, true
	}
	if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return u, true
	}
	if floatText(plain) {
		if f, err := strconv.ParseFloat(plain, 64); err == nil {
			return f, true
		}
	}
	if strings.HasPrefix(plain, "-0b") { // 0b is taken by ParseInt, this form too but for a sign after the prefix
		if i, err := strconv.ParseInt("-"+plain[3:], 2, 64); err == nil {
			return i, true
		}
	}
	if strings.HasPrefix(plain, "0b") {
		if i, err := strconv.ParseInt(plain[2:], 2, 64); err == nil {
			return i, true
		}
	}
	return nil, false
}

// floatText reports whether s is digits with an optional sign, point and exponent.
func floatText(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	whole := countDigits(s)
	s = s[whole:]
	if s != "" && s[0] == '.' {
		frac := countDigits(s[1:])
		if whole == 0 && frac == 0 {
			return false
		}
		s = s[1+frac:]
	} else if whole == 0 {
		return false
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return s != "" && countDigits(s) == len(s)
}

func countDigits(s string) int {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// jsonNumber returns a number as it is after the round trip through JSON that every Kubernetes client makes: whole
// numbers become int64 if they fit. ok is false for infinities and NaN, which JSON does not have.
func jsonNumber(f float64) (v any, ok bool) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, false
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e21 {
		if i, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
			return i, true
		}
	}
	return f, true
}

// keyText returns the text of a mapping key; keys that are not strings are turned into strings. ok is false for null.
func keyText(n *yamlNode) (string, bool) {
	if n.style != plainStyle || n.tag == "!!str" {
		return n.val, true
	}
	v, ok := resolveNonString(n.val)
	if !ok {
		return n.val, true
	}
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		switch s := strconv.FormatFloat(v, 'g', -1, 32); s {
		case "+Inf":
			return ".inf", true
		case "-Inf":
			return "-.inf", true
		case "NaN":
			return ".nan", true
		default:
			return s, true
		}
	}
	return "", false
}
