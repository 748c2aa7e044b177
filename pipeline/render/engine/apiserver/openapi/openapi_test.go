// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/render/gate"
)

// TestEveryVersion reads all schemas of all versions, and finds what they name.
func TestEveryVersion(t *testing.T) {
	t.Parallel()
	for minor := 29; minor <= 37; minor++ {
		s, err := NewServer("v1." + strconv.Itoa(minor) + ".4")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(s.Kinds()); n < 60 {
			t.Errorf("%s has %d kinds", s.Minor, n)
		}
		for _, k := range s.Kinds() {
			if _, ok := s.texts[k.Definition]; !ok {
				t.Errorf("%s: %s %s has the unknown definition %s", s.Minor, k.APIVersion, k.Kind, k.Definition)
			}
		}
		for name, i := range s.texts {
			var schema Schema
			if err := json.Unmarshal(s.catalog.Schemas[i], &schema); err != nil {
				t.Errorf("%s: %s: %v", s.Minor, name, err)
			}
			for _, ref := range refsOf(&schema) {
				if _, ok := s.texts[ref]; !ok {
					t.Errorf("%s: %s names %s, which does not exist", s.Minor, name, ref)
				}
			}
		}
		pull := s.decodeDefinition("io.k8s.api.core.v1.Container").Properties["imagePullPolicy"]
		if want := []string{"Always", "IfNotPresent", "Never"}; !slices.Equal(pull.Enum, want) {
			t.Errorf("%s: imagePullPolicy can be %v, want %v", s.Minor, pull.Enum, want)
		}
	}
}

// TestKnownVersions has the versions that users are told.
func TestKnownVersions(t *testing.T) {
	t.Parallel()
	s, err := NewServer("")
	if err != nil {
		t.Fatal(err)
	}
	if oldest, newest := s.Known(); oldest != gate.OldestKubernetes || newest != gate.NewestKubernetes {
		t.Errorf("the schemas are of %s to %s, and package gate names %s to %s", oldest, newest, gate.OldestKubernetes, gate.NewestKubernetes)
	}
}

func refsOf(s *Schema) []string {
	if s == nil {
		return nil
	}
	out := append(refsOf(s.Items), refsOf(s.Values)...)
	if s.Ref != "" {
		out = append(out, s.Ref)
	}
	for _, p := range s.Properties {
		out = append(out, refsOf(p)...)
	}
	return out
}

// TestVersions tells versions apart by what came and went with them.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		version, apiVersion, kind string
		want                      bool
	}{
		{"1.31", "flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", true},
		{"1.32", "flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", false},
		{"1.29", "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", false},
		{"1.30", "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", true},
		{"1.33", "resource.k8s.io/v1", "ResourceClaim", false},
		{"1.34", "resource.k8s.io/v1", "ResourceClaim", true},
		{"", "apps/v1", "Deployment", true},
	} {
		s, err := NewServer(tc.version)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Lookup(tc.apiVersion, tc.kind); ok != tc.want {
			t.Errorf("%s has %s of %s: %v, want %v", tc.version, tc.kind, tc.apiVersion, ok, tc.want)
		}
	}
	for _, version := range []string{"1.28", "1.99", "2.0", "latest"} {
		if _, err := NewServer(version); err == nil || !strings.Contains(err.Error(), "the schemas of 1.29 to 1.37 are known") {
			t.Errorf("version %s: %v", version, err)
		}
	}
}
