// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/lint"
	pipelineapi "github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/gate"
)

const root = "../.."

// TestPagesAreUpToDate compares what make generate writes with what is there.
func TestPagesAreUpToDate(t *testing.T) {
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(root, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), f.Text); diff != "" {
			t.Errorf("%s is not up to date; run make generate (-page +code):\n%s", f.Path, diff)
		}
	}
}

// TestEveryRuleHasAPlace looks for the heading of each rule.
func TestEveryRuleHasAPlace(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, lint.DocumentPath))
	if err != nil {
		t.Fatal(err)
	}
	rules := lint.Rules()
	if len(rules) < 50 {
		t.Errorf("there are only %d lint rules", len(rules))
	}
	for _, rule := range rules {
		if !strings.Contains(string(page), "\n### "+rule.Code+"\n") {
			t.Errorf("%s has no heading for %s", lint.DocumentPath, rule.Code)
		}
	}
	gates := gateRulesPage()
	for _, rule := range gate.Rules() {
		if !strings.Contains(gates, "\n## "+rule.Code+"\n") {
			t.Errorf("the gate rules have no heading for %s", rule.Code)
		}
	}
}

// TestEveryReasonIsDescribed reads the sources: constants whose names begin with Reason, and those of Flux that are used.
func TestEveryReasonIsDescribed(t *testing.T) {
	described := map[string]bool{}
	for _, reason := range pipelineapi.Reasons() {
		if described[reason.Name] {
			t.Errorf("%s is described twice", reason.Name)
		}
		if reason.Means == "" || reason.Change == "" || reason.Condition == "" {
			t.Errorf("%s lacks what it means, what to do or its condition", reason.Name)
		}
		described[reason.Name] = true
	}
	ofFlux := map[string]string{
		"SucceededReason": meta.SucceededReason, "ProgressingReason": meta.ProgressingReason, "ProgressingWithRetryReason": meta.ProgressingWithRetryReason,
		"BuildFailedReason": meta.BuildFailedReason,
	}
	used := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "pipeline"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, name := range reasonsIn(n) {
				if value, isFlux := ofFlux[name]; isFlux {
					name = value
				}
				used[name] = true
				if !described[name] {
					t.Errorf("%s: the reason %s is not described in pipeline/api/v1alpha1/reasons.go", path, name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range described {
		if !used[name] {
			t.Errorf("the reason %s is described, and nothing has it", name)
		}
	}
}

// reasonsIn returns the reasons that a constant of the API declares, by value, or that a selector takes from Flux, by name.
func reasonsIn(n ast.Node) (names []string) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if !strings.HasPrefix(strings.ToLower(name.Name), "reason") || i >= len(n.Values) {
				continue
			}
			if literal, ok := n.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if value, err := strconv.Unquote(literal.Value); err == nil {
					names = append(names, value)
				}
			}
		}
	case *ast.SelectorExpr:
		if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "meta" && strings.HasSuffix(n.Sel.Name, "Reason") {
			names = append(names, n.Sel.Name)
		}
	}
	return names
}
