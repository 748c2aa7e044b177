// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// vaultCase is a pod, and settings of the injector.
type vaultCase struct {
	// annotations are the pod's; vault.hashicorp.com/ is left out. Where there is no agent-inject among them it is "true", and
	// no role, orders; "-" takes one away.
	annotations map[string]string
	// namespace of the pod; empty for shop.
	namespace string
	// spec is the pod's in YAML; empty for one container.
	spec string
	// settings are variables of the injector's Deployment without AGENT_INJECT_.
	settings map[string]string
	// difference is the row of the docs' table that says why the pod is not the one of Vault's injector.
	difference string
	// older says that the difference is that of the older injector only.
	older bool
}

// environment is that of the injector's Deployment.
func (c vaultCase) environment() map[string]string {
	env := map[string]string{
		"AGENT_INJECT_VAULT_ADDR":  "https://vault.vault.svc:8200",
		"AGENT_INJECT_VAULT_IMAGE": "hashicorp/vault:1.21.2",
	}
	for name, value := range c.settings {
		env["AGENT_INJECT_"+name] = value
	}
	return env
}

// object is the pod as a manifest.
func (c vaultCase) object(t *testing.T) map[string]any {
	t.Helper()
	annotations := map[string]any{"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/role": "orders"}
	for name, value := range c.annotations {
		annotations["vault.hashicorp.com/"+name] = value
		if value == "-" {
			delete(annotations, "vault.hashicorp.com/"+name)
		}
	}
	text := c.spec
	if text == "" {
		text = "containers: [{name: web, image: example.com/orders:7}]"
	}
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	namespace := c.namespace
	if namespace == "" {
		namespace = "shop"
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "orders-0", "namespace": namespace, "annotations": annotations, "labels": map[string]any{"app": "orders"}},
		"spec":     spec,
	}
}

// annotated returns annotations from lines "name: value".
func annotated(lines ...string) map[string]string {
	out := map[string]string{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		out[strings.TrimSuffix(name, ":")] = value
	}
	return out
}

const (
	vaultTwo = "{containers: [{name: web, securityContext: {runAsUser: 1234}}, {name: cache, volumeMounts: [{name: data, mountPath: /data}, {name: data, mountPath: /mnt, subPath: a}]}], " +
		"initContainers: [{name: migrate}, {name: warm, volumeMounts: [{name: data, mountPath: /warm, readOnly: true}]}], volumes: [{name: data, emptyDir: {}}]}"
	vaultProjected = "{automountServiceAccountToken: false, containers: [{name: web}], volumes: [{name: vault-token, projected: {sources: [{serviceAccountToken: {path: jwt, audience: vault}}]}}]}"
	vaultMounted   = "{containers: [{name: web}, {name: aux, volumeMounts: [{name: vault-token, mountPath: /tokens}]}], volumes: [{name: vault-token, projected: {sources: [{serviceAccountToken: {path: jwt}}]}}]}"
	vaultAWS       = "{containers: [{name: web, env: [{name: AWS_ROLE_ARN, value: 'arn:aws:iam::1:role/web'}, {name: AWS_REGION, value: eu-west-1}, {name: OTHER, value: x}], " +
		"volumeMounts: [{name: aws-iam-token, mountPath: /var/run/secrets/eks.amazonaws.com/serviceaccount, readOnly: true}]}], volumes: [{name: aws-iam-token, emptyDir: {}}]}"
)

