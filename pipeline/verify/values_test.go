// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestLastApplied is no difference of a Pod that kubectl apply made, and its text is never shown.
func TestLastApplied(t *testing.T) {
	const applied = `"kubectl.kubernetes.io/last-applied-configuration": "{\"DB\":\"hunter2\"}"`
	pod := verifyOne(t, `{spec: {containers: [{name: a}]}}`, `{metadata: {annotations: {`+applied+`}}, spec: {containers: [{name: a}]}}`, &Snapshot{}, Options{})
	if pod.State != Current {
		t.Errorf("it is %s: %v", pod.State, pod.Differences)
	}
	for _, c := range differencesBetweenPods(parse(t, `{metadata: {}}`), parse(t, `{metadata: {annotations: {`+applied+`}}}`)) {
		if shown := c.redactCredentials(); shown.found != hidden {
			t.Errorf("%s is shown as %v", c.fieldPathWithIdentities(), shown.found)
		}
	}
}

// TestCredentialsAreHidden hides texts by the names of their keys, and not what refers to Secrets.
func TestCredentialsAreHidden(t *testing.T) {
	const found = `
metadata:
  annotations: {vault.example.com/token: hunter1, plain: kept1}
spec:
  containers:
  - {name: a, env: [{name: DB_PASSWORD, value: hunter2}, {name: REF, valueFrom: {secretKeyRef: {name: kept2, key: kept3}}}]}
  volumes:
  - {name: v, csi: {driver: kept4, volumeAttributes: {apiKey: hunter3, tokenTTL: hunter4}}}
  - {name: token, secret: {secretName: kept5}}
  nodeSelector: {secret: hunter5}
`
	var shown []string
	for _, c := range differencesBetweenPods(parse(t, `{metadata: {annotations: {a: b}}, spec: {containers: [{name: a}]}}`), parse(t, found)) {
		c = c.redactCredentials()
		text, err := json.Marshal(c.found)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(text))
	}
	all := strings.Join(shown, "\n")
	if strings.Contains(all, "hunter") || strings.Count(all, "kept") != 5 {
		t.Errorf("it shows\n%s", all)
	}
}

// TestSecretNames takes names of credentials for such, and no names that only look alike.
func TestSecretNames(t *testing.T) {
	for _, name := range []string{
		"DB_PASS", "MYSQL_PWD", "PASS", "pass", "db-pass", "dbPass", "SSH_PASSPHRASE", "Authorization", "Proxy-Authorization", "REDIS_AUTH", "basicAuth",
		"AWS_SECRET_ACCESS_KEY", "access-key", "accessKey", "api-key", "apiKey", "private_key", "PASSWORD", "GITHUB_TOKEN",
	} {
		if !isSecret(name) {
			t.Errorf("%s is not taken for one", name)
		}
	}
	for _, name := range []string{"BYPASS", "passthrough", "COMPASS", "author", "AUTHORITY", "OAuthor", "secretName", "KEY", "LOG_LEVEL", "compassRose"} {
		if isSecret(name) {
			t.Errorf("%s is taken for one", name)
		}
	}
}

// TestArgumentsHideCredentials hides what options and headers with names of credentials have, and shows the rest.
func TestArgumentsHideCredentials(t *testing.T) {
	for found, want := range map[string]string{
		`args: [--password=hunter1, --level=info]`:                                         `["--password=***","--level=info"]`,
		`args: [--password, hunter1, --level, info]`:                                       `["--password","***","--level","info"]`,
		`args: ["--db-pass=hunter1 hunter2", -v]`:                                          `["--db-pass=***","-v"]`,
		`args: ["DB_PASS=hunter1 hunter2"]`:                                                `["DB_PASS=***"]`,
		`args: [--token, --level, info]`:                                                   `["--token","--level","info"]`,
		`args: ["--token=", ""]`:                                                           `["--token=",""]`,
		`args: [hunter, --author, kept]`:                                                   `["hunter","--author","kept"]`,
		`command: [sh, -c, "export DB_PWD='hunter1 x' app --auth hunter2 --port 80 -x=1"]`: `["sh","-c","export DB_PWD=*** app --auth *** --port 80 -x=1"]`,
		`command: [sh, -c, "exec app --api-key=\"hunter1\" && echo --secret 'hunter2'"]`:   `["sh","-c","exec app --api-key=*** \u0026\u0026 echo --secret ***"]`,
		`readinessProbe: {exec: {command: [redis-cli, --pass, hunter1, ping]}}`:            `{"exec":{"command":["redis-cli","--pass","***","ping"]}}`,
		`livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: Authorization, value: Basic hunter1}, {name: Host, value: kept}]}}`: `{"httpGet":{"httpHeaders":[{"name":"Authorization","value":"***"},{"name":"Host","value":"kept"}],"port":80}}`,
	} {
		changes := differencesBetweenPods(parse(t, `{spec: {containers: [{name: a}]}}`), parse(t, `{spec: {containers: [{name: a, `+found+`}]}}`))
		if len(changes) != 1 {
			t.Fatalf("%s: %v", found, changes)
		}
		shown, err := json.Marshal(changes[0].redactCredentials().found)
		if err != nil || string(shown) != want {
			t.Errorf("%s is shown as %s, %v", found, shown, err)
		}
	}
}

