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
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | quote }}
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
{{- /* Where the page is, "" where it is off. Without a word about it, it is where the daemon has it by default. */ -}}
{{- define "prerig.admin" -}}
{{- $admin := .Values.config.admin | default dict }}
{{- if hasKey $admin "listen" }}{{ $admin.listen }}{{ else }}127.0.0.1:8081{{ end }}
{{- end }}
{{- define "prerig.image" -}}
{{ printf "%s:%s%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) (.Values.image.digest | empty | ternary "" (print "@" .Values.image.digest)) }}
{{- end }}
{{- define "prerig.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65534
runAsGroup: 65534
fsGroup: 65534
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "prerig.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
{{- define "prerig.configVolume" -}}
- name: config
  projected:
    sources:
    - configMap: {name: {{ .Release.Name | quote }}}
    {{- with .Values.files }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
