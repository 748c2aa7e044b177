// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package hermetic

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wellKnown are variables with values that mean something to Go, to a system, to Istio or to the tools that run functions.
var wellKnown = []string{
	"GOMAXPROCS=1", "GOGC=40", "GOMEMLIMIT=2GiB", "GODEBUG=madvdontneed=1", "GOTRACEBACK=crash", "TZ=Asia/Kathmandu", "LANG=tr_TR.UTF-8",
	"LC_ALL=C", "HOME=/nowhere", "USER=somebody", "PATH=/nowhere", "TMPDIR=/nowhere", "PWD=/nowhere", "HOSTNAME=elsewhere", "TERM=xterm-256color",
	"NO_COLOR=1", "KUBECONFIG=/nowhere/config", "KUBERNETES_SERVICE_HOST=10.0.0.1", "HTTPS_PROXY=http://proxy.example.com:3128",
	"ENABLE_NATIVE_SIDECARS=false", "PILOT_ENABLE_INBOUND_PASSTHROUGH=false", "ENABLE_LEGACY_FSGROUP_INJECTION=true",
	"COMPLIANCE_POLICY=fips-140-3", "POD_NAMESPACE=elsewhere", "CLUSTER_ID=elsewhere", "REVISION=canary", "LOG_TO_STDERR=true",
	"STRUCTURED_RESULTS=true", "PRERIG_LOG=debug", "PRERIG_CONFIG=/nowhere",
}

// TestEnvironment runs the binary in surroundings that differ in all that could be seen, and expects the same bytes.
func TestEnvironment(t *testing.T) {
	prerig := built(t)
	names := variables(t)
	t.Logf("%d variables that linked code asks for by name", len(names))
	all := func(value string) []string {
		var env []string
		for _, name := range names {
			// Go's runtime ends where one of its own is malformed, and apimachinery complains about one of its own.
			if malformed := strings.HasPrefix(name, "GO") || name == "KUBE_PATCH_CONVERSION_DETECTOR" && value == "/nowhere"; !malformed {
				env = append(env, name+"="+value)
			}
		}
		return env
	}
	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, "kustomization.yaml"), []byte("resources: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	together := map[string]surroundings{
		"all variables 1, another directory":      {env: all("1"), dir: elsewhere},
		"all variables true, the well-known ones": {env: append(all("true"), wellKnown...)},
	}
	alone := map[string]surroundings{
		"another directory":          {dir: elsewhere},
		"well-known variables":       {env: wellKnown},
		"the variables of the tests": {env: os.Environ()},
		"all variables 1":            {env: all("1")},
		"all variables true":         {env: all("true")},
		"all variables 0":            {env: all("0")},
		"all variables a path":       {env: all("/nowhere")},
	}
	for name, input := range inputs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := run(t, input, surroundings{}, prerig)
			variants := together
			if _, ok := own[name]; ok {
				variants = alone
			}
			for variant, s := range variants {
				if diff := cmp.Diff(want, run(t, input, s, prerig), cmp.AllowUnexported(ran{})); diff != "" {
					t.Errorf("%s changes what comes out:\n%s", variant, diff)
				}
			}
		})
	}
}

// variables finds all names with which linked code, the standard library included, asks for an environment variable.
func variables(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=Dir,GoFiles", "github.com/prerig/prerig/fn/cmd/prerig-fn").Output()
	if err != nil {
		t.Fatalf("listing what the binary links: %v", err)
	}
	var names []string
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir     string
			GoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, name := range p.GoFiles {
			names = append(names, asked(t, filepath.Join(p.Dir, name))...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// asked finds the names of variables that a file asks for.
func asked(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) != 1 {
			return true
		}
		sel, ok := c.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Getenv", "LookupEnv"}, sel.Sel.Name) {
			return true
		}
		if lit, ok := c.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if name, err := strconv.Unquote(lit.Value); err == nil && name != "" {
				names = append(names, name)
			}
		}
		return true
	})
	return names
}
