// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"dario.cat/mergo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/prerig/prerig/fn/podmap"
)

// generatorKinds are the kinds of generators, in the order of Argo CD, with what those need that cannot be rendered.
var generatorKinds = []struct{ name, needs string }{
	{name: "list"},
	{name: "clusters"},
	{name: "git"},
	{name: "scmProvider", needs: "asks the API of a Git host for repositories"},
	{name: "clusterDecisionResource", needs: "reads the status of an object in the cluster"},
	{name: "pullRequest", needs: "asks the API of a Git host for pull requests"},
	{name: "matrix"},
	{name: "merge"},
	{name: "plugin", needs: "asks a service for parameters"},
}

// maxGenerated bounds the Applications of an ApplicationSet.
const maxGenerated = 10_000

// appSetGenerator generates parameters.
type appSetGenerator struct {
	set       *Set
	object    *Object
	templates *appSetTemplates
	// left is how many more sets of parameters may be made.
	left int
}

// generated is what one kind of a generator makes.
type generated struct {
	kind   string
	params []params
}

// generate returns the parameters of each kind that a generator has. Those of the generator before it fill it in.
func (g *appSetGenerator) generate(at string, value any, before params) ([]generated, error) {
	generator, ok := value.(map[string]any)
	if !ok {
		return nil, &fieldError{at, errors.New("must be a mapping")}
	}
	selector, err := newParamSelector(generator["selector"])
	if err != nil {
		return nil, &fieldError{at + ".selector", err}
	}
	if len(before) > 0 {
		filled, err := g.templates.fillGenerator(at, withoutKey(generator, "selector"), before)
		if err != nil {
			return nil, err
		}
		generator, _ = filled.(map[string]any)
	}
	var out []generated
	for _, kind := range generatorKinds {
		spec := generator[kind.name]
		if spec == nil {
			continue
		}
		field := at + "." + kind.name
		if kind.needs != "" {
			return nil, &fieldError{field, fmt.Errorf("%s, which is not in the tree; write its result as a list, %s", kind.needs, keepHint)}
		}
		all, err := g.generateKind(kind.name, field, spec)
		if err != nil {
			return nil, err
		}
		if g.left -= len(all); g.left < 0 {
			return nil, &fieldError{field, fmt.Errorf("makes more than %d sets of parameters", maxGenerated)}
		}
		out = append(out, generated{kind.name, slices.DeleteFunc(all, func(p params) bool { return !selector.matches(p) })})
	}
	if len(out) == 0 {
		return nil, &fieldError{at, errors.New("must have a generator: list, clusters, git, matrix or merge")}
	}
	return out, nil
}

// generateKind returns the parameters of one kind of generator.
func (g *appSetGenerator) generateKind(kind, at string, spec any) (out []params, err error) {
	switch kind {
	case "list":
		return g.generateList(at, spec)
	case "clusters":
		return g.generateClusters(at, spec)
	case "git":
		return g.generateGit(at, spec)
	case "matrix":
		return g.generateMatrix(at, spec)
	}
	return g.generateMerge(at, spec)
}

// decodeGenerator reads a generator into its type.
func decodeGenerator(at string, spec, into any) error {
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return &fieldError{at, fmt.Errorf("cannot be read: %w", err)}
	}
	return nil
}

func (g *appSetGenerator) generateList(at string, spec any) ([]params, error) {
	var list struct {
		Elements     []params `json:"elements"`
		ElementsYAML string   `json:"elementsYaml"`
	}
	if err := decodeGenerator(at, spec, &list); err != nil {
		return nil, err
	}
	out := list.Elements
	if !g.templates.goTemplate {
		for i, element := range out {
			flat, err := flatElement(element)
			if err != nil {
				return nil, &fieldError{fmt.Sprintf("%s.elements[%d]", at, i), err}
			}
			out[i] = flat
		}
	}
	var more []params
	if err := readYAML([]byte(list.ElementsYAML), &more); err != nil {
		return nil, &fieldError{at + ".elementsYaml", fmt.Errorf("cannot be read: %w", err)}
	}
	return append(out, more...), nil
}

