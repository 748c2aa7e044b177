// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/policies"
)

// TestOutputsAreAccepted injects with the built-in policy into workloads that Kubernetes' own validation accepts: random ones (PRERIG_ACCEPTED_N
// of them), those of the examples and of the directories in PRERIG_CORPUS. What the validation rejects afterwards has to be an error of the
// injection. It needs dist/upstream/defaulter, which make defaulter builds.
func TestOutputsAreAccepted(t *testing.T) {
	tools := Tools{Defaulter: filepath.Join("..", "..", "..", "dist", "upstream", "defaulter")}
	if _, err := os.Stat(tools.Defaulter); err != nil {
		t.Skip("Kubernetes' own validation is not there to compare with: make defaulter")
	}
	text, _ := policies.Get("istio")
	n, err := strconv.Atoi(os.Getenv("PRERIG_ACCEPTED_N"))
	if err != nil {
		n = 400
	}
	dirs := slices.DeleteFunc(filepath.SplitList(os.Getenv("PRERIG_CORPUS")), func(dir string) bool {
		_, err := os.Stat(dir)
		return err != nil // make test names a corpus that does not exist
	})
	inputs := writtenWorkloads(t, append(dirs, filepath.Join("..", "..", "..", "examples"))...)
	for i := range n {
		workload, _ := plainJSON(Generate(11, "default", i)).(map[string]any)
		inputs = append(inputs, workload)
	}
	for name, policy := range map[string]string{
		"native": string(text), "ordinary": strings.Replace(string(text), "nativeSidecars: Auto", "nativeSidecars: Disabled", 1),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := v1alpha1.Parse([]byte(policy))
			if err != nil {
				t.Fatal(err)
			}
			outputs, reported := injectAll(t, p, inputs)
			before, after := tools.verdicts(t, inputs), tools.verdicts(t, outputs)
			valid, errors := 0, 0
			for i := range inputs {
				if before[i] != "" {
					continue
				}
				valid++
				if reported[i] != "" {
					errors++
				} else if after[i] != "" {
					t.Errorf("nothing reports what the API server rejects: %s\n%s", after[i], toJSON(inputs[i]))
				}
			}
			t.Logf("%d valid of %d workloads; an error for %d", valid, len(inputs), errors)
		})
	}
}

// verdicts returns why the API server rejects the pod of each workload; empty where it accepts the pod.
func (t Tools) verdicts(tb testing.TB, workloads []map[string]any) []string {
	tb.Helper()
	pods, out, err := t.serverSidePods(tb.Context(), workloads)
	if err != nil {
		tb.Fatal(err)
	}
	var asked []map[string]any
	var at []int
	for i, pod := range pods {
		if out[i] != "" {
			continue
		}
		spec, _ := pod["spec"].(map[string]any)
		if spec["serviceAccountName"] == nil {
			spec["serviceAccountName"] = "default"
		}
		meta, _ := pod["metadata"].(map[string]any)
		if meta["namespace"] == nil {
			meta["namespace"] = "default"
		}
		if meta["name"] == nil {
			meta["name"] = "web"
		}
		asked, at = append(asked, pod), append(at, i)
	}
	answers, err := exchangeJSONLines[map[string]any, struct{ Status, Message string }](tb.Context(), asked, t.Defaulter, "-validate")
	if err != nil {
		tb.Fatal(err)
	}
	for j, answer := range answers {
		if answer.Status == "Failure" {
			out[at[j]] = answer.Message
		}
	}
	return out
}

// injectAll injects into each workload by itself, and returns the outputs and the first error of each.
func injectAll(t *testing.T, policy *v1alpha1.InjectionPolicy, workloads []map[string]any) (outputs []map[string]any, reported []string) {
	t.Helper()
	injector, err := fn.New([]*v1alpha1.InjectionPolicy{policy})
	if err != nil {
		t.Fatal(err)
	}
	for i, workload := range workloads {
		item, err := itemOf(workload, 0)
		if err != nil {
			t.Fatal(err)
		}
		report, err := injector.Run(context.Background(), []fn.Item{item})
		if err != nil {
			t.Fatal(err)
		}
		why := ""
		for _, r := range report.Results {
			if r.Severity == result.Error && why == "" {
				why = r.Message
			}
		}
		obj, err := report.Items[0].Doc.Object()
		if err != nil {
			t.Fatalf("reading output %d: %v", i, err)
		}
		obj, _ = plainJSON(obj).(map[string]any)
		outputs, reported = append(outputs, obj), append(reported, why)
	}
	return outputs, reported
}

// validatedKinds are the kinds that the validation reads.
var validatedKinds = map[string]bool{
	"v1 Pod": true, "v1 ReplicationController": true, "apps/v1 Deployment": true, "apps/v1 ReplicaSet": true, "apps/v1 StatefulSet": true,
	"apps/v1 DaemonSet": true, "batch/v1 Job": true, "batch/v1 CronJob": true,
}

// writtenWorkloads reads the workloads of the manifests below some directories. What is no manifest is left out.
func writtenWorkloads(t *testing.T, dirs ...string) (out []map[string]any) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.Contains(filepath.Ext(path), ".y") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := manifest.Parse(path, text)
			if err != nil {
				return nil //nolint:nilerr // a template of a manifest
			}
			for _, doc := range file.Docs {
				obj, err := doc.Object()
				if err == nil && validatedKinds[fmt.Sprint(obj["apiVersion"], " ", obj["kind"])] {
					obj, _ = plainJSON(obj).(map[string]any)
					out = append(out, obj)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
