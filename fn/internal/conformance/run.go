// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/workload"
)

// Status is how a case came out.
type Status string

// The outcomes of a case.
const (
	Equal               Status = "equal"
	EqualButWebhookOnly Status = "equal but for webhook-only fields"
	Different           Status = "different"
	Failed              Status = "error"
)

// Outcome is what became of a case.
type Outcome struct {
	Case   *Case
	Status Status
	// Detail is the difference or the error.
	Detail string
}

// Injector makes the case's injector.
func (c *Case) Injector() (*istio.Injector, error) {
	o := istio.Options{
		Version: c.version.String(), Revision: c.Revision, IstiodEnv: maps.Clone(c.IstiodEnv),
		Native: istio.NativeDisabled,
	}
	if c.NativeSidecars {
		o.Native = istio.NativeEnabled
	}
	if c.CompliancePolicy != "" {
		if o.IstiodEnv == nil {
			o.IstiodEnv = map[string]string{}
		}
		o.IstiodEnv["COMPLIANCE_POLICY"] = c.CompliancePolicy
	}
	var err error
	for _, f := range []struct {
		path string
		to   *string
	}{{c.Config, &o.Config}, {c.Values, &o.Values}, {c.Mesh, &o.Mesh}} {
		if *f.to, err = c.read(f.path); err != nil {
			return nil, err
		}
	}
	return istio.New(o)
}

// Objects are the objects of a file of the case, in order, without empty documents.
func (c *Case) Objects(path string) ([]map[string]any, error) {
	text, err := c.read(path)
	if err != nil {
		return nil, err
	}
	f, err := manifest.Parse(path, []byte(text))
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, d := range f.Docs {
		obj, err := d.Object()
		if err != nil {
			return nil, err
		}
		if len(obj) > 0 {
			out = append(out, obj)
		}
	}
	return out, nil
}

// Inject gives what the engine makes of the case's input, and the warnings.
func (c *Case) Inject() ([]map[string]any, []string, error) {
	in, err := c.Injector()
	if err != nil {
		return nil, nil, err
	}
	objects, err := c.Objects(c.Input)
	if err != nil {
		return nil, nil, err
	}
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		return nil, nil, err
	}
	var warnings []string
	for i := range objects {
		w := worker{c: c, in: in, registry: registry}
		if objects[i], err = w.object(objects[i]); err != nil {
			return nil, nil, err
		}
		warnings = append(warnings, w.warnings...)
	}
	return objects, warnings, nil
}

// worker injects into one object.
type worker struct {
	c        *Case
	in       *istio.Injector
	registry *workload.Registry
	warnings []string
}

func (w *worker) object(obj map[string]any) (map[string]any, error) {
	if obj["kind"] == "List" {
		return w.list(obj)
	}
	templates, err := w.registry.Templates(obj)
	if err != nil {
		return nil, err
	}
	for _, t := range templates {
		if why := skips(w.in, t); why != "" {
			w.warnings = append(w.warnings, fmt.Sprintf("%s %s: %s", t.Declared.Kind, t.Declared.Name, why))
			continue
		}
		req := inject.Request{Pod: t.Pod, Owner: t.Declared}
		req.Namespace.Name = t.Declared.Namespace
		req.Namespace.Annotations, req.Namespace.Known = w.c.NamespaceAnnotations[t.Declared.Namespace], true
		result, err := inject.Istio(w.in, req)
		if err != nil {
			return nil, fmt.Errorf("injecting into %s %s: %w", t.Declared.Kind, t.Declared.Name, err)
		}
		w.warnings = append(w.warnings, result.Warnings...)
		obj = t.Write(obj, result.Pod)
	}
	return obj, nil
}

func (w *worker) list(obj map[string]any) (map[string]any, error) {
	items, _ := obj["items"].([]any)
	out := make([]any, len(items))
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			out[i] = item
			continue
		}
		injected, err := w.object(m)
		if err != nil {
			return nil, err
		}
		out[i] = injected
	}
	obj = maps.Clone(obj)
	obj["items"] = out
	return obj, nil
}

// Run injects and compares.
func (c *Case) Run() Outcome {
	got, warnings, err := c.Inject()
	switch {
	case c.ExpectError != "":
		return c.expectError(err)
	case err != nil:
		return Outcome{Case: c, Status: Failed, Detail: err.Error()}
	}
	want, err := c.Objects(c.Expected)
	if err != nil {
		return Outcome{Case: c, Status: Failed, Detail: err.Error()}
	}
	if c.ExpectWarning != "" && !warned(warnings, c.ExpectWarning) {
		return Outcome{Case: c, Status: Different, Detail: fmt.Sprintf("there is no warning that says %q, but %q", c.ExpectWarning, warnings)}
	}
	diff, err := compare(got, want)
	switch {
	case err != nil:
		return Outcome{Case: c, Status: Failed, Detail: err.Error()}
	case diff == "":
		return Outcome{Case: c, Status: Equal}
	}
	return Outcome{Case: c, Status: Different, Detail: diff}
}

func (c *Case) expectError(err error) Outcome {
	if err == nil {
		err = errors.New("none")
	}
	if strings.Contains(strings.ToLower(err.Error()), c.ExpectError) {
		return Outcome{Case: c, Status: Equal}
	}
	return Outcome{Case: c, Status: Different, Detail: fmt.Sprintf("want an error that says %q, got: %v", c.ExpectError, err)}
}

// warned says whether one of the warnings says what Istio's does. Our words are our own, so it is the reason that has to be
// the same: the only reason that Istio warns of in a corpus is host networking.
func warned(warnings []string, want string) bool {
	reason := "host network"
	if !strings.Contains(want, reason) {
		reason = want
	}
	for _, w := range warnings {
		if strings.Contains(w, reason) {
			return true
		}
	}
	return false
}