// flatElement is an element of a list without Go templates, whose values must be texts.
func flatElement(element params) (params, error) {
	out := params{}
	for _, key := range podmap.SortedKeys(element) {
		inner, ok := element[key].(map[string]any)
		if key != "values" || !ok {
			inner = map[string]any{"": element[key]}
		}
		for name, value := range inner {
			if name != "" {
				name = "." + name
			}
			name = key + name
			text, ok := value.(string)
			if !ok {
				return nil, fmt.Errorf("%s must be a text, as Argo CD accepts others with goTemplate only", name)
			}
			out[name] = text
		}
	}
	return out, nil
}

// combined is a matrix or a merge.
type combined struct {
	Generators []any    `json:"generators"`
	MergeKeys  []string `json:"mergeKeys"`
}

// generateInner returns the parameters of a generator of a matrix or a merge.
func (g *appSetGenerator) generateInner(at string, i int, generator any, before params) ([]params, error) {
	at = fmt.Sprintf("%s.generators[%d]", at, i)
	out, err := g.generate(at, generator, before)
	if err != nil {
		return nil, err
	}
	if len(out) > 1 {
		return nil, &fieldError{at, fmt.Errorf("has several generators, %s and %s, and only one is possible here", out[0].kind, out[1].kind)}
	}
	return out[0].params, nil
}

func (g *appSetGenerator) generateMatrix(at string, spec any) ([]params, error) {
	var matrix combined
	if err := decodeGenerator(at, spec, &matrix); err != nil {
		return nil, err
	}
	if len(matrix.Generators) != 2 {
		return nil, &fieldError{at + ".generators", fmt.Errorf("must be two, found %d", len(matrix.Generators))}
	}
	first, err := g.generateInner(at, 0, matrix.Generators[0], nil)
	if err != nil {
		return nil, err
	}
	var out []params
	for _, a := range first {
		second, err := g.generateInner(at, 1, matrix.Generators[1], a)
		if err != nil {
			return nil, err
		}
		for _, b := range second {
			both, err := g.combine(a, b)
			if err != nil {
				return nil, &fieldError{at, err}
			}
			out = append(out, both)
		}
	}
	return out, nil
}

// combine returns the parameters of both generators of a matrix. With Go templates those of the first win.
func (g *appSetGenerator) combine(a, b params) (params, error) {
	out := params{}
	if g.templates.goTemplate {
		return out, errors.Join(mergeParams(out, b), mergeParams(out, a))
	}
	for key, value := range a {
		out[key] = fmt.Sprint(value)
	}
	for _, key := range podmap.SortedKeys(b) {
		text := fmt.Sprint(b[key])
		if other, ok := out[key]; ok && other != text {
			return nil, fmt.Errorf("both generators have the parameter %s, as %q and %q", key, other, text)
		}
		out[key] = text
	}
	return out, nil
}

func (g *appSetGenerator) generateMerge(at string, spec any) ([]params, error) {
	var merge combined
	if err := decodeGenerator(at, spec, &merge); err != nil {
		return nil, err
	}
	if len(merge.Generators) < 2 {
		return nil, &fieldError{at + ".generators", errors.New("must be two or more")}
	}
	if len(merge.MergeKeys) == 0 {
		return nil, &fieldError{at + ".mergeKeys", errors.New("must name the parameters to merge by")}
	}
	var out []params
	var byKey map[string]int // index in out
	for i, generator := range merge.Generators {
		all, err := g.generateInner(at, i, generator, nil)
		if err != nil {
			return nil, err
		}
		found, err := indexByKeys(merge.MergeKeys, all)
		if err != nil {
			return nil, &fieldError{fmt.Sprintf("%s.generators[%d]", at, i), err}
		}
		if i == 0 {
			out, byKey = all, found
			continue
		}
		for key, index := range found {
			into, ok := byKey[key]
			if !ok {
				continue
			}
			if !g.templates.goTemplate {
				maps.Copy(out[into], all[index])
			} else if err := mergeParams(out[into], all[index]); err != nil {
				return nil, &fieldError{fmt.Sprintf("%s.generators[%d]", at, i), err}
			}
		}
	}
	return out, nil
}

