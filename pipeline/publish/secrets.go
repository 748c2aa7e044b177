// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

// checkSecrets refuses Secrets that everybody who can read the result could read, but for where all entries of spec.publish allow
// or encrypt them.
func checkSecrets(places []v1alpha1.Publish, objects []render.Object) error {
	refuses := slices.IndexFunc(places, func(p v1alpha1.Publish) bool {
		return p.Secrets != v1alpha1.SecretsAllow && p.Secrets != v1alpha1.SecretsEncrypt
	})
	if refuses < 0 {
		return nil
	}
	var first *render.Object
	count := 0
	for i := range objects {
		if hasReadableValues(objects[i]) {
			if count++; first == nil {
				first = &objects[i]
			}
		}
	}
	if first == nil {
		return nil
	}
	more := ""
	if count > 1 {
		more = fmt.Sprintf(" (and %d more)", count-1)
	}
	return &GateError{"secrets", fmt.Sprintf("%s%s has values that can be read: keep them out of Git with External Secrets, Sealed Secrets or SOPS, "+
		"or set spec.publish[%d].secrets to Encrypt, or to Allow if all who can read %s may know them", first.ID(), more, refuses, places[refuses].Description())}
}

// secretValues are the fields of a Secret that hold what is secret, and the mark that SOPS leaves of its own.
type secretValues struct {
	Data       map[string]any `json:"data"`
	StringData map[string]any `json:"stringData"`
	SOPS       map[string]any `json:"sops"`
}

// hasReadableValues reports whether an object is a Secret with a value that is neither empty nor encrypted by SOPS. One that cannot be
// decoded counts as one.
func hasReadableValues(object render.Object) bool {
	if object.APIVersion != "v1" || object.Kind != "Secret" {
		return false
	}
	var secret secretValues
	if err := yaml.Unmarshal(object.YAML, &secret); err != nil {
		return true
	}
	for _, values := range []map[string]any{secret.Data, secret.StringData} {
		for _, value := range values {
			text, isText := value.(string)
			encrypted := len(secret.SOPS) > 0 && strings.HasPrefix(text, "ENC[") && strings.HasSuffix(text, "]")
			if value != nil && !encrypted && (!isText || text != "") {
				return true
			}
		}
	}
	return false
}
