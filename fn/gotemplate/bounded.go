// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template"
)

// maxMade bounds the texts that functions make, in bytes. No Kubernetes object can be bigger. maxListed bounds the elements
// of lists and maps, with those of the lists and maps in them. Every append copies its list, so that a limit on one list
// also bounds the time of making it one by one.
const (
	maxMade   = 1 << 20
	maxListed = 10_000
)

var (
	errTooLong = fmt.Errorf("its result has more than %d bytes", maxMade)
	errTooMany = fmt.Errorf("its result has more than %d elements", maxListed)
	errCircle  = errors.New("it would put a map into itself")
)

// Bound puts limits on those of sprig's functions that turn a short input into a huge result, which no limit on
// what the template prints would see, and on those that can put a map into itself, on which printing never ends.
func Bound(m template.FuncMap) {
	for name, size := range sizes {
		if fn, ok := m[name]; ok {
			m[name] = withSizeCheck(fn, size)
		}
	}
	for _, name := range []string{"set", "append", "mustAppend", "push", "mustPush", "prepend", "mustPrepend", "concat", "list", "tuple",
		"dict", "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite", "cat", "toJson", "toPrettyJson", "toRawJson", "quote", "squote"} {
		if fn, ok := m[name]; ok {
			m[name] = boundedResult(name, fn)
		}
	}
	for name, fn := range printing {
		m[name] = weighArguments(fn)
	}
	m["printf"] = boundedPrintf
}

// weighArguments wraps a function of any arguments and fails if they are too large.
func weighArguments[T any](fn func(...any) T) func(...any) (T, error) {
	return func(args ...any) (out T, err error) {
		if err := sumArgumentWeights(args); err != nil {
			return out, err
		}
		return fn(args...), nil
	}
}

// printing are functions of text/template itself that make text out of anything.
var printing = map[string]func(...any) string{
	"print": fmt.Sprint, "println": fmt.Sprintln,
	"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
}

// boundedPrintf is printf. Widths and precisions can produce any amount of text.
func boundedPrintf(format string, args ...any) (string, error) {
	if err := sumArgumentWeights(args); err != nil {
		return "", err
	}
	size, number := len(format), 0
	for _, c := range format {
		switch {
		case c >= '0' && c <= '9':
			number = min(number*10+int(c-'0'), maxMade)
			continue
		case c == '*':
			number = maxMade / 100
		}
		size, number = min(size, 2*maxMade)+number, 0
	}
	if size > maxMade {
		return "", errTooLong
	}
	return fmt.Sprintf(format, args...), nil
}

// sizes check by the arguments whether the result of a function would be too large.
var sizes = map[string]func(args []reflect.Value) error{
	"repeat":  func(a []reflect.Value) error { return tooLong(numberOf(a[0]), float64(len(textOf(a[1])))) },
	"indent":  indentSize,
	"nindent": indentSize,
	"replace": func(a []reflect.Value) error {
		return tooLong(float64(strings.Count(textOf(a[2]), textOf(a[0]))), float64(len(textOf(a[1]))))
	},
	"join": func(a []reflect.Value) error {
		list := a[1]
		for list.Kind() == reflect.Interface {
			list = list.Elem()
		}
		if list.Kind() != reflect.Slice {
			return nil
		}
		var w weight
		if err := w.addValueWeight(list.Interface()); err != nil {
			return err
		}
		return tooLong(float64(list.Len()), float64(len(textOf(a[0]))))
	},
	"regexReplaceAll":        replaceSize,
	"regexReplaceAllLiteral": replaceSize,
	"until":                  func(a []reflect.Value) error { return tooMany(numberOf(a[0])) },
	"untilStep": func(a []reflect.Value) error {
		if step := numberOf(a[2]); step != 0 {
			return tooMany((numberOf(a[1]) - numberOf(a[0])) / step)
		}
		return nil
	},
	"seq": func(a []reflect.Value) error {
		var from, step, to float64 = 1, 1, 0
		switch len(a) {
		case 1:
			to = numberOf(a[0])
		case 2:
			from, to = numberOf(a[0]), numberOf(a[1])
		case 3:
			from, step, to = numberOf(a[0]), numberOf(a[1]), numberOf(a[2])
		}
		if step == 0 {
			return nil
		}
		return tooMany(max((to-from)/step, (from-to)/step))
	},
}