// mergeParams merges parameters into others, over them. The library of Argo CD panics if a value is a text in the one
// and must not be in the other.
func mergeParams(into, from params) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its parameters cannot be merged, by Argo CD neither: values of clusters and git can only be merged with those of the same kind: %v", r)
		}
	}()
	return mergo.Merge(&into, from, mergo.WithOverride)
}

// indexByKeys returns the position of each set of parameters by its merge keys.
func indexByKeys(keys []string, all []params) (map[string]int, error) {
	out := map[string]int{}
	for i, one := range all {
		values := map[string]any{}
		for _, key := range keys {
			values[key] = one[key]
		}
		text, err := json.Marshal(values)
		if err != nil {
			return nil, err
		}
		if _, twice := out[string(text)]; twice {
			return nil, fmt.Errorf("has two sets of parameters with %s, and the merge keys must tell them apart", text)
		}
		out[string(text)] = i
	}
	return out, nil
}

// flatten puts nested parameters at paths such as a.b.0.
func flatten(prefix string, value any, out map[string]any) {
	dotted := func(key string) string {
		if prefix == "" {
			return key
		}
		return prefix + "." + key
	}
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			flatten(dotted(key), one, out)
		}
	case map[string]string:
		for key, one := range v {
			out[dotted(key)] = one
		}
	case []any:
		for i, one := range v {
			flatten(dotted(strconv.Itoa(i)), one, out)
		}
	default:
		out[prefix] = value
	}
}

// paramSelector chooses sets of parameters. Unlike Kubernetes' own it has no rules for values, which may be URLs.
type paramSelector struct {
	all []metav1.LabelSelectorRequirement
}

func newParamSelector(value any) (*paramSelector, error) {
	if value == nil {
		return &paramSelector{}, nil
	}
	var selector metav1.LabelSelector
	if err := decodeGenerator("", value, &selector); err != nil {
		return nil, err
	}
	s := &paramSelector{selector.MatchExpressions}
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		s.all = append(s.all, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{selector.MatchLabels[key]}})
	}
	for _, one := range s.all {
		if found := validation.IsQualifiedName(one.Key); len(found) > 0 {
			return nil, fmt.Errorf("the key %q is no label: %s", one.Key, found[0])
		}
		needsValues := one.Operator == metav1.LabelSelectorOpIn || one.Operator == metav1.LabelSelectorOpNotIn
		known := needsValues || one.Operator == metav1.LabelSelectorOpExists || one.Operator == metav1.LabelSelectorOpDoesNotExist
		if !known || needsValues != (len(one.Values) > 0) {
			return nil, fmt.Errorf("the operator of %s must be In or NotIn with values, or Exists or DoesNotExist without", one.Key)
		}
	}
	return s, nil
}

func (s *paramSelector) matches(p params) bool {
	if len(s.all) == 0 {
		return true
	}
	flat := map[string]any{}
	flatten("", p, flat)
	for _, one := range s.all {
		value, has := flat[one.Key]
		in := has && slices.Contains(one.Values, fmt.Sprint(value))
		matches := map[metav1.LabelSelectorOperator]bool{
			metav1.LabelSelectorOpIn: in, metav1.LabelSelectorOpNotIn: !in,
			metav1.LabelSelectorOpExists: has, metav1.LabelSelectorOpDoesNotExist: !has,
		}
		if !matches[one.Operator] {
			return false
		}
	}
	return true
}
