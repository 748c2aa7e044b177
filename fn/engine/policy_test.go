// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/builtin"
	"github.com/prerig/prerig/policies"
)

// A built-in policy is the same object as a file with its text.
func TestReadBuiltIn(t *testing.T) {
	for _, name := range policies.Names() {
		text, _ := policies.Get(name)
		want, err := v1alpha1.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readBuiltIn(text)
		if err != nil {
			t.Fatalf("reading %s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-as a file +built in):\n%s", name, diff)
		}
	}
}

// Nothing is wrong with the templates of built-in policies, so that parsing them late hides nothing from anybody.
func TestBuiltInTemplatesAreRight(t *testing.T) {
	const name = "istio"
	var o istio.Options
	var err error
	if o.Config, o.Values, err = builtIn(name, &o, &compiledIstio{}); err != nil {
		t.Fatal(err)
	}
	if !o.Known {
		t.Error("the configuration does not count as known")
	}
	late, err := istio.New(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Known = false
	if _, err := istio.New(o); err != nil {
		t.Errorf("parsing all templates at once: %v", err)
	}
	for _, template := range late.TemplateNames() {
		if _, err := late.Select(map[string]string{istio.TemplatesAnnotationName: template}); err != nil {
			t.Errorf("parsing %s when it is asked for: %v", template, err)
		}
	}
}

// A version that the built-in templates are not made for is rejected before any of them is read.
func TestBuiltInRejectsAnotherVersion(t *testing.T) {
	for version, overrides := range map[string]map[string]any{"1.27": nil, "": {"global": map[string]any{"tag": "1.27.3"}}, "1.33": nil} {
		o := istio.Options{Version: version, Overrides: overrides}
		if _, _, err := builtIn("istio", &o, &compiledIstio{}); err == nil || !strings.Contains(err.Error(), "the built-in policy covers Istio 1.28 to 1.32; import") {
			t.Errorf("version %q, overrides %v: %v", version, overrides, err)
		}
	}
	for name, want := range map[string]string{"fluent-bit": "it does not inject Istio", "istoi": "did you mean istio?"} {
		if _, _, err := builtIn(name, &istio.Options{}, &compiledIstio{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestABuiltInPolicyIsReadOnce for an Injector, whatever it is run over, and never changed.
func TestABuiltInPolicyIsReadOnce(t *testing.T) {
	want, err := readBuiltIn(builtin.Policy(istio.Version{Minor: builtin.DefaultMinor, Patch: -1}))
	if err != nil {
		t.Fatal(err)
	}
	p := &v1alpha1.InjectionPolicy{Spec: v1alpha1.InjectionPolicySpec{Istio: &v1alpha1.Istio{Injector: v1alpha1.Injector{BuiltIn: "istio"}}}}
	compiled := &compiledIstio{}
	pl := &compiledPolicy{policy: p}
	if _, err := pl.prepareIstio(&cluster{}, compiled); err != nil {
		t.Fatal(err)
	}
	first, injector := compiled.builtIn, pl.istio
	if _, err := pl.prepareIstio(&cluster{}, compiled); err != nil {
		t.Fatal(err)
	}
	if compiled.builtIn != first || pl.istio != injector {
		t.Error("it is read or compiled again")
	}
	if d := cmp.Diff(want, first); d != "" {
		t.Error(d)
	}
}