// TestInnermostNamesHideCredentials judges names within values of options, of URLs and of lists, and those of headers and keys.
func TestInnermostNamesHideCredentials(t *testing.T) {
	for _, c := range []struct{ before, word, want string }{
		{"", `--env=DB_PASSWORD=hunter2`, `--env=DB_PASSWORD=***`},
		{"", `--env=DB_PASSWORD=hunter1 hunter2`, `--env=DB_PASSWORD=***`},
		{"", `--set=db.password=hunter2`, `--set=db.password=***`},
		{"--set", `x=1,password=hunter2`, `x=1,password=***`},
		{"--set", `x=1,password=hunter1,hunter2,y=2`, `x=1,password=***,y=2`},
		{"", `--env=TOKEN=hunter==`, `--env=TOKEN=***`},
		{"", `jdbc:postgresql://db/x?user=u&password=hunter2`, `jdbc:postgresql://db/x?user=u&password=***`},
		{"", `jdbc:sqlserver://db;password=hunter2;encrypt=true`, `jdbc:sqlserver://db;password=***`},
		{"", `app jdbc:sqlserver://db;password=hunter2;encrypt=true`, `app jdbc:sqlserver://db;password=***;encrypt=true`},
		{"", `curl "http://a/?password=hunter2" -o kept`, `curl "http://a/?password=***" -o kept`},
		{"", `run -e "DB_PASSWORD=hunter1 hunter2" kept`, `run -e "DB_PASSWORD=***" kept`},
		{"", `curl -H "Authorization: Bearer hunter2" http://kept`, `curl -H "Authorization: ***" http://kept`},
		{"", `curl -H 'X-Api-Key: hunter2' http://kept`, `curl -H 'X-Api-Key: ***' http://kept`},
		{"-H", `Authorization: Bearer hunter2`, `Authorization: ***`},
		{"-H", `Authorization:Bearer hunter2`, `Authorization:***`},
		{"", "cat <<E\npassword: hunter1 hunter2\nport: kept\nE", "cat <<E\npassword: ***\nport: kept\nE"},
		{"", `--config={"password":"hunter2","level":"kept"}`, `--config={"password":***,"level":"kept"}`},
		{"", `sh -c "echo {\"token\": \"hunter1 hunter2\"} > kept"`, `sh -c "echo {\"token\": ***} > kept"`},
		{"-c", "# don't log this\nexport DB_PASSWORD='hunter2'\nexec kept", "# don't log this\nexport DB_PASSWORD=***\nexec kept"},
		{"-c", "echo it's; app --token='hunter1 hunter2' kept", "echo it's; app --token=*** kept"},
		{"", `app "--password="hunter2`, `app "--password=***`},
		{"", `app "--password=" kept`, `app "--password=" kept`},
		{"--auth-mode", "none", "none"},
		{"--secret-name", "foo", "foo"},
		{"", "--token-file=/run/kept", "--token-file=/run/kept"},
		{"", "app --auth-mode none --secretName foo --credentials-path=/kept", "app --auth-mode none --secretName foo --credentials-path=/kept"},
		{"", "--secret-name=foo,password=hunter2", "--secret-name=foo,password=***"},
		{"", "registry/token:v1", "registry/token:v1"},
		{"", "echo author: kept a=b", "echo author: kept a=b"},
	} {
		if got := maskCredentialArgument(c.before, c.word); got != c.want {
			t.Errorf("%s after %q is shown as\n%s, want\n%s", c.word, c.before, got, c.want)
		}
	}
}
