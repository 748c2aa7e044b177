// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

// GateError describes why a result is not published. No change has been made when it is returned.
type GateError struct {
	// Gate is the field of spec.gates.
	Gate string
	// Message describes what was found.
	Message string
}

// Error names the gate and what was found.
func (e *GateError) Error() string { return "gate " + e.Gate + ": " + e.Message }

// fewDeleted deletions always pass: the share is meaningless for a handful of objects.
const fewDeleted = 3

// Gate returns the check for a Change: an empty result, the share of objects that would be deleted, and definitions
// among them. It is asked with the number of objects that are published, and the identities of those that would be
// deleted.
func Gate(gates v1alpha1.Gates, objects []render.Object) func(published int, deleted []string) error {
	return func(published int, deletedIDs []string) error {
		deleted := len(deletedIDs)
		if err := checkEmpty(gates, objects, "the result has no object"); err != nil {
			return err
		}
		if err := checkDefinitions(gates, deletedIDs, objects); err != nil {
			return err
		}
		if gates.MaxDeleted == nil || published == 0 || deleted <= fewDeleted {
			return nil
		}
		share := deleted * 100 / published
		if deleted*100 > *gates.MaxDeleted*published {
			return &GateError{"maxDeleted", fmt.Sprintf("%d of %d published objects would be deleted (%d%%), more than %d%%", deleted, published, share, *gates.MaxDeleted)}
		}
		return nil
	}
}

// checkEmpty closes the gate for a result without objects. what describes it.
func checkEmpty(gates v1alpha1.Gates, objects []render.Object, what string) error {
	if len(objects) > 0 || gates.AllowEmpty {
		return nil
	}
	return &GateError{"allowEmpty", what + "; set spec.gates.allowEmpty if that is meant"}
}

// definitionKind is the kind whose objects take all objects of another kind with them.
const definitionKind = "CustomResourceDefinition"

// maxDefinitions is how many definitions an error names, and maxDefinition how many bytes of each: others may have
// written what is published, with any names.
const maxDefinitions, maxDefinition = 50, 253

// checkDefinitions closes the gate where a CustomResourceDefinition would be deleted that the pipeline does not name.
// One that only changes its apiVersion stays.
func checkDefinitions(gates v1alpha1.Gates, deleted []string, objects []render.Object) error {
	var gone []string
	for _, id := range deleted {
		apiVersion, rest, _ := strings.Cut(id, " ")
		kind, name, _ := strings.Cut(rest, " ")
		if kind != definitionKind || !strings.HasPrefix(apiVersion, "apiextensions.k8s.io/") ||
			slices.Contains(gates.AllowDeletedCRDs, name) {
			continue
		}
		stays := slices.ContainsFunc(objects, func(o render.Object) bool {
			return o.Kind == definitionKind && o.Group() == "apiextensions.k8s.io" && o.Name == name
		})
		if !stays {
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return &GateError{"allowDeletedCRDs", fmt.Sprintf("the CustomResourceDefinition %s would be deleted, and with it every object of its kind in the cluster; "+
		"if that is meant, name it in spec.gates.allowDeletedCRDs", foreign.Names(gone, maxDefinitions, maxDefinition))}
}

// CheckGates checks the gates that depend on the result alone, wherever it is published: its findings, whether it has
// objects, and Secrets in plain text. The error is a *GateError.
func CheckGates(spec v1alpha1.RenderPipelineSpec, results result.Results, objects []render.Object) error {
	if err := checkResults(spec.Gates, results); err != nil {
		return err
	}
	if !slices.ContainsFunc(results, render.IsOfFailed) { // what is published of failed units stays
		if err := checkEmpty(spec.Gates, objects, describeEmpty(spec.Build)); err != nil {
			return err
		}
	}
	return checkSecrets(spec.Publish, objects)
}

// describeEmpty names the field of a build without objects.
func describeEmpty(build v1alpha1.Build) string {
	switch {
	case build.Helm != nil:
		return "spec.build.helm: the chart renders no object with these values"
	case build.Flux != nil:
		return "spec.build.flux: the Kustomizations of the cluster have no object"
	case build.Path == "":
		return "spec.build: the source has no manifest; name the directory with manifests in path"
	}
	return fmt.Sprintf("spec.build.path: %s has no manifest", build.Path)
}

// CheckFindings checks the severity of findings. The error is a *GateError.
func CheckFindings(gates v1alpha1.Gates, results result.Results) error {
	return checkResults(gates, results)
}

// WithoutKnown returns the findings that are not among the known ones: the same rule may find something in an object
// and in its change.
func WithoutKnown(found, known result.Results) result.Results {
	return slices.DeleteFunc(found, func(one result.Result) bool {
		return slices.ContainsFunc(known, func(other result.Result) bool { return isSameFinding(one, other) })
	})
}

func isSameFinding(a, b result.Result) bool {
	sameObject := a.ResourceRef == nil && b.ResourceRef == nil ||
		a.ResourceRef != nil && b.ResourceRef != nil && *a.ResourceRef == *b.ResourceRef
	sameField := a.Field == nil && b.Field == nil || a.Field != nil && b.Field != nil && a.Field.Path == b.Field.Path
	return sameObject && sameField && a.Message == b.Message && a.Tags[result.TagCode] == b.Tags[result.TagCode]
}

// checkResults closes the gate where a finding is as severe as the pipeline's threshold.
func checkResults(gates v1alpha1.Gates, results result.Results) error {
	stops := map[result.Severity]bool{result.Error: gates.Severity != v1alpha1.GateNever,
		result.Warning: gates.Severity == v1alpha1.GateWarning}
	var first *result.Result
	count := 0
	for i := range results {
		if stops[results[i].Severity] && !render.IsOfFailed(results[i]) { // of what fails, nothing new is published
			if count++; first == nil || first.Severity != result.Error && results[i].Severity == result.Error {
				first = &results[i]
			}
		}
	}
	if first == nil {
		return nil
	}
	text := first.String()
	if count > 1 {
		text = fmt.Sprintf("%s (and %d more)", text, count-1)
	}
	return &GateError{"severity", text}
}
