// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/valyala/fasttemplate"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// params are the parameters of one Application.
type params = map[string]any

// appSetTemplates fills in the templates of an ApplicationSet.
type appSetTemplates struct {
	goTemplate bool
	options    []string
	base       *template.Template
}

func newAppSetTemplates(goTemplate bool, options []string) *appSetTemplates {
	t := &appSetTemplates{goTemplate: goTemplate, options: options}
	if goTemplate {
		t.base = template.New("template").Funcs(gotemplate.Functions(appSetFunctions))
	}
	return t
}

// appSetFunctions are the functions that Argo CD has besides sprig's.
var appSetFunctions = template.FuncMap{
	"normalize": normalizeName,
	"slugify":   slugifyName,
	"toYaml": func(value any) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	},
	"fromYaml": func(text string) (out map[string]any, err error) {
		out = map[string]any{}
		return out, readYAML([]byte(text), &out)
	},
	"fromYamlArray": func(text string) (out []any, err error) {
		out = []any{}
		return out, readYAML([]byte(text), &out)
	},
}

// readYAML reads YAML as Argo CD does.
func readYAML(text []byte, into any) error {
	if err := checkAliases(text); err != nil {
		return err
	}
	return yaml.Unmarshal(text, into)
}

// maxTemplated bounds the bytes of one text that is filled in.
const maxTemplated = 1 << 20

// templated finds texts that have something to fill in, in templates that are no Go templates.
var templated = lazyregexp.New(".*{{.*}}.*")

// fill fills in one text.
func (t *appSetTemplates) fill(text string, values params) (string, error) {
	if t.goTemplate {
		return t.execute(text, values, t.options)
	}
	if !templated.MatchString(text) {
		return text, nil
	}
	parsed, err := fasttemplate.NewTemplate(text, "{{", "}}")
	if err != nil {
		return "", fmt.Errorf("reading the template %q: %w", text, err)
	}
	return parsed.ExecuteFuncString(func(w io.Writer, tag string) (int, error) {
		value, ok := values[strings.TrimSpace(tag)].(string)
		if !ok {
			value = "{{" + tag + "}}"
		}
		return io.WriteString(w, value)
	}), nil
}

// execute executes a Go template.
func (t *appSetTemplates) execute(text string, values params, options []string) (out string, err error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	defer func() {
		if r := recover(); r != nil { // an option that text/template does not know
			err = fmt.Errorf("reading goTemplateOptions: %v", r)
		}
	}()
	parsed, err := t.base.Clone()
	if err != nil {
		return "", err
	}
	if parsed, err = parsed.Option(options...).Parse(text); err != nil {
		return "", fmt.Errorf("reading the template %q: %w", text, err)
	}
	marks := gotemplate.Marks{}
	marks.Count(parsed)
	printed := gotemplate.NewOutput(maxTemplated, marks)
	if err := parsed.Execute(printed, values); err != nil {
		return "", fmt.Errorf("filling in the template %q: %w", text, err)
	}
	return printed.String(), nil
}

