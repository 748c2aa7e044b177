// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// Marshal writes the policy as a YAML document with the comment at its head. It reads the result back, as any
// consumer of the policy will, and returns an error if that is not the same policy.
func Marshal(policy *v1alpha1.InjectionPolicy, comment string) ([]byte, error) {
	text, err := v1alpha1.Marshal(policy)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for line := range strings.Lines(comment) {
		out.WriteString("# " + strings.TrimRight(line, "\n") + "\n")
	}
	out.Write(text)
	back, err := v1alpha1.Parse(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("reading the policy %s back: %w", policy.Metadata.Name, err)
	}
	want := *policy
	if policy.Spec.Istio != nil {
		istio := *policy.Spec.Istio
		want.Spec.Istio = &istio
	}
	want.SetDefaults()
	if !reflect.DeepEqual(&want, back) {
		return nil, fmt.Errorf("reading the policy %s back: it differs from what was written; please report this with the input", policy.Metadata.Name)
	}
	return out.Bytes(), nil
}
