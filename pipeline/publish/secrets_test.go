// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

// sealedDotenv is a dotenv file that SOPS has encrypted.
const sealedDotenv = "A=ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]\nsops_mac=ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]\nsops_version=3.9.0\n"

// sealedEnvs are the values that kustomize makes of such a file with envs, and a further one.
func sealedEnvs(key, value string) string {
	text := "data:\n"
	for line := range strings.Lines(sealedDotenv + key + "=" + value + "\n") {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		text += "  " + key + ": " + base64.StdEncoding.EncodeToString([]byte(value)) + "\n"
	}
	return text
}

func TestSecretsThatCanBeRead(t *testing.T) {
	refuse := v1alpha1.Publish{Git: &v1alpha1.GitPublish{Branch: "rendered"}, Secrets: v1alpha1.SecretsRefuse}
	allow := v1alpha1.Publish{OCI: &v1alpha1.OCIPublish{URL: "oci://example.com/a"}, Secrets: v1alpha1.SecretsAllow}
	for name, test := range map[string]struct {
		kind, text string
		places     []v1alpha1.Publish
		refused    bool
	}{
		"data":                    {"Secret", "data: {password: aHVudGVyMg==}", []v1alpha1.Publish{refuse}, true},
		"stringData":              {"Secret", "stringData: {password: hunter2}", []v1alpha1.Publish{refuse}, true},
		"a number":                {"Secret", "stringData: {password: 1234}", []v1alpha1.Publish{refuse}, true},
		"allowed":                 {"Secret", "stringData: {password: hunter2}", []v1alpha1.Publish{allow}, false},
		"allowed at one of two":   {"Secret", "stringData: {password: hunter2}", []v1alpha1.Publish{allow, refuse}, true},
		"published nowhere":       {"Secret", "stringData: {password: hunter2}", nil, false},
		"a ConfigMap":             {"ConfigMap", "data: {password: hunter2}", []v1alpha1.Publish{refuse}, false},
		"no values":               {"Secret", "type: kubernetes.io/service-account-token", []v1alpha1.Publish{refuse}, false},
		"empty values":            {"Secret", "data: {a: '', b: null}", []v1alpha1.Publish{refuse}, false},
		"encrypted":               {"Secret", "data: {a: 'ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]'}\nsops: {mac: x}", []v1alpha1.Publish{refuse}, false},
		"one is not encrypted":    {"Secret", "data: {a: 'ENC[AES256_GCM,data:x]', b: Yg==}\nsops: {mac: x}", []v1alpha1.Publish{refuse}, true},
		"only looks encrypted":    {"Secret", "stringData: {a: 'ENC[AES256_GCM,data:x]'}", []v1alpha1.Publish{refuse}, true},
		"a file of SOPS":          {"Secret", "data: {.env: " + base64.StdEncoding.EncodeToString([]byte(sealedDotenv)) + ", b: ''}", []v1alpha1.Publish{refuse}, false},
		"a file among others":     {"Secret", "data: {.env: " + base64.StdEncoding.EncodeToString([]byte(sealedDotenv)) + ", b: aHVudGVyMg==}", []v1alpha1.Publish{refuse}, true},
		"as stringData":           {"Secret", "stringData: {.env: " + strconv.Quote(sealedDotenv) + "}", []v1alpha1.Publish{refuse}, false},
		"envs of SOPS":            {"Secret", sealedEnvs("B", "ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]"), []v1alpha1.Publish{refuse}, false},
		"one env can be read":     {"Secret", sealedEnvs("B", "hunter2"), []v1alpha1.Publish{refuse}, true},
		"an env called sops_":     {"Secret", sealedEnvs("sops_password", "hunter2"), []v1alpha1.Publish{refuse}, true},
		"data that is no mapping": {"Secret", "data: [hunter2]", []v1alpha1.Publish{refuse}, true},
	} {
		t.Run(name, func(t *testing.T) {
			object := render.Object{APIVersion: "v1", Kind: test.kind, Namespace: "shop", Name: "db", YAML: []byte("kind: " + test.kind + "\n" + test.text + "\n")}
			err := publish.CheckGates(v1alpha1.RenderPipelineSpec{Publish: test.places}, nil, []render.Object{object, object})
			gate := (*publish.GateError)(nil)
			if errors.As(err, &gate) != test.refused {
				t.Fatalf("it says: %v", err)
			}
			if !test.refused {
				return
			}
			for _, want := range []string{"v1 Secret shop/db (and 1 more)", ".secrets to Encrypt", "branch rendered"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("it does not say %q: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("it says too much: %v", err)
			}
		})
	}
}
