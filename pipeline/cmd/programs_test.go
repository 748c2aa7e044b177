// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package cmd_test holds what each program may link.
package cmd_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/prerig/prerig/"

// mustNotLink has the packages that a program never links, with all below them.
var mustNotLink = map[string][]string{
	"pipeline/cmd/prerig": {
		module + "pipeline/render/engine", "helm.sh/helm",
		"sigs.k8s.io/kustomize", "github.com/google/gnostic-models", "github.com/go-openapi/swag",
		"k8s.io/apiserver", "k8s.io/apiextensions-apiserver", "k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/discovery",
		"github.com/fluxcd/kustomize-controller", "github.com/fluxcd/pkg/kustomize", "github.com/fluxcd/pkg/envsubst",
		"google.golang.org/grpc", "github.com/grpc-ecosystem", "google.golang.org/genproto", "github.com/cloudevents", "go.uber.org/zap",
	},
	"pipeline/cmd/prerig-render": {
		module + "pipeline/cli", module + "pipeline/daemon", module + "pipeline/server", module + "pipeline/daemon/queue", module + "pipeline/publish",
		"github.com/nats-io", "github.com/go-git", "sigs.k8s.io/controller-runtime/pkg/client",
	},
	"fn/cmd/prerig-fn": {
		module + "pipeline", "helm.sh/helm", "sigs.k8s.io/kustomize", "k8s.io/client-go", "k8s.io/apiserver",
		"github.com/google/gnostic-models", "github.com/go-openapi/swag", "google.golang.org/protobuf",
	},
}

// TestProgramsLinkOnlyTheirPart lists the packages of each program: kustomize, Helm and the API server's code belong in the renderer alone,
// which has no credentials and no network, and everything else stays out of it.
func TestProgramsLinkOnlyTheirPart(t *testing.T) {
	t.Parallel()
	for program, never := range mustNotLink {
		list := exec.Command("go", "list", "-deps", module+program)
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("listing the packages of %s: %v", program, err)
		}
		packages := strings.Fields(string(out))
		if len(packages) < 100 {
			t.Errorf("%s has only %d packages: the list is not complete", program, len(packages))
		}
		for _, one := range packages {
			for _, prefix := range never {
				if one == prefix || strings.HasPrefix(one, prefix+"/") {
					t.Errorf("%s links %s", program, one)
				}
			}
		}
	}
}
