// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

// templatesOfUsers are installations with templates of their own, as users write them.
func templatesOfUsers() []Installation {
	return []Installation{
		newInstallation("custom-template", `
sidecarInjectorWebhook:
  defaultTemplates: [sidecar, custom]
  templates:
    custom: |
      metadata:
        labels: {custom: "{{ .Revision }}"}
        annotations: {names: '{{ range .Spec.Containers }}{{ .Name }}={{ .Image }}/{{ .ImagePullPolicy }},{{ end }}', policy: "{{ .Spec.RestartPolicy }}-{{ .Spec.DNSPolicy }}"}
      spec:
        terminationGracePeriodSeconds: 77
        containers:
        - name: istio-proxy
          resources: {$patch: replace, limits: {cpu: "9"}}
          env: [{name: OWNER, value: "{{ .TypeMeta.Kind }}/{{ .DeploymentMeta.Name }}/{{ .ObjectMeta.Namespace }}"}]
        - name: app0
          resources: {$patch: replace, limits: {cpu: "8"}}
          env: [{name: ADDED, value: "yes"}]
        volumes: [{name: from-template, emptyDir: {}}]`),
		newInstallation("custom-only", `
sidecarInjectorWebhook:
  defaultTemplates: [custom]
  templates:
    custom: |
      spec:
        initContainers:
        - {name: first, image: busybox}
        containers:
        - {name: agent, image: "{{ .ProxyImage }}", ports: [{containerPort: 99}], readinessProbe: {httpGet: {path: /, port: 99}}}
        - {name: side0, $patch: delete}
        securityContext: {fsGroup: 1337}
        dnsConfig: {searches: [a.b]}`),
		newInstallation("helpers", `
sidecarInjectorWebhook:
  defaultTemplates: [sidecar, helpers]
  templates:
    helpers: |
      metadata:
        annotations:
          a: {{ toJson .ObjectMeta.Labels | quote }}
          b: {{ toJSON .ObjectMeta.Annotations | quote }}
          c: {{ structToJSON .Spec.SecurityContext | quote }}
          d: {{ protoToJSON .MeshConfig.DefaultConfig | quote }}
          e: '{{ formatDuration .ProxyConfig.TerminationDrainDuration }}'
          f: '{{ applicationPorts .Spec.Containers }}|{{ includeInboundPorts .Spec.Containers }}'
          n: '{{ excludeInboundPort 15020 "80,81" }}{{ appendMultusNetwork "a" "b/c" }}{{ toLower "ABC" }}{{ toYaml .Values.global.proxy.resources | indent 2 | quote }}'
          g: '{{ directory "/a/b/c" }}{{ env "OWN_VARIABLE" "none" }}{{ contains "a" "abc" }}'
          h: '{{ valueOrDefault .ObjectMeta.Name "no-name" }}'
          i: '{{ (index .Spec.Containers 0).Resources.Requests.Cpu }}'
          j: {{ toYaml (index .Spec.Containers 0) | quote }}
          k: '{{ protoToJSON .ProxyConfig }}'
          l: '{{ strdict "a" "b" | toJSON }}{{ toJsonMap (strdict "x" "y") (omit .ObjectMeta.Labels "app") }}{{ isset .ObjectMeta.Annotations "note" }}'`),
		newInstallation("helpers-define", `
sidecarInjectorWebhook:
  defaultTemplates: [sidecar, helpers]
  templates:
    helpers: |
      {{- define "variable" }}{name: {{ .name }}, value: {{ .value | quote }}}{{ end }}
      {{- define "name" }}{{ .Name }}{{ $.Image }}{{ end }}
      {{- define "whole" }}{{ .Values.global.hub }}{{ $.ObjectMeta.Namespace }}{{ end }}
      {{- define "note" }}{{ template "whole" . }}{{ end }}
      metadata:
        annotations:
          a: '{{ range .Spec.Containers }}{{ template "name" . }},{{ template "whole" $ }}{{ end }}{{ block "hub" .Values.global }}{{ .hub }}/p{{ end }}'
          b: '{{ template "note" . }}{{ if .Values.gateway }}{{ .Infrastructure }}{{ $.KubeVersion }}{{ end }}'
      spec:
        containers:
        - name: istio-proxy
          env: [{{ template "variable" (dict "name" "HUB" "value" .Values.global.hub) }}]`),
		newInstallation("helpers-maps", `
sidecarInjectorWebhook:
  defaultTemplates: [sidecar, helpers]
  templates:
    helpers: |
      metadata:
        labels: {native: "{{ .NativeSidecars }}"}
        annotations:
          l: '{{ toJSON (mergeMaps .ObjectMeta.Labels (strdict "app" "z")) }}'`, sinceIstioMinor(21)),
		newInstallation("helpers-otel", `
sidecarInjectorWebhook:
  defaultTemplates: [sidecar, helpers]
  templates:
    helpers: |
      metadata:
        annotations:
          n: '{{ toYaml (omitNil .Values.global.proxy.resources) | indent 2 | quote }}'
          m: {{ otelResourceAttributes .MeshConfig .ObjectMeta.Annotations .ObjectMeta.Labels .DeploymentMeta.Namespace .Spec.Containers | quote }}`, sinceIstioMinor(30)),
		newInstallation("gateways", `{sidecarInjectorWebhook: {defaultTemplates: [gateway]}}`),
		newInstallation("grpc", `{sidecarInjectorWebhook: {defaultTemplates: [grpc-agent]}}`),
	}
}
