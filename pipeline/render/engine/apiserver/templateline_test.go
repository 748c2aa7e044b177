// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import "testing"

// TestLineOfField reads a template with actions between and around the keys.
func TestLineOfField(t *testing.T) {
	t.Parallel()
	lines := readTemplateLines(`metadata:
  labels:
    security.istio.io/tlsMode: {{ index .ObjectMeta.Labels ` + "`security.istio.io/tlsMode`" + ` | default "istio" | quote }}
spec:
  {{- if .NativeSidecars }}
  initContainers:
  {{- else }}
  containers:
  {{- end }}
  - name: istio-proxy
  {{- if contains "/" .Values.image }}
    image: "{{ .Values.image }}"
  {{- end }}
    ports:
    - containerPort: 15090
      protocol: TCP
      name: http-envoy-prom
    env:
    - name: POD_NAME
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
    - {name: "CA_ADDR", value: {{ .Values.address }}}
    resources:
  {{ template "resources" . }}
    volumeMounts:
    - name: data
      mountPath: /var/lib/istio/data
  - name: {{ ternary "istio-validation" "istio-init" .Values.cni }}
    image: a
  volumes:
  - emptyDir: {}
    name: data
`)
	for field, want := range map[string]int{
		`metadata.labels["security.istio.io/tlsMode"]`:                            3,
		"spec.containers[istio-proxy].image":                                      12,
		"spec.initContainers[istio-proxy].image":                                  12,
		"spec.initContainers[istio-proxy].ports[15090/TCP].name":                  17,
		"spec.initContainers[istio-proxy].env[POD_NAME].valueFrom.fieldRef":       21,
		"spec.initContainers[istio-proxy].env[POD_NAME].valueFrom.fieldRef.path":  21,
		"spec.initContainers[istio-proxy].resources.limits.cpu":                   24,
		"spec.initContainers[istio-proxy].volumeMounts[/var/lib/istio/data].name": 27,
		"spec.initContainers[istio-proxy].env[CA_ADDR].value":                     23,
		"spec.initContainers[istio-init].image":                                   30,
		"spec.volumes[data].emptyDir":                                             32,
	} {
		if got, _ := lineOfField(lines, field); got != want {
			t.Errorf("%s: line %d, want %d", field, got, want)
		}
	}
	if _, depth := lineOfField(lines, "spec.nodeSelector.zone"); depth >= leastTemplateDepth {
		t.Errorf("a field that the template does not set is at depth %d", depth)
	}
}
