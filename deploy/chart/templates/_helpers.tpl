{{- /*
SPDX-FileCopyrightText: The Prerig Authors
SPDX-License-Identifier: Apache-2.0
*/ -}}
{{- define "prerig.selector" -}}
app.kubernetes.io/name: {{ .Release.Name | quote }}
{{- end }}
{{- define "prerig.labels" -}}
{{ include "prerig.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
{{- define "prerig.metadata" -}}
name: {{ .Release.Name | quote }}
namespace: {{ .Release.Namespace | quote }}
labels:
  {{- include "prerig.labels" . | nindent 2 }}
{{- end }}
{{- define "prerig.port" -}}
{{ regexFind "[0-9]+$" . | required (printf "the address %q in config must end with the number of a port" .) }}
{{- end }}
