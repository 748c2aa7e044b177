// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// answer is what a kube-apiserver 1.36.3 said of one object in one namespace. The answers of testdata/admission are recorded by
// TestPolicies of fn/internal/cluster with -update.
type answer struct {
	// Refused is the message of the refusal by a policy or Pod Security; empty where it was taken.
	Refused string `json:"refused,omitempty"`
	// Warnings are those of policies and Pod Security.
	Warnings []string `json:"warnings,omitempty"`
}

// TestAnswersOfTheServer holds the findings against the recorded answers: the same verdict with the same message, for each object in each
// namespace of its file.
func TestAnswersOfTheServer(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/admission/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(strings.TrimSuffix(name, ".yaml") + ".answers.json")
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]answer
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			compared := 0
			for key, got := range gateAnswers(t, name) {
				recorded, ok := want[key]
				if !ok {
					continue // something else than admission refused it
				}
				compared++
				if slices.Contains(got.refusals, recorded.Refused) { // the server says one of several
					got.Refused = recorded.Refused
				}
				if d := cmp.Diff(recorded, got.answer); d != "" {
					t.Errorf("%s (-server +gate):\n%s", key, d)
				}
			}
			if compared < len(want) || compared == 0 {
				t.Errorf("compared %d of %d answers", compared, len(want))
			}
		})
	}
}

type gateAnswer struct {
	answer
	refusals []string
}

// gateAnswers are the findings about each object, in the form of the server's answers.
func gateAnswers(t *testing.T, name string) map[string]gateAnswer {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var catalog, objects []gate.Object
	var namespaces []string
	for _, o := range readObjects(t, name, text) {
		ref := o.Ref()
		switch {
		case ref.Kind == "Namespace":
			namespaces = append(namespaces, ref.Name)
			fallthrough
		case strings.HasPrefix(ref.APIVersion, "admissionregistration.k8s.io/"), ref.Namespace != "":
			catalog = append(catalog, o)
		default:
			objects = append(objects, o)
		}
	}
	out := map[string]gateAnswer{}
	for _, namespace := range namespaces {
		placed := make([]gate.Object, len(objects))
		for i, o := range objects {
			value := storedCopy(o.Value)
			value["metadata"].(map[string]any)["namespace"] = namespace
			placed[i] = gate.Object{Value: value, File: &result.File{Path: name, Index: i}}
		}
		found, err := Check(t.Context(), placed, gate.Options{KubernetesVersion: "1.36", SkipSchemas: true, Catalog: catalog})
		if err != nil {
			t.Fatal(err)
		}
		answers := make([]gateAnswer, len(objects))
		for _, r := range found {
			if r.File != nil && !strings.HasPrefix(r.Message, "the pods of ") && r.ResourceRef.Namespace == namespace {
				answers[r.File.Index].note(r)
			}
		}
		for i, o := range objects {
			slices.Sort(answers[i].Warnings)
			if answers[i].Refused != "" {
				answers[i].Warnings = slices.DeleteFunc(answers[i].Warnings, func(w string) bool { return strings.Contains(w, "PodSecurity") })
			}
			out[namespace+"/"+o.Ref().Kind+"/"+o.Ref().Name] = answers[i]
		}
	}
	return out
}

func (a *gateAnswer) note(r result.Result) {
	switch r.Tags[result.TagCode] {
	case gate.CodePolicyDenied, gate.CodeSecurityEnforce:
		a.Refused = r.Message
		a.refusals = append(a.refusals, r.Message)
	case gate.CodePolicyWarning, gate.CodeSecurityWarn:
		a.Warnings = append(a.Warnings, r.Message)
	}
}

// TestHostilePolicyEnds has a policy that would take years without the API server's limits of cost.
func TestHostilePolicyEnds(t *testing.T) {
	t.Parallel()
	list := "[" + strings.Repeat("0,", 199) + "0]"
	nested := "true"
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		nested = list + ".all(" + name + ", " + nested + ")"
	}
	text := policyText("hostile", nested) + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	began := time.Now()
	found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text)), gate.Options{SkipSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("it took %v", took)
	}
	found = slices.DeleteFunc(found, func(r result.Result) bool { return r.Tags[result.TagCode] == gate.CodePolicyTypes })
	if len(found) != 1 || !strings.Contains(found[0].Message, "cost") {
		t.Errorf("want that the policy is out of its budget, got %d findings: %v", len(found), found)
	}
}

