// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

func TestGate(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	var objects []render.Object
	for i := range 10 {
		objects = append(objects, configMap(fmt.Sprintf("o%d", i), "1"))
	}
	run(t, b, change(t, "shop", "shop", objects...))
	for _, tc := range []struct {
		keep   int
		gates  v1alpha1.Gates
		closed bool
	}{
		{4, v1alpha1.Gates{MaxDeleted: percent(50)}, true},
		{0, v1alpha1.Gates{MaxDeleted: percent(100)}, true},
		{0, v1alpha1.Gates{MaxDeleted: percent(50), AllowEmpty: true}, true},
		{8, v1alpha1.Gates{MaxDeleted: percent(0)}, false},
		{4, v1alpha1.Gates{MaxDeleted: percent(60)}, false},
	} {
		c := change(t, "shop", "shop", objects[:tc.keep]...)
		c.Gate = publish.Gate(tc.gates, c.Objects)
		result := run(t, b, c)
		var closed *publish.GateError
		if errors.As(result.Outcomes[0].Err, &closed) != tc.closed || result.Changed == tc.closed {
			t.Errorf("%+v: got %+v", tc, result)
		}
		run(t, b, change(t, "shop", "shop", objects...))
	}
}

// TestGateOfDefinitions deletes a CustomResourceDefinition, whose objects would go with it.
func TestGateOfDefinitions(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	definition := func(apiVersion, name string) render.Object {
		return render.Object{APIVersion: apiVersion, Kind: "CustomResourceDefinition", Name: name,
			YAML: []byte("apiVersion: " + apiVersion + "\nkind: CustomResourceDefinition\nmetadata:\n  name: " + name + "\n")}
	}
	shops, doors := definition("apiextensions.k8s.io/v1", "shops.example.org"), definition("apiextensions.k8s.io/v1", "doors.example.org")
	others := []render.Object{configMap("a", "1"), definition("example.org/v1", "of-another-group")}
	for name, tc := range map[string]struct {
		objects []render.Object
		allowed []string
		want    string
	}{
		"stays":              {append(others[:2:2], shops, doors), nil, ""},
		"deleted":            {append(others[:2:2], shops), nil, "gate allowDeletedCRDs: the CustomResourceDefinition doors.example.org would be deleted"},
		"both":               {others, []string{"shops.example.com"}, "the CustomResourceDefinition doors.example.org, shops.example.org would be deleted"},
		"allowed":            {append(others[:2:2], shops), []string{"doors.example.org"}, ""},
		"another version":    {append(others[:2:2], shops, definition("apiextensions.k8s.io/v1beta1", "doors.example.org")), nil, ""},
		"not a definition":   {[]render.Object{shops, doors}, nil, ""},
		"allowed is exact":   {others, []string{"shops", "*"}, "doors.example.org, shops.example.org would be deleted"},
		"another is named":   {append(others[:2:2], shops), []string{"shops.example.org"}, "doors.example.org would be deleted"},
		"everything allowed": {others, []string{"shops.example.org", "doors.example.org"}, ""},
	} {
		all := percent(100)
		run(t, b, change(t, "shop", "shop", append(others[:2:2], shops, doors)...))
		c := change(t, "shop", "shop", tc.objects...)
		c.Gate = publish.Gate(v1alpha1.Gates{MaxDeleted: all, AllowDeletedCRDs: tc.allowed}, c.Objects)
		err := run(t, b, c).Outcomes[0].Err
		switch {
		case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		if names := repository.Git("ls-tree", "-r", "--name-only", "rendered"); tc.want != "" && !strings.Contains(names, "doors.example.org") {
			t.Errorf("%s: the last good output is gone: %s", name, names)
		}
	}
}

func percent(n int) *int { return &n }
