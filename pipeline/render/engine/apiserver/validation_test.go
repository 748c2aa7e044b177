// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/render/gate/validation"
)

// answers is a validator that gives the problems of objects by their names, as prerig-validate gives them.
type answers struct {
	create, apply map[string][]validation.Problem
}

func (a *answers) Ask(_ context.Context, requests []validation.Request) ([]validation.Answer, error) {
	var out []validation.Answer
	for _, r := range requests {
		metadata, _ := r.Object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		problems := a.create
		if r.Operation == validation.Apply {
			problems = a.apply
		}
		out = append(out, validation.Answer{Known: true, Problems: problems[name]})
	}
	return out, nil
}

// checkValidated checks objects with the answers of a validator.
func checkValidated(t *testing.T, objects []gate.Object, validator gate.Validator) (result.Results, error) {
	t.Helper()
	validated, err := gate.Validate(t.Context(), objects, validator)
	if err != nil {
		t.Fatal(err)
	}
	return Check(t.Context(), objects, gate.Options{Validated: validated})
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: other}}
    spec:
      containers:
      - name: web
        image: nginx
        ports: [{name: UPPER, containerPort: 80}]
`

var mismatch = validation.Problem{
	Field: "spec.template.metadata.labels", Type: "FieldValueInvalid",
	Message: `Invalid value: {"app":"other"}: ` + "`selector` does not match template `labels`",
}

func TestValidationFindsWhatSchemasCannot(t *testing.T) {
	t.Parallel()
	validator := &answers{
		create: map[string][]validation.Problem{"web": {mismatch}},
		apply:  map[string][]validation.Problem{"web": {{Field: `spec.template.spec.containers[name="web"].ports`, Type: validation.TypeDuplicate, Message: "duplicate entries"}}},
	}
	found, err := checkValidated(t, readObjects(t, "a.yaml", []byte(deployment)), validator)
	if err != nil {
		t.Fatal(err)
	}
	compareFindings(t, found, []string{
		"7 validation-invalid: spec.template.metadata.labels: Invalid value", "9 validation-apply: spec.template.spec.containers: duplicate entries; server-side apply",
	})
}

func TestValidationRepeatsNothing(t *testing.T) {
	t.Parallel()
	text := strings.Replace(deployment, "  selector: {matchLabels: {app: web}}\n", "", 1)
	text = strings.Replace(text, "name: web}", "name: We_b}", 1)
	validator := &answers{create: map[string][]validation.Problem{"We_b": {
		{Field: "spec.selector", Type: validation.TypeRequired, Message: "Required value"},
		{Field: "metadata.name", Type: "FieldValueInvalid", Message: `Invalid value: "We_b": a lowercase RFC 1123 subdomain must consist of`},
	}}}
	found, err := checkValidated(t, readObjects(t, "a.yaml", []byte(text)), validator)
	if err != nil {
		t.Fatal(err)
	}
	compareFindings(t, found, []string{"3 schema-metadata: metadata.name: ", "4 schema-required: spec.selector"})
}

// What a schema finds about a type is the reason for which nothing else can be decoded.
func TestValidationLeavesTypesToSchemas(t *testing.T) {
	t.Parallel()
	text := strings.Replace(deployment, "containerPort: 80", `containerPort: "80"`, 1)
	validator := &answers{create: map[string][]validation.Problem{"web": {{Type: validation.TypeUndecodable, Message: "json: cannot unmarshal"}}}}
	found, err := checkValidated(t, readObjects(t, "a.yaml", []byte(text)), validator)
	if err != nil {
		t.Fatal(err)
	}
	compareFindings(t, found, []string{"12 schema-wrong-type: ports[0].containerPort"})
	found, err = checkValidated(t, readObjects(t, "a.yaml", []byte(deployment)), validator)
	if err != nil {
		t.Fatal(err)
	}
	compareFindings(t, found, []string{"1 validation-invalid: : json: cannot unmarshal"})
}

func TestValidationPassesOverPlaceholders(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"${PORT_NAME}", "$(PORT)", "a-${x:=b}"} {
		text := strings.Replace(deployment, "UPPER", `"`+value+`"`, 1)
		validator := &answers{create: map[string][]validation.Problem{"web": {{
			Field: "spec.template.spec.containers[0].ports[0].name", Type: "FieldValueInvalid", Message: "Invalid value",
		}}}}
		found, err := checkValidated(t, readObjects(t, "a.yaml", []byte(text)), validator)
		if err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v", value, found, err)
		}
	}
}

// TestValidationPassesOverLabelsOfPlaceholderNames: the API server makes labels from names, and kustomize fills in the name of a Namespace.
func TestValidationPassesOverLabelsOfPlaceholderNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"_": 0, "${APP}": 0, "Shop": 1} {
		problem := validation.Problem{Field: "metadata.labels", Type: "FieldValueInvalid", Message: "Invalid value: " + strconv.Quote(name) + ": a valid label"}
		text := "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"" + name + "\"}\n"
		found, err := checkValidated(t, readObjects(t, "a.yaml", []byte(text)), &answers{create: map[string][]validation.Problem{name: {problem}}})
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(linesOfFindings(found), gate.CodeInvalid); n != want {
			t.Errorf("%s: %d findings about the label: %v", name, n, found)
		}
	}
}

// TestValidationNeedsNoServer: what needs a server to be decided is no problem of the object.
func TestValidationNeedsNoServer(t *testing.T) {
	t.Parallel()
	problem := validation.Problem{Field: "spec", Type: "FieldValueForbidden", Message: "Forbidden: unexpected internal error: resourceResolver is nil"}
	found, err := checkValidated(t, readObjects(t, "a.yaml", []byte(strings.Replace(deployment, "UPPER", "http", 1))),
		&answers{create: map[string][]validation.Problem{"web": {problem}}})
	if err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// A problem that the file had before the injection is not the injection's.
func TestValidationTellsWhatTheInjectionCauses(t *testing.T) {
	t.Parallel()
	written := parseOne(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: before}\nspec:\n  containers:\n  - name: web\n    image: nginx\n    volumeMounts: [{name: x, mountPath: /x}]\n")
	injected := parseOne(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: after}\nspec:\n  containers:\n  - name: proxy\n    image: proxy\n    volumeMounts: [{name: proxy-data, mountPath: /y}]\n"+
		"  - name: web\n    image: nginx\n    volumeMounts: [{name: x, mountPath: /x}]\n")
	objects, err := gate.ReadDocument(injected, written, "a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	notFound := func(at, volume string) validation.Problem {
		return validation.Problem{Field: "spec.containers[" + at + "].volumeMounts[0].name", Type: "FieldValueNotFound", Message: `Not found: "` + volume + `"`}
	}
	validator := &answers{create: map[string][]validation.Problem{"before": {notFound("0", "x")}, "after": {notFound("0", "proxy-data"), notFound("1", "x")}}}
	found, err := checkValidated(t, objects, validator)
	if err != nil {
		t.Fatal(err)
	}
	compareFindings(t, found, []string{
		`5 validation-invalid: containers[0].volumeMounts[0].name: Not found: "proxy-data" (only after the injection)`,
		`8 validation-invalid: containers[1].volumeMounts[0].name: Not found: "x"`,
	})
	for _, r := range found {
		if strings.Contains(r.Message, `"x" (only`) {
			t.Errorf("the injection is blamed: %s", r.Message)
		}
	}
}

// TestValidationOfASelectorThatNeverMatched: the injection adds labels, which the API server's message lists.
func TestValidationOfASelectorThatNeverMatched(t *testing.T) {
	t.Parallel()
	written := parseOne(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: before}\nspec:\n  template:\n    metadata:\n      labels: {app: wbe}\n")
	injected := parseOne(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: after}\nspec:\n  template:\n    metadata:\n      labels: {app: wbe, x: y}\n")
	objects, err := gate.ReadDocument(injected, written, "a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	differs := func(labels string) []validation.Problem {
		return []validation.Problem{{Field: "spec.template.metadata.labels", Type: "FieldValueInvalid", Message: "Invalid value: " + labels +
			": `selector` does not match template `labels`"}}
	}
	validator := &answers{create: map[string][]validation.Problem{"before": differs(`{"app":"wbe"}`), "after": differs(`{"app":"wbe","x":"y"}`)}}
	found, err := checkValidated(t, objects, validator)
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, r := range found {
		if strings.Contains(r.Message, "only after the injection") {
			t.Errorf("the injection is blamed: %s", r.Message)
		}
	}
}

func TestValidationKeepsSecrets(t *testing.T) {
	t.Parallel()
	const canary = "8675309"
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ntype: kubernetes.io/dockerconfigjson\nstringData: {b: " + `"` + canary + `"` + "}\n"
	validator := &answers{create: map[string][]validation.Problem{"a": {
		{Field: "data[b]", Type: "FieldValueInvalid", Message: `Invalid value: "` + canary + `\" more": is wrong`},
		{Field: "data[c]", Type: "FieldValueInvalid", Message: `Invalid value: {"x":"` + canary + `"}: is wrong`},
	}}}
	found, err := checkValidated(t, readObjects(t, "a.yaml", []byte(text)), validator)
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}
	for _, r := range found {
		if strings.Contains(r.String(), canary) {
			t.Errorf("the value is in %q", r.String())
		}
	}
}

// What the validator says of a kind that the version of Kubernetes does not have, or of files of other tools, is of no matter.
func TestValidationIsOfBuiltInKindsAlone(t *testing.T) {
	t.Parallel()
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: a}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {config.kubernetes.io/local-config: 'true'}}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	validator := &answers{create: map[string][]validation.Problem{"a": {{Field: "data", Type: "FieldValueInvalid", Message: "Invalid value"}}}}
	found, err := checkValidated(t, readObjects(t, "a.yaml", []byte(text)), validator)
	if err != nil {
		t.Fatal(err)
	}
	compareFindings(t, found, []string{"9 validation-invalid: data: Invalid value"})
}
