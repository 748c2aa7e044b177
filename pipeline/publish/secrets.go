// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/secret/sops"
)

// checkSecrets refuses Secrets that everybody who can read the result could read, but for where all entries of
// spec.publish allow or encrypt them.
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
		"or set spec.publish[%d].secrets to Encrypt, or to Allow if all who can read %s may know them", first.ID(),
		more, refuses, places[refuses].Description())}
}

// secretValues are the fields of a Secret that hold what is secret, and the mark that SOPS leaves of its own.
type secretValues struct {
	Data       map[string]any `json:"data"`
	StringData map[string]any `json:"stringData"`
	SOPS       map[string]any `json:"sops"`
}

// hasReadableValues reports whether an object is a Secret with a value that is neither empty nor encrypted by SOPS:
// with the object, or before it was made a value, as kustomize's secretGenerator does. One that cannot be decoded
// counts as one.
func hasReadableValues(object render.Object) bool {
	if object.APIVersion != "v1" || object.Kind != "Secret" {
		return false
	}
	var secret secretValues
	if err := yaml.Unmarshal(object.YAML, &secret); err != nil {
		return true
	}
	if len(secret.SOPS) > 0 {
		return !allTexts(secret.Data, isSealedWithObject) || !allTexts(secret.StringData, isSealedWithObject)
	}
	values := map[string]string{}
	isText := allTexts(secret.StringData, func(string) bool { return true }) && allTexts(secret.Data, func(text string) bool {
		_, err := base64.StdEncoding.DecodeString(text)
		return err == nil
	})
	for key, value := range secret.Data {
		text, _ := value.(string)
		content, _ := base64.StdEncoding.DecodeString(text)
		values[key] = string(content)
	}
	for key, value := range secret.StringData {
		values[key], _ = value.(string)
	}
	return !isText || !sops.IsEncryptedSet(values) && !allFiles(values)
}

// allFiles reports whether all values but empty ones are files that SOPS has encrypted.
func allFiles(values map[string]string) bool {
	for _, content := range values {
		if content != "" && !sops.IsEncryptedFile(content) {
			return false
		}
	}
	return true
}

// isSealedWithObject reports whether a text is a value that SOPS has encrypted in its object.
func isSealedWithObject(text string) bool {
	return strings.HasPrefix(text, "ENC[") && strings.HasSuffix(text, "]")
}

// allTexts reports whether all values but empty ones are texts of which something holds.
func allTexts(values map[string]any, holds func(text string) bool) bool {
	for _, value := range values {
		text, isText := value.(string)
		if value != nil && (!isText || text != "" && !holds(text)) {
			return false
		}
	}
	return true
}
