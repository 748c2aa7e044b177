// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// gateFinding is what prerig gate says of an object.
type gateFinding struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Field    struct {
		Path string `json:"path"`
	} `json:"field"`
	File string `json:"file"`
}

// TestGate has the API server and prerig gate look at the same objects, good ones and broken ones: they must refuse the same objects,
// because of the same fields. PRERIG_GATE_CORPUS names a directory of further manifests, in which only findings that the API server does
// not share count: it refuses more than schemas say.
func TestGate(t *testing.T) {
	p := programs(t)
	program := builtPrerig(t)
	c := started(t, p, Options{})
	names, err := filepath.Glob("testdata/gate/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("looking for the cases: %v", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			objects := gateObjects(t, name)
			found := gateFindings(t, program, objects)
			for i, obj := range objects {
				comparison := gateComparison{obj, tryGate(t, c, obj), found[i]}
				if problem := comparison.problem(); problem != "" {
					t.Errorf("object %d, %s %s: %s", i, obj.GetKind(), obj.GetName(), problem)
				}
			}
		})
	}
	if corpus := os.Getenv("PRERIG_GATE_CORPUS"); corpus != "" {
		t.Run("corpus", func(t *testing.T) { compareGateCorpus(t, c, program, corpus) })
	}
}

func gateObjects(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decodeAll(content)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return objects
}

// tryGate asks the API server. Definitions are stored as well, so that it knows the kinds of what follows.
func tryGate(t *testing.T, c *Cluster, obj *unstructured.Unstructured) error {
	t.Helper()
	_, refused := c.Try(t.Context(), obj)
	if obj.GetKind() != "CustomResourceDefinition" || refused != nil {
		return refused
	}
	if _, err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
	group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
	probe := newUnstructuredObject(map[string]any{"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": "probe"}})
	err := c.pollUntilReady(t.Context(), func(ctx context.Context) error {
		c.forgetKinds()
		if _, err := c.Try(ctx, probe); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return nil
}

// gateFindings returns what prerig gate says of each object.
func gateFindings(t *testing.T, program string, objects []*unstructured.Unstructured) [][]gateFinding {
	t.Helper()
	dir := t.TempDir()
	for i, obj := range objects {
		text, err := json.Marshal(obj.Object)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.json", i)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), program, "gate", "--as-is", "-o", "json", "--fail-on", "never", "--kubernetes-version", kubernetesVersion(), dir)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var report struct {
		Objects int           `json:"objects"`
		Results []gateFinding `json:"results"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	if report.Objects != len(objects) {
		t.Logf("prerig gate looked at %d of %d objects\n%s", report.Objects, len(objects), stderr.Bytes())
	}
	found := make([][]gateFinding, len(objects))
	for _, f := range report.Results {
		var i int
		if _, err := fmt.Sscanf(filepath.Base(f.File), "%d.json", &i); err != nil {
			t.Fatalf("finding %+v: %v", f, err)
		}
		found[i] = append(found[i], f)
	}
	return found
}

// gateComparison is what both say of an object.
type gateComparison struct {
	obj     *unstructured.Unstructured
	refused error
	found   []gateFinding
}

// problem says how the two differ; empty where they do not.
func (g gateComparison) problem() string {
	var errs []gateFinding
	for _, f := range g.found {
		if f.Severity == "error" {
			errs = append(errs, f)
		}
	}
	switch {
	case g.refused == nil && len(errs) > 0:
		return fmt.Sprintf("the API server takes it, prerig gate finds %+v", errs)
	case g.refused != nil && len(errs) == 0:
		return fmt.Sprintf("prerig gate finds nothing, the API server says %v", g.refused)
	case g.refused == nil || meta.IsNoMatchError(g.refused):
		return ""
	}
	for _, f := range errs {
		if namesField(g.refused.Error(), f.Field.Path) {
			return ""
		}
	}
	return fmt.Sprintf("the API server says %v, prerig gate finds %+v", g.refused, errs)
}

var fieldName = regexp.MustCompile(`[A-Za-z][A-Za-z0-9_-]*`)

// namesField reports whether a message of the API server is about a field. When a value decodes itself, the message says no field, and
// of one in a map such as data it names the map.
func namesField(message, path string) bool {
	if strings.Contains(message, "quantities must match") || strings.Contains(message, "illegal base64") || strings.Contains(message, "parsing time") {
		return true
	}
	var fields []string
	for _, field := range fieldName.FindAllString(path, -1) {
		fields = append(fields, strings.ToLower(field))
	}
	if len(fields) == 0 {
		return true
	}
	message = strings.ToLower(message)
	inMap := strings.Contains(message, "cannot unmarshal") && slices.ContainsFunc(fields, func(field string) bool { return strings.Contains(message, "."+field+" of type") })
	return inMap || strings.Contains(message, fields[len(fields)-1])
}

// compareGateCorpus looks for findings that the API server does not share, over the objects of its own kinds below a directory.
func compareGateCorpus(t *testing.T, c *Cluster, program, corpus string) {
	var objects []*unstructured.Unstructured
	err := filepath.WalkDir(corpus, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml") {
			return nil //nolint:nilerr // what cannot be read is not compared
		}
		content, err := os.ReadFile(path)
		if err != nil || len(content) > 1<<20 {
			return nil //nolint:nilerr // as above
		}
		read, _ := decodeAll(content)
		for _, obj := range read {
			if _, err := c.resourceInterfaceFor(obj); err == nil && !obj.IsList() && obj.GetKind() != "CustomResourceDefinition" && obj.Object["sops"] == nil {
				obj.SetNamespace("")
				objects = append(objects, obj)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	refused, both := 0, 0
	for i, found := range gateFindings(t, program, objects) {
		_, err := c.Try(t.Context(), objects[i])
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		if err != nil {
			refused++
		}
		comparison := gateComparison{objects[i], err, found}
		problem := comparison.problem()
		switch {
		case err != nil && problem == "":
			both++
		case strings.HasPrefix(problem, "prerig gate finds nothing"):
			t.Logf("only the API server: %s %s: %v", objects[i].GetKind(), objects[i].GetName(), err)
		case problem != "":
			t.Errorf("%s %s: %s", objects[i].GetKind(), objects[i].GetName(), problem)
		}
	}
	t.Logf("%d objects, %d refused by the API server, %d of them found by prerig gate", len(objects), refused, both)
}