// fillAll returns a copy of a value whose texts and keys are filled in. The path of a failure begins with at.
func (t *appSetTemplates) fillAll(at string, value any, values params) (any, error) {
	switch v := value.(type) {
	case string:
		out, err := t.fill(v, values)
		if err != nil {
			return nil, &fieldError{at, err}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			var err error
			if out[i], err = t.fillAll(fmt.Sprintf("%s[%d]", at, i), one, values); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range podmap.SortedKeys(v) {
			filled, err := t.fillAll(at+"."+key, v[key], values)
			if err != nil {
				return nil, err
			}
			name, err := t.fill(key, values)
			if err != nil {
				return nil, &fieldError{at, err}
			}
			out[name] = filled
		}
		return out, nil
	}
	return value, nil
}

// fillGenerator fills in a generator with the parameters of the one before it. A value that needs parameters of the
// generator itself stays as it is until these are known.
func (t *appSetTemplates) fillGenerator(at string, value any, values params) (any, error) {
	generator, ok := value.(map[string]any)
	if !ok {
		return value, nil
	}
	out := make(map[string]any, len(generator))
	for _, kind := range podmap.SortedKeys(generator) {
		own, _ := generator[kind].(map[string]any)
		own, early, err := t.fillValues(kind, own, values)
		if err != nil {
			return nil, &fieldError{at + "." + kind + ".values", err}
		}
		var inner []any
		if kind == "matrix" || kind == "merge" {
			inner, _ = own["generators"].([]any)
			own = withoutKey(own, "generators")
		}
		if own == nil {
			out[kind] = generator[kind]
			continue
		}
		filled, err := t.fillAll(at+"."+kind, own, values)
		if err != nil {
			return nil, err
		}
		result, _ := filled.(map[string]any)
		if early != nil {
			result["values"] = early
		}
		if inner != nil {
			all := make([]any, len(inner))
			for i, one := range inner {
				if all[i], err = t.fillGenerator(fmt.Sprintf("%s.%s.generators[%d]", at, kind, i), one, values); err != nil {
					return nil, err
				}
			}
			result["generators"] = all
		}
		out[kind] = result
	}
	return out, nil
}

// fillValues fills in those values of a generator that it can, and returns the generator without them.
func (t *appSetTemplates) fillValues(kind string, own map[string]any, values params) (rest, early map[string]any, err error) {
	given, ok := own["values"].(map[string]any)
	if !ok || kind != "git" && kind != "clusters" {
		return own, nil, nil
	}
	early = make(map[string]any, len(given))
	for _, key := range podmap.SortedKeys(given) {
		text, ok := given[key].(string)
		if !ok {
			early[key] = given[key]
			continue
		}
		if !t.goTemplate {
			early[key], err = t.fill(text, values)
		} else if early[key], err = t.execute(text, values, append(withoutMissingKey(t.options), "missingkey=error")); isMissingKey(err) {
			early[key], err = text, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return withoutKey(own, "values"), early, nil
}

// isMissingKey reports whether a template fails as it names a parameter that does not exist.
func isMissingKey(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "map has no entry for key") || strings.Contains(err.Error(), "can't evaluate field"))
}

func withoutMissingKey(options []string) []string {
	var out []string
	for _, one := range options {
		if !strings.HasPrefix(one, "missingkey=") {
			out = append(out, one)
		}
	}
	return out
}

// fieldError is an error about a field of an ApplicationSet.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// aboutField returns an error about the field that it names, or else about the one that is given.
func aboutField(o *Object, field string, err error) error {
	if named := (*fieldError)(nil); errors.As(err, &named) {
		field = named.field
	}
	return errorAboutField(o, field, "%v", err)
}

var notInNames = lazyregexp.New("[^-a-z0-9.]")

// normalizeName makes the name of an object out of a text.
func normalizeName(text string) string {
	const most = 253
	text = notInNames.ReplaceAllString(strings.ToLower(text), "-")
	return strings.Trim(text[:min(len(text), most)], "-.")
}

var (
	notInSlugs = lazyregexp.New("[^a-z0-9]")
	dashes     = lazyregexp.New("-+")
)

// slugifyName makes a label out of a text, which is the last argument: slugify [LENGTH [WHOLE-WORDS]] TEXT.
func slugifyName(args ...any) (string, error) {
	most, whole := 50, true
	if len(args) == 0 || len(args) > 3 {
		return "", errors.New("slugify has one to three arguments")
	}
	text, ok := args[len(args)-1].(string)
	if len(args) > 1 && ok {
		most, ok = args[0].(int)
	}
	if len(args) > 2 && ok {
		whole, ok = args[1].(bool)
	}
	if !ok || most < 0 {
		return "", errors.New("slugify has a length, whether to keep words whole, and a text as its arguments")
	}
	text = normalizeName(text)
	if !whole {
		text = text[:min(len(text), most)]
	}
	text = strings.Trim(dashes.ReplaceAllString(notInSlugs.ReplaceAllString(text, "-"), "-"), "-")
	if !whole || most == 0 || len(text) <= most {
		return text, nil
	}
	if end := strings.LastIndexByte(text[:most+1], '-'); end >= 0 {
		return text[:end], nil
	}
	return text[:most], nil
}