// vaultCases are compared with Vault's injectors.
var vaultCases = map[string]vaultCase{
	"plain":                  {},
	"no annotation":          {annotations: annotated("agent-inject: -")},
	"inject false":           {annotations: annotated("agent-inject: false")},
	"inject empty":           {annotations: annotated("agent-inject:")},
	"inject 1":               {annotations: annotated("agent-inject: 1")},
	"inject T":               {annotations: annotated("agent-inject: T")},
	"inject yes":             {annotations: annotated("agent-inject: yes")},
	"injected":               {annotations: annotated("agent-inject-status: injected")},
	"injected and bad":       {annotations: annotated("agent-inject: yes", "agent-inject-status: injected")},
	"other status":           {annotations: annotated("agent-inject-status: update")},
	"kube-system":            {namespace: "kube-system"},
	"kube-public":            {namespace: "kube-public"},
	"kube-system unasked":    {namespace: "kube-system", annotations: annotated("agent-inject: -")},
	"no role":                {annotations: annotated("role: -")},
	"role of auth config":    {annotations: annotated("role: -", "auth-config-role: web")},
	"secret":                 {annotations: annotated("agent-inject-secret-db: database/creds/web")},
	"secret as JSON":         {annotations: annotated("agent-inject-secret-db: database/creds/web", "agent-inject-default-template: JSON")},
	"secret in capitals":     {annotations: annotated("agent-inject-secret-Db.Conf: secret/db")},
	"case kept":              {annotations: annotated("agent-inject-secret-Db: secret/db", "preserve-secret-case: true")},
	"case of one":            {annotations: annotated("agent-inject-secret-Db: secret/db", "preserve-secret-case-Db: true", "agent-inject-secret-Web: secret/web")},
	"case not of one":        {annotations: annotated("agent-inject-secret-Db: secret/db", "preserve-secret-case: true", "preserve-secret-case-Db: false")},
	"secret without a path":  {annotations: annotated("agent-inject-secret-db:", "agent-inject-secret-web: secret/web")},
	"template":               {annotations: annotated("agent-inject-secret-db: database/creds/web", "agent-inject-template-db: {{ with secret \"database/creds/web\" }}<{{ .Data.username }}>&{{ end }}")},
	"template alone":         {annotations: annotated("agent-inject-template-db: {{ key }}")},
	"template file":          {annotations: annotated("agent-inject-secret-db: database/creds/web", "agent-inject-template-file-db: /etc/db.tmpl")},
	"template file alone":    {annotations: annotated("agent-inject-template-file-db: /etc/db.tmpl")},
	"template and file":      {annotations: annotated("agent-inject-template-file-db: /etc/db.tmpl", "agent-inject-template-db: {{ key }}")},
	"secrets":                {annotations: annotated("agent-inject-secret-b: secret/b", "agent-inject-secret-a: secret/a", "agent-inject-template-c: x", "agent-inject-template-file-d: /d")},
	"file":                   {annotations: annotated("agent-inject-secret-db: secret/db", "agent-inject-file-db: sub/../db.conf")},
	"file, command and mode": {annotations: annotated("agent-inject-secret-db: secret/db", "agent-inject-file-db: conf/db", "agent-inject-command-db: pkill -HUP web", "agent-inject-perms-db: 0440", "error-on-missing-key-db: true")},
	"delimiters": {annotations: annotated("agent-inject-secret-db: secret/db", "agent-template-left-delim-db: [[", "agent-template-right-delim-db: ]]"),
		difference: "annotations younger than the injector", older: true},
	"volume path":          {annotations: annotated("agent-inject-secret-db: secret/db", "secret-volume-path: /etc/secrets")},
	"volume path of one":   {annotations: annotated("agent-inject-secret-db: secret/db", "agent-inject-secret-web: secret/web", "secret-volume-path-db: /etc/db")},
	"volume paths":         {annotations: annotated("agent-inject-secret-db: secret/db", "agent-inject-secret-web: secret/web", "secret-volume-path-db: /etc/db", "secret-volume-path-web: /etc/web"), spec: vaultTwo},
	"one path of two":      {annotations: annotated("agent-inject-secret-db: secret/db", "agent-inject-secret-web: secret/web", "secret-volume-path-db: /etc/x", "secret-volume-path-web: /etc/x")},
	"path as usual":        {annotations: annotated("agent-inject-secret-db: secret/db", "secret-volume-path-db: /vault/secrets")},
	"token":                {annotations: annotated("agent-inject-token: true", "secret-volume-path: /etc/secrets/")},
	"containers":           {spec: vaultTwo},
	"containers chosen":    {spec: vaultTwo, annotations: annotated("agent-inject-containers: cache")},
	"containers, both":     {spec: vaultTwo, annotations: annotated("agent-inject-containers: cache,web")},
	"containers, none":     {spec: vaultTwo, annotations: annotated("agent-inject-containers:")},
	"containers, space":    {spec: vaultTwo, annotations: annotated("agent-inject-containers: web, cache"), difference: "a name in `agent-inject-containers` that no container has"},
	"init first":           {spec: vaultTwo, annotations: annotated("agent-init-first: true")},
	"no init container":    {spec: vaultTwo, annotations: annotated("agent-pre-populate: false")},
	"init container only":  {spec: vaultTwo, annotations: annotated("agent-pre-populate-only: true")},
	"neither":              {spec: vaultTwo, annotations: annotated("agent-pre-populate-only: true", "agent-pre-populate: false")},
	"copied mounts":        {spec: vaultTwo, annotations: annotated("agent-copy-volume-mounts: cache")},
	"copied init mounts":   {spec: vaultTwo, annotations: annotated("agent-copy-volume-mounts: warm")},
	"copied from nobody":   {spec: vaultTwo, annotations: annotated("agent-copy-volume-mounts: nobody")},
	"config map":           {annotations: annotated("agent-configmap: agent", "role: -")},
	"config map and TLS":   {annotations: annotated("agent-configmap: agent", "tls-secret: tls", "ca-cert: /vault/tls/ca.crt", "ca-key: /ca", "client-cert: /c", "client-key: /k", "tls-skip-verify: true", "tls-server-name: vault")},
	"config map alone":     {annotations: annotated("agent-configmap: agent", "agent-pre-populate-only: true", "service:", "auth-path:", "auth-type:")},
	"TLS":                  {annotations: annotated("tls-secret: tls", "ca-cert: /vault/tls/ca.crt", "ca-key: /ca", "client-cert: /c", "client-key: /k", "tls-skip-verify: true", "tls-server-name: vault")},
	"extra secret":         {annotations: annotated("agent-extra-secret: more")},
	"client":               {annotations: annotated("client-timeout: 30", "client-max-retries: 5", "go-max-procs: 2", "log-level: debug", "log-format: json", "proxy-address: http://proxy:3128")},
	"no log level":         {annotations: annotated("log-level:", "log-format:")},
	"address":              {annotations: annotated("service: https://other:8200", "namespace: team", "agent-image: vault:7", "agent-request-namespace: other")},
	"no address":           {annotations: annotated("service:")},
	"no auth path":         {annotations: annotated("auth-path:")},
	"auth":                 {annotations: annotated("auth-type: gcp", "auth-path: auth/gcp", "role: -", "auth-config-type: iam", "auth-config-service-account: web@x", "auth-min-backoff: 2s", "auth-max-backoff: 1m", "agent-auto-auth-exit-on-err: true")},
	"own token path":       {annotations: annotated("auth-config-token-path: /jwt")},
	"wrong backoff":        {annotations: annotated("auth-min-backoff: soon")},
	"no backoff":           {annotations: annotated("auth-min-backoff:"), settings: map[string]string{"AUTH_MIN_BACKOFF": "2s"}},
	"AWS":                  {spec: vaultAWS, annotations: annotated("auth-type: aws", "auth-config-type: iam"), difference: "the app's first mount with `serviceaccount` in its path is the token of AWS"},
	"AWS region":           {annotations: annotated("auth-type: aws", "auth-config-region: eu-west-2")},
	"limits":               {annotations: annotated("agent-limits-cpu: 0.7", "agent-limits-mem: 1Gi", "agent-limits-ephemeral: 2Gi", "agent-requests-cpu: 100m", "agent-requests-mem: 1e6", "agent-requests-ephemeral: 1G")},
	"no limits":            {annotations: annotated("agent-limits-cpu:", "agent-limits-mem:", "agent-requests-cpu:", "agent-requests-mem:")},
	"no CPU limit":         {annotations: annotated("agent-limits-cpu:")},
	"limit that is none":   {annotations: annotated("agent-limits-cpu: much")},
	"user":                 {annotations: annotated("agent-run-as-user: 7", "agent-run-as-group: 8")},
	"root":                 {annotations: annotated("agent-run-as-user: 0")},
	"user empty":           {annotations: annotated("agent-run-as-user:")},
	"user that is none":    {annotations: annotated("agent-run-as-user: me")},
	"same user":            {spec: vaultTwo, annotations: annotated("agent-run-as-same-user: true")},
	"same user without":    {annotations: annotated("agent-run-as-same-user: true")},
	"same user root":       {annotations: annotated("agent-run-as-same-user: true"), spec: "containers: [{name: web, securityContext: {runAsUser: 0}}]"},
	"no security context":  {annotations: annotated("agent-set-security-context: false", "agent-run-as-user: 7")},
	"shared processes":     {annotations: annotated("agent-share-process-namespace: true")},
	"unshared processes":   {annotations: annotated("agent-share-process-namespace: false"), spec: "{shareProcessNamespace: true, containers: [{name: web}]}"},
	"share refused":        {annotations: annotated("agent-share-process-namespace: true"), spec: "{shareProcessNamespace: false, containers: [{name: web}]}"},
	"share without init":   {annotations: annotated("agent-share-process-namespace: true", "agent-pre-populate: false")},
	"revoke":               {annotations: annotated("agent-revoke-on-shutdown: true", "agent-revoke-grace: 12", "ca-cert: /ca", "client-cert: /c", "client-key: /k")},
	"revoke, grace wrong":  {annotations: annotated("agent-revoke-on-shutdown: true", "agent-revoke-grace: 5s")},
	"cache":                {annotations: annotated("agent-cache-enable: true", "agent-cache-listener-port: 8007", "agent-cache-use-auto-auth-token: force", "agent-cache-exit-on-err: true")},
	"cache without init":   {annotations: annotated("agent-cache-enable: true", "agent-pre-populate: false")},
	"cache of init":        {annotations: annotated("agent-cache-enable: true", "agent-pre-populate-only: true")},
	"quit":                 {annotations: annotated("agent-enable-quit: true")},
	"quit and cache":       {annotations: annotated("agent-enable-quit: true", "agent-cache-enable: true")},
	"templating":           {annotations: annotated("template-config-exit-on-retry-failure: false", "template-static-secret-render-interval: 30s", "template-max-connections-per-host: 50")},
	"renewal":              {annotations: annotated("template-lease-renewal-threshold: 0.75"), difference: "annotations younger than the injector", older: true},
	"connections":          {annotations: annotated("agent-disable-idle-connections: auto-auth,caching", "agent-disable-keep-alives: templating")},
	"telemetry":            {annotations: annotated("agent-telemetry-statsd-address: statsd:8125", "agent-telemetry-disable-hostname: true", "agent-telemetry-prefix-filter: [\"+vault.token\", \"-vault.expire\"]", "agent-telemetry-maximum-gauge-cardinality: 3", "agent-telemetry-prometheus-retention-time: 24h")},
	"telemetry unknown":    {annotations: annotated("agent-telemetry-nothing: here")},
	"telemetry wrong":      {annotations: annotated("agent-telemetry-disable-hostname: perhaps"), difference: "telemetry of which a field is wrong"},
	"JSON patch":           {annotations: annotated("agent-json-patch: [{\"op\": \"replace\", \"path\": \"/securityContext/runAsUser\", \"value\": 7}]"), difference: "`agent-json-patch`, `agent-init-json-patch`"},
	"JSON patch of init":   {annotations: annotated("agent-init-json-patch: [{\"op\": \"add\", \"path\": \"/env/-\", \"value\": {\"name\": \"A\", \"value\": \"b\"}}]"), difference: "`agent-json-patch`, `agent-init-json-patch`"},
	"JSON patch empty":     {annotations: annotated("agent-json-patch:", "agent-init-json-patch:")},
	"token volume":         {spec: vaultProjected, annotations: annotated("agent-service-account-token-volume-name: vault-token")},
	"token volume mounted": {spec: vaultMounted, annotations: annotated("agent-service-account-token-volume-name: vault-token")},
	"token volume absent":  {annotations: annotated("agent-service-account-token-volume-name: vault-token")},
	"token volume wrong":   {spec: vaultTwo, annotations: annotated("agent-service-account-token-volume-name: data")},
	"no token":             {spec: "{automountServiceAccountToken: false, containers: [{name: web}]}"},
	"own token mount":      {spec: "{automountServiceAccountToken: false, containers: [{name: web}, {name: aux, volumeMounts: [{name: t, mountPath: /my/serviceaccount}]}], volumes: [{name: t, emptyDir: {}}]}"},
	"truth that is none":   {annotations: annotated("agent-pre-populate: yes")},
	"truth that is empty":  {annotations: annotated("agent-pre-populate:", "agent-inject-token:")},
	"template type wrong":  {annotations: annotated("agent-inject-default-template: xml")},
	"own volume": {spec: "{containers: [{name: web}], volumes: [{name: vault-secrets, emptyDir: {}}]}",
		difference: "a volume with the name of one of Vault's"},

	"settings": {settings: map[string]string{"VAULT_AUTH_TYPE": "jwt", "VAULT_AUTH_PATH": "auth/jwt", "VAULT_NAMESPACE": "team", "PROXY_ADDR": "http://proxy:3128",
		"REVOKE_ON_SHUTDOWN": "true", "RUN_AS_USER": "7", "RUN_AS_GROUP": "8", "DEFAULT_TEMPLATE": "json", "CPU_REQUEST": "1", "CPU_LIMIT": "2", "MEM_REQUEST": "1Gi", "MEM_LIMIT": "2Gi",
		"EPHEMERAL_REQUEST": "3Gi", "EPHEMERAL_LIMIT": "4Gi", "TEMPLATE_CONFIG_EXIT_ON_RETRY_FAILURE": "false", "TEMPLATE_STATIC_SECRET_RENDER_INTERVAL": "1m",
		"TEMPLATE_MAX_CONNECTIONS_PER_HOST": "9", "AUTH_MIN_BACKOFF": "3s", "AUTH_MAX_BACKOFF": "4m", "DISABLE_IDLE_CONNECTIONS": "caching", "DISABLE_KEEP_ALIVES": "auto-auth,caching",
		"LOG_LEVEL": "debug"}, annotations: annotated("agent-inject-secret-db: secret/db")},
	"settings overridden":             {settings: map[string]string{"RUN_AS_USER": "7", "VAULT_NAMESPACE": "team", "CPU_LIMIT": "2"}, annotations: annotated("agent-run-as-user: 9", "namespace:", "agent-limits-cpu:")},
	"setting of the same user":        {settings: map[string]string{"RUN_AS_SAME_USER": "true"}, spec: vaultTwo},
	"setting of no security context":  {settings: map[string]string{"SET_SECURITY_CONTEXT": "false"}},
	"security context by a user":      {settings: map[string]string{"SET_SECURITY_CONTEXT": "false"}, annotations: annotated("agent-run-as-group: 7")},
	"security context refused by pod": {settings: map[string]string{"SET_SECURITY_CONTEXT": "false"}, annotations: annotated("agent-run-as-group: 7", "agent-set-security-context: 0")},
	"CA certificates":                 {settings: map[string]string{"VAULT_CACERT_BYTES": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"}},
	"CA certificates in base64":       {settings: map[string]string{"VAULT_CACERT_BYTES": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="}},
}