// policyText is a policy about ConfigMaps and Secrets, with its binding.
func policyText(name, expression string) string {
	return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + name + `}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps, secrets]}]
  validations:
  - expression: "` + expression + `"
    messageExpression: "'the value is ' + (has(object.stringData) ? object.stringData.a : has(object.data) ? string(object.data.a) : '')"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ` + name + `}
spec: {policyName: ` + name + `, validationActions: [Deny]}
`
}

// TestUserIsTold evaluates a policy that reads request.userInfo with and without a user.
func TestUserIsTold(t *testing.T) {
	t.Parallel()
	text := policyText("who", "request.userInfo.username == 'flux' && 'deployers' in request.userInfo.groups") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for user, want := range map[string]string{"": gate.CodeNotEvaluated, "somebody": gate.CodePolicyDenied, "flux": ""} {
		found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text)), gate.Options{SkipSchemas: true, User: user, Groups: []string{"deployers"}})
		if err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, r := range found {
			if code := r.Tags[result.TagCode]; code != gate.CodePolicyTypes {
				codes = append(codes, code)
			}
		}
		if got := strings.Join(codes, " "); got != want {
			t.Errorf("user %q: got %q, want %q: %v", user, got, want, found)
		}
	}
}

// TestPolicyDoesNotShowSecrets looks for the value of a Secret in what a policy says about it.
func TestPolicyDoesNotShowSecrets(t *testing.T) {
	t.Parallel()
	const canary = "8675309"
	for _, expression := range []string{"false", "int(object.data.a) == 1", "object.data[object.data.a] == ''"} {
		text := policyText("shows", expression) + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: '" + canary + "'}\n"
		found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text)), gate.Options{SkipSchemas: true})
		if err != nil {
			t.Fatal(err)
		}
		denied := slices.ContainsFunc(found, func(r result.Result) bool { return r.Tags[result.TagCode] == gate.CodePolicyDenied })
		if !denied {
			t.Errorf("%s: nothing is denied: %v", expression, found)
		}
		for _, r := range found {
			for _, secret := range []string{canary, "ODY3NTMwOQ"} {
				if strings.Contains(r.String(), secret) {
					t.Errorf("%s: the value is in %q", expression, r.String())
				}
			}
		}
	}
}

// TestUnknownNamespace says that a selector cannot be evaluated, but not where the name of the namespace decides.
func TestUnknownNamespace(t *testing.T) {
	t.Parallel()
	for selector, want := range map[string]string{
		"{matchLabels: {tier: web}}":                                                                       gate.CodeNotEvaluated,
		"{matchLabels: {kubernetes.io/metadata.name: shop}}":                                               gate.CodePolicyDenied,
		"{matchLabels: {kubernetes.io/metadata.name: other, tier: web}}":                                   "",
		"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}": gate.CodePolicyDenied,
	} {
		text := strings.Replace(policyText("where", "false"), "matchConstraints:", "matchConstraints:\n    namespaceSelector: "+selector, 1) +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n"
		found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text)), gate.Options{SkipSchemas: true})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range found {
			if code := r.Tags[result.TagCode]; code != gate.CodePolicyTypes {
				got = code
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q: %v", selector, got, want, found)
		}
	}
}

// TestPodSecurityDefault takes the level of the option where a namespace has none.
func TestPodSecurityDefault(t *testing.T) {
	t.Parallel()
	text := []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a, securityContext: {procMount: Unmasked}}], hostUsers: false}\n")
	for level, want := range map[string]int{"": 0, "privileged": 0, "baseline:v1.29": 1, "restricted": 1} {
		found, err := Check(t.Context(), readObjects(t, "a.yaml", text), gate.Options{SkipSchemas: true, PodSecurity: level})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != want {
			t.Errorf("%q: got %v, want %d findings", level, found, want)
		}
	}
	for _, level := range []string{"strict", "baseline:1.29"} {
		if _, err := Check(t.Context(), nil, gate.Options{PodSecurity: level}); err == nil {
			t.Errorf("%q: no error", level)
		}
	}
}

