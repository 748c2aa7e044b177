// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/derive"
)

// With impure: Derived, a random function returns a value derived from a key, the release and the call. A call is
// identified by the file being rendered, the places of the includes that lead to it, the place of the call, its
// function and arguments, and the number of previous calls in the same file that are equal in all of this.

// derivation is what all renders of a release have in common.
type derivation struct {
	key     *derive.Key
	release []string
	// time is the time that the clock shows, or nil if none is set.
	time *time.Time
	// functions that are derived.
	functions map[string]bool
	// places by number, and their numbers.
	places  []place
	numbers map[place]int
	// keys that were made, as they take long.
	keys map[string]string
	// made is what calls returned, which no error may hold.
	made map[string]bool
}

// newDerivation returns nil for a release that derives no values.
func newDerivation(release *v1alpha1.Helm, options Options) (*derivation, error) {
	if release.Impure != v1alpha1.ImpureDerived {
		return nil, nil
	}
	if options.Key == nil || release.Derived == nil {
		return nil, fmt.Errorf("%s is Derived, and there is no seed to derive from", options.nameField("impure"))
	}
	at, err := release.Derived.ParseTime()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", options.nameField("derived.time"), err)
	}
	d := &derivation{
		key: options.Key, release: []string{release.Namespace, release.ReleaseName}, time: at,
		functions: map[string]bool{}, numbers: map[place]int{}, keys: map[string]string{}, made: map[string]bool{},
	}
	for name := range (&derivedCalls{derivation: d}).placedFunctions() {
		d.functions[name] = true
	}
	return d, nil
}

// number returns the number of a place.
func (d *derivation) number(at place) int {
	n, ok := d.numbers[at]
	if !ok {
		n = len(d.places)
		d.places, d.numbers[at] = append(d.places, at), n
	}
	return n
}

// isDerived reports whether calls of a function get the number of their place.
func (d *derivation) isDerived(name string) bool { return d.functions[name] }

// annotateChart annotates the templates of a chart and of those that it depends on. Charts that are one with several names share
// their files.
func (d *derivation) annotateChart(c *chart.Chart) {
	files := c.Templates
	c.Templates = nil
	for _, file := range files {
		one := *file
		one.Data = []byte(annotate(string(file.Data), path.Join(c.ChartFullPath(), file.Name), true, d.isDerived, d.number))
		c.Templates = append(c.Templates, &one)
	}
	for _, dependency := range c.Dependencies() {
		d.annotateChart(dependency)
	}
}

// least is the minimum length of a value to search for in errors. A shorter one occurs in too many other words.
const least = 4

// note remembers a value that no error may hold, and returns it.
func (d *derivation) note(value string) string {
	for _, one := range append(strings.Split(value, "\n"), value, base64.StdEncoding.EncodeToString([]byte(value))) {
		if len(one) >= least {
			d.made[one] = true
		}
	}
	return value
}

// redact removes derived values from a text.
func (d *derivation) redact(text string) string {
	if d == nil {
		return text
	}
	longest := slices.SortedFunc(maps.Keys(d.made), func(a, b string) int { return len(b) - len(a) })
	for _, value := range longest {
		text = strings.ReplaceAll(text, value, "[derived]")
	}
	return text
}

// derivedCalls are the calls of one render.
type derivedCalls struct {
	*derivation
	files []renderedFile // each included by the one before
}

// renderedFile is a file that is being rendered.
type renderedFile struct {
	// paths list what leads to the current point of the render: the file, and each include.
	paths []string
	// counts of equal calls.
	counts map[string]int
}

func digest(parts ...string) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // they are texts
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

func (c *derivedCalls) file() *renderedFile {
	if len(c.files) == 0 {
		c.files = append(c.files, renderedFile{[]string{""}, map[string]int{}})
	}
	return &c.files[len(c.files)-1]
}

// placeOf returns the place of a number, the empty one where a template is not annotated.
func (c *derivedCalls) placeOf(number string) place {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n >= len(c.places) {
		return place{}
	}
	return c.places[n]
}

// annotations returns the functions that annotated templates call. A file that is included again yields the same
// output as on its own, so that the checksum of a Secret is that of the Secret.
func (c *derivedCalls) annotations() template.FuncMap {
	enter := func(number string) {
		file, at := c.file(), c.placeOf(number)
		file.paths = append(file.paths, digest(file.paths[len(file.paths)-1], at.file, at.block, at.line))
	}
	return template.FuncMap{
		funcBegin: func(name string) string {
			c.files = append(c.files, renderedFile{[]string{digest("file", name)}, map[string]int{}})
			return ""
		},
		funcEnd: func() string {
			c.files = c.files[:max(len(c.files)-1, 0)]
			return ""
		},
		funcEnter: func(number string, value any) any {
			enter(number)
			return value
		},
		funcText: func(number, text string) string {
			enter(number)
			return annotate(text, "tpl", false, c.isDerived, c.number)
		},
		funcLeave: func(value any) any {
			file := c.file()
			file.paths = file.paths[:max(len(file.paths)-1, 1)]
			return value
		},
	}
}

// call is one call whose result is derived.
type call struct {
	derivation *derivation
	parts      []string
}

// begin returns the call of a function at a place.
func (c *derivedCalls) begin(number, function string, args ...any) (call, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return call{}, fmt.Errorf("reading the arguments of %s: %w", function, err)
	}
	file, at := c.file(), c.placeOf(number)
	same := digest(file.paths[len(file.paths)-1], at.file, at.block, at.line, function, string(text))
	n := file.counts[same]
	file.counts[same]++
	return call{c.derivation, append(slices.Clone(c.release), same, strconv.Itoa(n))}, nil
}

// stream returns what is derived for a purpose.
func (c call) stream(purpose ...string) *derive.Stream {
	return c.derivation.key.Stream(slices.Concat(c.parts, purpose)...)
}

// functions replace those that are random. Without places they are as templates call them that are not annotated.
func (c *derivedCalls) functions(placed bool) template.FuncMap {
	out := c.placedFunctions()
	if !placed {
		for name, function := range out {
			out[name] = withoutPlace(function)
		}
		return out
	}
	maps.Copy(out, c.annotations())
	return out
}

func (c *derivedCalls) placedFunctions() template.FuncMap {
	out := c.textFunctions()
	maps.Copy(out, c.keyFunctions())
	if c.time != nil {
		maps.Copy(out, c.certificateFunctions())
	}
	return out
}

// withoutPlace returns a function without its first argument, with the same types.
func withoutPlace(function any) any {
	of := reflect.ValueOf(function)
	var in, out []reflect.Type
	for i := 1; i < of.Type().NumIn(); i++ {
		in = append(in, of.Type().In(i))
	}
	for i := range of.Type().NumOut() {
		out = append(out, of.Type().Out(i))
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, false), func(args []reflect.Value) []reflect.Value {
		return of.Call(append([]reflect.Value{reflect.ValueOf("")}, args...))
	}).Interface()
}
