// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/render"
)

// TestDuplicateKeysBeforeAnApplyConfiguration has one policy add a volume twice, and a later one apply a configuration: API
// servers before 1.35 cannot convert such an object.
func TestDuplicateKeysBeforeAnApplyConfiguration(t *testing.T) {
	t.Parallel()
	volume := `JSONPatch{op: "add", path: "/spec/volumes/-", value: Object.spec.volumes{name: "data", emptyDir: Object.spec.volumes.emptyDir{}}}`
	pod := strings.Replace(plainPod, "spec: {", "spec: {volumes: [{name: data, emptyDir: {}}], ", 1)
	apply := strings.NewReplacer("JSONPatch", "ApplyConfiguration", "jsonPatch", "applyConfiguration").
		Replace(mutating("b", "", `Object{metadata: Object.metadata{labels: {"b": "1"}}}`))
	for version, want := range map[string]string{
		"1.34": `policy 'b' with binding 'b' denied request: error applying patch: failed to convert original object to typed object: ` +
			`.spec.volumes: duplicate entries for key [name="data"]`,
		"1.35": "",
	} {
		request := &render.AdmitRequest{Catalog: documentsOf(t, "cluster.yaml", mutating("a", "  reinvocationPolicy: Never", "["+volume+"]")+apply)}
		request.Options.KubernetesVersion = version
		request.Groups = []render.AdmitGroup{{Documents: documentsOf(t, "k8s.yaml", pod)}}
		admitted, err := Admit(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if got := admitted.Pods[0].Rejected; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
}