// TestPodSecurityOfANewerVersion has a namespace ask for checks that are newer than the server, which has its own.
func TestPodSecurityOfANewerVersion(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {hostUsers: false, securityContext: {runAsUser: 0, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, " +
		"containers: [{name: a, image: a, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}\n"
	for version, want := range map[string]int{"1.34": 1, "1.35": 0} {
		found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text)), gate.Options{SkipSchemas: true, KubernetesVersion: version, PodSecurity: "restricted:v1.35"})
		if err != nil || len(found) != want {
			t.Errorf("%s: got %v, %v, want %d findings", version, found, err, want)
		}
	}
}

// TestNoPolicyIsAskedAboutPolicies has one on everything, which itself and its binding do not comply with.
func TestNoPolicyIsAskedAboutPolicies(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer(`[v1]`, `["*"]`, `[""]`, `["*"]`, "[configmaps, secrets]", `["*"]`).Replace(policyText("any", "has(object.metadata.labels)"))
	found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")), gate.Options{SkipSchemas: true})
	if err != nil {
		t.Fatal(err)
	}
	if denied := deniedOf(found); len(denied) != 1 || !strings.Contains(denied[0].String(), "ConfigMap a") {
		t.Errorf("got %v", denied)
	}
}

// deniedOf are the findings that a policy denies something.
func deniedOf(found result.Results) result.Results {
	return slices.DeleteFunc(slices.Clone(found), func(r result.Result) bool { return r.Tags[result.TagCode] != gate.CodePolicyDenied })
}

// TestLimitRangeIsReplaced has the objects change a LimitRange of the cluster, whose defaults a policy is about.
func TestLimitRangeIsReplaced(t *testing.T) {
	t.Parallel()
	limits := func(cpu string) string {
		return "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: a, namespace: shop}\nspec: {limits: [{type: Container, default: {cpu: \"" + cpu + "\"}}]}\n"
	}
	text := strings.NewReplacer("configmaps", "pods").Replace(policyText("any", "quantity(object.spec.containers[0].resources.limits.cpu).compareTo(quantity('1')) <= 0"))
	pod := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec: {containers: [{name: a, image: a}]}\n"
	for cpu, want := range map[string]int{"2": 1, "1": 0} {
		found, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(text+limits(cpu)+pod)), gate.Options{SkipSchemas: true, Catalog: readObjects(t, "b.yaml", []byte(limits("500m")))})
		if denied := deniedOf(found); err != nil || len(denied) != want {
			t.Errorf("%s: got %v, %v, want %d", cpu, denied, err, want)
		}
	}
}

// TestPublishedObjectsAreNotLocal has an annotation say that a pod is for tools alone, which keeps nothing that is published out of a cluster.
func TestPublishedObjectsAreNotLocal(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {config.kubernetes.io/local-config: \"true\"}}\nspec: {hostNetwork: true, contaners: [], containers: [{name: a, image: a}]}\n"
	for published, want := range map[bool]int{false: 0, true: 2} {
		objects := readObjects(t, "a.yaml", []byte(text))
		found, err := Check(t.Context(), objects, gate.Options{PodSecurity: "baseline", Published: published})
		if err != nil || len(found) != want {
			t.Errorf("published %t: got %v, %v, want %d findings", published, found, err, want)
		}
		if !isLocal(objects[0].Value) {
			t.Error("the object was changed")
		}
	}
}

// FuzzPolicy evaluates expressions that anyone may write: whatever they are, the check ends with findings.
func FuzzPolicy(f *testing.F) {
	for _, expression := range []string{"object.spec.replicas > 3", "variables.a", "object[?'a'].b", "request", "[1].map(x, object)", "a.b.c", "object.?a.orValue(1) == 1"} {
		f.Add(expression)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		text, err := json.Marshal(expression)
		if err != nil {
			t.Skip()
		}
		file := strings.Replace(policyText("any", "EXPRESSION"), `"EXPRESSION"`, string(text), 1) + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
		if _, err := manifest.Parse("a.yaml", []byte(file)); err != nil {
			t.Skip()
		}
		if _, err := Check(t.Context(), readObjects(t, "a.yaml", []byte(file)), gate.Options{SkipSchemas: true}); err != nil {
			t.Fatal(err)
		}
	})
}
