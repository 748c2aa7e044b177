// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/format"
	"os"
	"testing"
)

// TestModelIsUpToDate fails when schema.txt was changed and go generate was not run.
func TestModelIsUpToDate(t *testing.T) {
	src, err := os.ReadFile("../schema.txt")
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := parse(string(src))
	if err != nil {
		t.Fatal(err)
	}
	want, err := format.Source(write(blocks))
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../model_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, have) {
		t.Error("model_gen.go is not what schema.txt gives: run go generate ./fn/istio/mesh")
	}
}

func TestGoNames(t *testing.T) {
	for in, want := range map[string]string{
		"mesh_mTLS": "MeshMTLS", "k8s_sa_jwt_path": "K8SSaJwtPath", "enable_64bit_trace_id": "Enable_64BitTraceId",
		"preserve_http1_header_case": "PreserveHttp1HeaderCase", "matchLabels": "MatchLabels", "name": "Name",
	} {
		if got := goName(in); got != want {
			t.Errorf("%s: have %s, want %s", in, got, want)
		}
	}
}

func TestSchemaErrors(t *testing.T) {
	for _, text := range []string{"message", "message A B", " 1 a string", "message A\n  1"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q passes", text)
		}
	}
}
