// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"
	_ "time/tzdata" // zones of dates, which are in no file that a renderer can read

	"github.com/Masterminds/sprig/v3"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// Helm's templates evaluate all arguments of a function, so that
//
//	password: {{ default (randAlphaNum 10) .Values.password }}
//
// calls randAlphaNum even if a password is set. What matters is whether a call has an effect on the result. Hence
// with impure: Refuse such functions return made-up values, and a render in which any of them was called is
// repeated with different ones: if the result is the same, the calls had no effect. If it differs, the call
// responsible is found by changing the value of one call after another. That call is then made to fail, which names
// its place (see render.go).

// impureCalls are the calls of impure functions in one render, and what they return.
type impureCalls struct {
	mode   v1alpha1.HelmImpure
	lookup v1alpha1.HelmImpure
	// nameField returns the user-facing name of a field of the release.
	nameField func(string) string
	// captured answers lookup, with lookup: Captured.
	captured *capturedObjects
	// variant is the made-up value that calls return, 0 or 1, but that the call numbered other returns the other one.
	variant, other int
	// fail is the number of the call that fails, -1 for none.
	fail int
	// names of the functions that were called.
	names []string
}

// newCalls returns calls that all return the same variant.
func (c *chartRender) newCalls(variant int) *impureCalls {
	return &impureCalls{
		mode: c.spec.Impure, lookup: c.spec.Lookup, nameField: c.options.nameField, captured: c.captured,
		variant: variant, other: -1, fail: -1,
	}
}

// purposes maps each function to the reason why it is impure, for messages.
var purposes = map[string]string{
	"now": "reads the clock", "ago": "reads the clock", "date": "reads the clock for what is not a time", "durationRound": "reads the clock",
	"randAlphaNum": "is random", "randAlpha": "is random", "randAscii": "is random", "randNumeric": "is random", "randBytes": "is random",
	"randInt": "is random", "shuffle": "is random", "uuidv4": "is random", "genPrivateKey": "makes a random key", "genCA": "makes a random key",
	"genCAWithKey": "reads the clock", "genSelfSignedCert": "makes a random key", "genSelfSignedCertWithKey": "reads the clock",
	"genSignedCert": "makes a random key", "genSignedCertWithKey": "reads the clock", "htpasswd": "has a random salt", "bcrypt": "has a random salt",
	"encryptAES": "has a random start", "getHostByName": "asks a name server",
}

// refuseLookup is the error of a lookup.
func (c *impureCalls) refuseLookup() error {
	return fmt.Errorf("lookup asks a cluster, and a render has none; set %s to Captured to have it find the objects of a file, or to Empty to have it find nothing, as with helm template",
		c.nameField("lookup"))
}

// recordImpureCall notes a call and returns the variant that it is to return. With impure: Empty it is -1.
func (c *impureCalls) recordImpureCall(name string) (int, error) {
	if c.mode == v1alpha1.ImpureEmpty {
		return -1, nil
	}
	number := len(c.names)
	c.names = append(c.names, name)
	switch number {
	case c.fail:
		return 0, errors.New(c.explainImpureRejection(name))
	case c.other:
		return 1 - c.variant, nil
	}
	return c.variant, nil
}

// explainImpureRejection explains why a call is rejected, and how to fix it.
func (c *impureCalls) explainImpureRejection(name string) string {
	return fmt.Sprintf("%s %s, so that each render would have another result; "+
		"set a value of the chart that makes the call unnecessary, or set %s", name, purposes[name], c.nameField("impure"))
}

// madeUpText returns a text for a variant, "" for the empty one.
func madeUpText(variant, length int) string {
	if variant < 0 || length <= 0 {
		return ""
	}
	return strings.Repeat(string("ab"[variant]), min(length, 1<<16))
}

// madeUpTime returns a time for a variant, the zero time for the empty one.
func madeUpTime(variant int) time.Time {
	if variant < 0 {
		return time.Time{}
	}
	return time.Date(2001+variant, time.Month(2+variant), 3+variant, 4+variant, 5+variant, 6+variant, 7+variant, time.UTC)
}

// certificate is what sprig's functions for certificates return, as templates see it.
type certificate struct{ Cert, Key string }

// impureFunctionReplacements replace those of Helm that are not functions of their arguments.
func (c *impureCalls) impureFunctionReplacements() template.FuncMap {
	out := template.FuncMap{
		"keys": sortedKeys, "values": sortedValues,
		"lookup": func(_, _, _, _ string) (map[string]any, error) {
			if c.lookup == v1alpha1.ImpureEmpty {
				return map[string]any{}, nil
			}
			return nil, c.refuseLookup()
		},
	}
	if c.captured != nil {
		out["lookup"] = c.captured.lookupCapturedObject
	}
	maps.Copy(out, c.randomFunctions())
	maps.Copy(out, c.certificateFunctions())
	maps.Copy(out, c.clockFunctions())
	return out
}