func indentSize(a []reflect.Value) error {
	return tooLong(numberOf(a[0]), float64(1+strings.Count(textOf(a[1]), "\n")))
}

func replaceSize(a []reflect.Value) error {
	return tooLong(float64(len(textOf(a[1]))), float64(len(textOf(a[2]))))
}

func tooLong(times, length float64) error {
	if times > 0 && times*length > maxMade {
		return errTooLong
	}
	return nil
}

func tooMany(n float64) error {
	if n > maxListed {
		return errTooMany
	}
	return nil
}

func numberOf(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return 0
}

func textOf(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}

// withSizeCheck returns fn with a check by size that fails before fn runs.
func withSizeCheck(fn any, size func([]reflect.Value) error) any {
	return wrapFunction(fn, func(args []reflect.Value, call func() any) (any, error) {
		if err := size(args); err != nil {
			return nil, err
		}
		return call(), nil
	})
}

// boundedResult returns fn with a check that fails if its input, and so its result, is too large.
func boundedResult(name string, fn any) any {
	switch fn := fn.(type) {
	case func(...any) string:
		return weighArguments(fn)
	case func(...any) []any:
		return weighArguments(fn)
	case func(...any) map[string]any:
		return weighArguments(fn)
	}
	return wrapFunction(fn, func(args []reflect.Value, call func() any) (any, error) {
		if name == "set" && len(args) == 3 && containsMapPointer(args[2], args[0].Pointer(), 0) {
			return nil, errCircle
		}
		var w weight
		for _, arg := range args {
			if !arg.IsValid() {
				continue
			}
			if err := w.addValueWeight(arg.Interface()); err != nil {
				return nil, err
			}
		}
		switch v := call().(type) {
		case string:
			if len(v) > maxMade {
				return nil, errTooLong
			}
			return v, nil
		case []any:
			if len(v) > maxListed {
				return nil, errTooMany
			}
			return v, nil
		default:
			return v, nil
		}
	})
}

// maxHeld is how deep holds looks. Values of templates are a few levels deep.
const maxHeld = 100

// containsMapPointer reports whether a value is, or has somewhere below it, the map at p. What is too deep counts as if
// it had.
func containsMapPointer(v reflect.Value, p uintptr, depth int) bool {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if depth > maxHeld {
		return true
	}
	switch v.Kind() {
	case reflect.Map:
		if v.Pointer() == p {
			return true
		}
		for it := v.MapRange(); it.Next(); {
			if containsMapPointer(it.Value(), p, depth+1) {
				return true
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Interface {
			return false
		}
		for i := range v.Len() {
			if containsMapPointer(v.Index(i), p, depth+1) {
				return true
			}
		}
	}
	return false
}

// wrapFunction is a function of fn's parameters and first result, and an error. text/template checks and converts the
// arguments as for fn.
func wrapFunction(fn any, around func(args []reflect.Value, call func() any) (any, error)) any {
	f := reflect.ValueOf(fn)
	t := f.Type()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	fails := reflect.TypeFor[error]()
	made := reflect.FuncOf(in, []reflect.Type{t.Out(0), fails}, t.IsVariadic())
	return reflect.MakeFunc(made, func(args []reflect.Value) []reflect.Value {
		flat := args
		if t.IsVariadic() {
			last := args[len(args)-1]
			flat = append([]reflect.Value{}, args[:len(args)-1]...)
			for i := range last.Len() {
				flat = append(flat, last.Index(i))
			}
		}
		var out []reflect.Value
		_, err := around(flat, func() any {
			out = f.Call(flat)
			return out[0].Interface()
		})
		if err == nil && len(out) == 2 && !out[1].IsNil() {
			err, _ = out[1].Interface().(error)
		}
		if err != nil {
			return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(err)}
		}
		return []reflect.Value{out[0], reflect.Zero(fails)}
	}).Interface()
}
