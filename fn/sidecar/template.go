// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// Data is what a template reads.
type Data struct {
	// Name of the sidecar.
	Name string
	// Pod is the pod as the sidecars before this one have made it; ObjectMeta and Spec are its parts.
	Pod        *corev1.Pod
	ObjectMeta metav1.ObjectMeta
	Spec       corev1.PodSpec
	Workload   Workload
	Namespace  Namespace
	// Params has every parameter of the policy, and Values are the policy's.
	Params, Values map[string]any
	// Container is the app's container that is changed; nil in the other templates.
	Container *corev1.Container

	// root are the templates, bound to this pod's rendering, and marks count their steps.
	root  *template.Template
	marks gotemplate.Marks
}

// newData makes the data of a request.
func (s *Sidecar) newData(req Request) (*Data, error) {
	params, err := s.readParameters(req)
	if err != nil {
		return nil, err
	}
	pod, err := podmap.Typed(req.Pod)
	if err != nil {
		return nil, err
	}
	values, _ := copyOf(s.spec.Values).(map[string]any)
	if values == nil {
		values = map[string]any{}
	}
	root, err := s.templates.bindInclude()
	if err != nil {
		return nil, err
	}
	return &Data{root: root, marks: s.templates.marks, Name: s.Name(), Pod: pod, ObjectMeta: pod.ObjectMeta,
		Spec: pod.Spec, Workload: req.Workload, Namespace: req.Namespace,
		Params: params, Values: values}, nil
}

// The names of the templates, for messages.
const (
	podTemplate     = "template"
	objectsTemplate = "objects"
)

func containerTemplate(i int) string { return fmt.Sprintf("containers[%d].template", i) }

// parsedTemplates are the parsed templates of a sidecar. What one of them defines all can call.
type parsedTemplates struct {
	root *template.Template
	// marks count the steps.
	marks gotemplate.Marks
	// includes reports whether one of them calls include.
	includes bool
}

func newTemplates(s v1alpha1.Sidecar) (*parsedTemplates, error) {
	t := &parsedTemplates{marks: gotemplate.Marks{},
		root: template.New("").Funcs(templateFunctions()).Option("missingkey=error")}
	texts := []struct{ name, text string }{{podTemplate, s.Template}, {objectsTemplate, s.Objects}}
	for i, c := range s.Containers {
		texts = append(texts, struct{ name, text string }{containerTemplate(i), c.Template})
	}
	for _, e := range texts {
		if _, err := t.root.New(e.name).Parse(e.text); err != nil {
			return nil, parseError(e.name, err)
		}
		t.marks.Count(t.root)
		t.includes = t.includes || strings.Contains(e.text, "include")
	}
	return t, nil
}

const (
	// maxRendered bounds what a template prints, in bytes, and maxNested how deep include calls itself.
	maxRendered = 1 << 20
	maxNested   = 32
)

// renderTemplate renders one template. An error is an *gotemplate.Error.
func renderTemplate(name string, data *Data) ([]byte, error) {
	out := gotemplate.NewOutput(maxRendered, data.marks)
	if err := data.root.ExecuteTemplate(out, name, data); err != nil {
		return nil, gotemplate.ExecuteError(name, err)
	}
	return out.Bytes(), nil
}

// bindInclude returns the templates with the function include, which renders a defined template to text. They are for
// one goroutine.
func (t *parsedTemplates) bindInclude() (*template.Template, error) {
	if !t.includes {
		return t.root, nil
	}
	root, err := t.root.Clone()
	if err != nil {
		return nil, err
	}
	depth, spent := 0, 0
	return root.Funcs(template.FuncMap{"include": func(name string, data any) (string, error) {
		if depth++; depth > maxNested {
			return "", fmt.Errorf("include calls itself more than %d times deep", maxNested)
		}
		defer func() { depth-- }()
		out := &gotemplate.Output{Max: maxRendered, Marks: t.marks, Spent: &spent}
		err := root.ExecuteTemplate(out, name, data)
		return out.String(), err
	}}), nil
}

var (
	parseLocation = lazyregexp.New(`^template: .*?:(\d+)(?::\d+)?: (?s:(.*))$`)
)

// parseError names the template and line.
func parseError(name string, err error) error {
	m := parseLocation.FindStringSubmatch(err.Error())
	if m == nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return fmt.Errorf("reading %s, line %s: %s", name, m[1], m[2])
}