func (c *impureCalls) randomFunctions() template.FuncMap {
	ofLength := func(name string) func(int) (string, error) {
		return func(length int) (string, error) {
			variant, err := c.recordImpureCall(name)
			return madeUpText(variant, length), err
		}
	}
	return template.FuncMap{
		"randAlphaNum": ofLength("randAlphaNum"), "randAlpha": ofLength("randAlpha"), "randAscii": ofLength("randAscii"),
		"randNumeric": func(length int) (string, error) {
			variant, err := c.recordImpureCall("randNumeric")
			return strings.NewReplacer("a", "1", "b", "2").Replace(madeUpText(variant, length)), err
		},
		"randBytes": func(length int) (string, error) {
			variant, err := c.recordImpureCall("randBytes")
			return base64.StdEncoding.EncodeToString([]byte(madeUpText(variant, length))), err
		},
		"randInt": func(low, high int) (int, error) {
			variant, err := c.recordImpureCall("randInt")
			if variant == 1 && high > low {
				return high - 1, err
			}
			return low, err
		},
		"shuffle": func(text string) (string, error) {
			variant, err := c.recordImpureCall("shuffle")
			letters := []rune(text)
			if variant == 1 {
				slices.Reverse(letters)
			}
			return string(letters), err
		},
		"uuidv4": func() (string, error) {
			variant, err := c.recordImpureCall("uuidv4")
			if variant < 0 {
				return "", err
			}
			digit := madeUpText(variant, 8)
			return digit + "-" + digit[:4] + "-4" + digit[:3] + "-8" + digit[:3] + "-" + digit + digit[:4], err
		},
		"getHostByName": func(string) (string, error) {
			variant, err := c.recordImpureCall("getHostByName")
			if variant < 0 {
				return "", err
			}
			return fmt.Sprintf("192.0.2.%d", 1+variant), err
		},
	}
}

// madeUpSecret is long enough for templates that check the length of a key.
const madeUpSecret = 60

func (c *impureCalls) certificateFunctions() template.FuncMap {
	out := template.FuncMap{}
	for _, name := range []string{"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey"} {
		out[name] = func(...any) (certificate, error) {
			variant, err := c.recordImpureCall(name)
			return certificate{madeUpText(variant, madeUpSecret), madeUpText(variant, madeUpSecret)}, err
		}
	}
	for _, name := range []string{"genPrivateKey", "htpasswd", "bcrypt", "encryptAES"} {
		out[name] = func(...any) (string, error) {
			variant, err := c.recordImpureCall(name)
			return madeUpText(variant, madeUpSecret), err
		}
	}
	return out
}

// clockForFunction returns the time for a function that reads the clock. ok is false if the function must return an
// empty result.
func (c *impureCalls) clockForFunction(name string) (now time.Time, ok bool, err error) {
	variant, err := c.recordImpureCall(name)
	return madeUpTime(variant), variant >= 0 && err == nil, err
}

// clockFunctions are sprig's time functions (date.go), with a made-up time in place of the clock.
func (c *impureCalls) clockFunctions() template.FuncMap {
	own := sprig.TxtFuncMap()
	inZone, _ := own["dateInZone"].(func(string, any, string) string)
	round, _ := own["durationRound"].(func(any) string)
	date := func(format string, value any, zone string) (string, error) {
		if !isTime(value) {
			now, ok, err := c.clockForFunction("date")
			if !ok {
				return "", err
			}
			value = now
		}
		return inZone(format, value, zone), nil
	}
	const day = "2006-01-02"
	out := template.FuncMap{
		"now": func() (time.Time, error) {
			now, _, err := c.clockForFunction("now")
			return now, err
		},
		"ago": func(any) (string, error) {
			variant, err := c.recordImpureCall("ago")
			if err != nil || variant < 0 {
				return "", err
			}
			return (time.Duration(1+variant) * time.Hour).String(), nil
		},
		"durationRound": func(value any) (string, error) {
			if _, since := value.(time.Time); !since {
				return round(value), nil
			}
			variant, err := c.recordImpureCall("durationRound")
			return madeUpText(variant, 2), err
		},
		"date":     func(format string, value any) (string, error) { return date(format, value, "UTC") },
		"htmlDate": func(value any) (string, error) { return date(day, value, "UTC") },
	}
	for _, name := range []string{"dateInZone", "date_in_zone"} {
		out[name] = date
	}
	out["htmlDateInZone"] = func(value any, zone string) (string, error) { return date(day, value, zone) }
	return out
}

// isTime reports whether sprig accepts a value as a time; it uses the clock for all others (dateInZone in its
// date.go).
func isTime(value any) bool {
	switch value.(type) {
	case time.Time, *time.Time, int64, int, int32:
		return true
	}
	return false
}

// sortedKeys is keys of sprig, whose result has the order of Go's maps.
func sortedKeys(all ...map[string]any) []string {
	keys := []string{}
	for _, one := range all {
		keys = append(keys, slices.Sorted(maps.Keys(one))...)
	}
	return keys
}

// sortedValues is values of sprig, in the order of the keys.
func sortedValues(all map[string]any) []any {
	values := []any{}
	for _, key := range sortedKeys(all) {
		values = append(values, all[key])
	}
	return values
}
