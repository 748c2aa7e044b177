// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/podmap"
)

// objectAnnotations are the annotations that Istio's templates read as JSON objects, with an example of each.
var objectAnnotations = []struct{ name, example string }{
	{"sidecar.istio.io/userVolume", `{"NAME": {"configMap": {"name": "filters"}}}`},
	{"sidecar.istio.io/userVolumeMount", `{"NAME": {"mountPath": "/etc/filters"}}`},
}

// blameAnnotation attributes a template error to the pod's annotation that the template cannot read, if one exists.
func blameAnnotation(p *pod, err error) error {
	if !errors.As(err, new(*gotemplate.Error)) {
		return err
	}
	for _, a := range objectAnnotations {
		text, ok := p.annotation(a.name)
		if !ok {
			continue
		}
		var v any
		wrong := "it is not a JSON object by name"
		if invalid := json.Unmarshal([]byte(text), &v); invalid != nil {
			wrong = "it is not valid JSON: " + invalid.Error()
		}
		if _, isObject := v.(map[string]any); isObject {
			if wrong = notObjects(v); wrong == "" {
				continue
			}
		}
		return &podmap.FieldError{Field: "metadata.annotations[" + a.name + "]", Err: fmt.Errorf("%s; write an object such as %s", wrong, a.example)}
	}
	return err
}

// notObjects names the value of a map that is not an object, or returns "" if all are.
func notObjects(v any) string {
	m, _ := v.(map[string]any)
	for _, name := range podmap.SortedKeys(m) {
		if _, ok := m[name].(map[string]any); !ok {
			return fmt.Sprintf("%q in it is not an object", name)
		}
	}
	return ""
}
