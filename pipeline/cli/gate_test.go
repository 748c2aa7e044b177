// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"
	"unicode/utf16"
)

// deniesAll is a policy with its binding that denies every ConfigMap.
const deniesAll = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: none}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations: [{expression: "false", message: never}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: none}
spec: {policyName: none, validationActions: [Deny]}
`

// arrangeCatalog writes files, and a ConfigMap in k8s.
func arrangeCatalog(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	must(t, os.MkdirAll("cluster", 0o755))
	must(t, os.Mkdir("k8s", 0o755))
	must(t, os.WriteFile("k8s/web.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {a: b}\n"), 0o644))
	for name, text := range files {
		must(t, os.WriteFile(name, []byte(text), 0o644))
	}
}

// asUTF16 is a text as some shells write it.
func asUTF16(text string) string {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return string(out)
}

// A gate without a policy that the cluster has would let pass what the cluster refuses.
func TestGateRefusesCatalogsThatItCannotRead(t *testing.T) {
	template := strings.Replace(deniesAll, "name: none", "name: {{ .Values.name }}", -1)
	for name, c := range map[string]struct{ text, want string }{
		"binary":   {deniesAll + "\x00\xff\x00", "cluster/one.yaml"},
		"UTF-16":   {asUTF16(deniesAll), "cluster/one.yaml"},
		"broken":   {strings.Replace(deniesAll, "spec:", "spec: [", 1), "cluster/one.yaml:"},
		"twice":    {strings.Replace(deniesAll, "spec:", "kind: ValidatingAdmissionPolicy\nspec:", 1), `found the key "kind" twice`},
		"tab":      {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n\tname: doors.example.com\n", "cluster/one.yaml:4"},
		"template": {template, "cluster/one.yaml: it is a template"},
		"values":   {"replicas: 2\n", "cluster/one.yaml: it is a file without apiVersion and kind"},
		"nothing":  {"# nothing\n", "there is no object in cluster/one.yaml"},
	} {
		for _, flag := range []string{"--policies", "--crds"} {
			t.Run(name+" "+flag, func(t *testing.T) {
				arrangeCatalog(t, map[string]string{"cluster/one.yaml": c.text})
				code, stdout, stderr := command(t, "", "gate", "--as-is", flag, "cluster/one.yaml", "k8s")
				if code != ExitError || stdout != "" {
					t.Errorf("exit code %d, %q", code, stdout)
				}
				wants(t, stderr, "error: reading "+flag+": ", c.want)
			})
		}
	}
}

func TestGateTellsOfEachFileOfACatalogThatItCannotRead(t *testing.T) {
	arrangeCatalog(t, map[string]string{
		"cluster/a.yaml": deniesAll, "cluster/b.yaml": deniesAll + "\x00", "cluster/c.yaml": strings.Replace(deniesAll, "spec:", "spec: [", 1),
	})
	code, stdout, stderr := command(t, "", "gate", "--as-is", "--policies", "cluster", "k8s")
	if code != ExitError || stdout != "" {
		t.Errorf("exit code %d, %q", code, stdout)
	}
	wants(t, stderr, "cluster/b.yaml", "cluster/c.yaml")
}

func TestGateTellsWhatItPassesOverInACatalog(t *testing.T) {
	template := strings.Replace(deniesAll, "name: none", "name: {{ .Values.name }}", -1)
	arrangeCatalog(t, map[string]string{"cluster/a.yaml": deniesAll, "cluster/b.yaml": template})
	code, stdout, stderr := command(t, "", "gate", "--as-is", "--policies", "cluster", "k8s")
	if code != ExitFindings {
		t.Errorf("exit code %d", code)
	}
	wants(t, stdout, "policy-denied")
	wants(t, stderr, "info: --policies: 1 template (cluster/b.yaml) was skipped; ")

	must(t, os.Remove("cluster/a.yaml"))
	code, _, stderr = command(t, "", "gate", "--as-is", "--policies", "cluster", "k8s")
	if code != ExitError {
		t.Errorf("exit code %d", code)
	}
	wants(t, stderr, "1 template (cluster/b.yaml) was skipped", "error: reading --policies: there is no object in cluster")
}

// A cluster may well have no object of a kind, and kubectl says so with an empty list.
func TestGateReadsCatalogsFromStandardInput(t *testing.T) {
	arrangeCatalog(t, nil)
	const none = "apiVersion: v1\nkind: List\nitems: []\n"
	for text, want := range map[string]int{deniesAll: ExitFindings, none: ExitOK, "": ExitError} {
		if code, _, stderr := command(t, text, "gate", "--as-is", "--policies", "-", "k8s"); code != want {
			t.Errorf("exit code %d in the place of %d\n%s", code, want, stderr)
		}
	}
}

// TestGateHoldsInjectedPodsAgainstLimitsOfTheCatalog names a LimitRange and a ResourceQuota that the cluster has.
func TestGateHoldsInjectedPodsAgainstLimitsOfTheCatalog(t *testing.T) {
	arrangeCatalog(t, map[string]string{
		"cluster/limits.yaml": "apiVersion: v1\nkind: LimitRange\nmetadata: {name: small, namespace: shop}\nspec: {limits: [{type: Container, max: {cpu: 50m}}]}\n",
		"k8s/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec:\n  containers:\n" +
			"  - {name: web, image: nginx, resources: {requests: {cpu: 10m}, limits: {cpu: 20m}}}\n",
	})
	code, stdout, _ := command(t, "", "gate", "-p", "istio", "--policies", "cluster", "k8s")
	if code != ExitFindings {
		t.Errorf("exit code %d", code)
	}
	wants(t, stdout, "error: k8s/pod.yaml:", "[PR407]", "above 50m of LimitRange shop/small")
}
