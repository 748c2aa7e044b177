// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/derive"
)

// derivedRelease is a release with derived values.
func derivedRelease() *v1alpha1.Helm {
	release := releaseOf("apps/shop")
	release.Impure, release.Derived = v1alpha1.ImpureDerived, &v1alpha1.HelmDerived{Time: "2026-01-01"}
	return release
}

func keyOf(t testing.TB, seed string) *derive.Key {
	t.Helper()
	key, err := derive.NewKey([]byte(strings.Repeat(seed, derive.MinSeed)), "test")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// derivedValues renders a chart and returns what its ConfigMaps have at data.value, by name.
func derivedValues(t testing.TB, files map[string]string, release *v1alpha1.Helm, seed string) map[string]string {
	t.Helper()
	manifests, err := Render(context.Background(), sourceOf(t, files), release, Options{Key: keyOf(t, seed)})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, one := range manifests {
		var object struct {
			Metadata struct{ Name string }
			Data     map[string]string
		}
		if err := yaml.Unmarshal([]byte(one.YAML), &object); err != nil {
			t.Fatalf("%v\n%s", err, one.YAML)
		}
		out[object.Metadata.Name] = object.Data["value"]
	}
	return out
}

// derivedFunctions are calls of all functions that are derived, with what their results look like.
var derivedFunctions = map[string]struct{ call, shape string }{
	"randAlphaNum":             {`randAlphaNum 40`, `^[0-9A-Za-z]{40}$`},
	"randAlpha":                {`randAlpha 40`, `^[A-Za-z]{40}$`},
	"randNumeric":              {`randNumeric 40`, `^[0-9]{40}$`},
	"randAscii":                {`randAscii 40`, `^[ -~]{40}$`},
	"randBytes":                {`randBytes 32`, `^[0-9A-Za-z+/]{43}=$`},
	"randInt":                  {`randInt 1000 1000000000`, `^[0-9]{4,9}$`},
	"shuffle":                  {`shuffle "abcdefghijklmnopqrstuvwxyz"`, `^[a-z]{26}$`},
	"uuidv4":                   {`uuidv4`, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`},
	"genPrivateKey rsa":        {`genPrivateKey "rsa"`, `^-----BEGIN RSA PRIVATE KEY-----\n`},
	"genPrivateKey ecdsa":      {`genPrivateKey "ecdsa"`, `^-----BEGIN EC PRIVATE KEY-----\n`},
	"genPrivateKey ed25519":    {`genPrivateKey "ed25519"`, `^-----BEGIN PRIVATE KEY-----\n`},
	"genPrivateKey dsa":        {`genPrivateKey "dsa"`, `^-----BEGIN DSA PRIVATE KEY-----\n`},
	"genCA":                    {`(genCA "a" 10).Cert`, `^-----BEGIN CERTIFICATE-----\n`},
	"genCAWithKey":             {`(genCAWithKey "a" 10 (genPrivateKey "ecdsa")).Cert`, `^-----BEGIN CERTIFICATE-----\n`},
	"genSelfSignedCert":        {`(genSelfSignedCert "a" nil nil 10).Key`, `^-----BEGIN RSA PRIVATE KEY-----\n`},
	"genSelfSignedCertWithKey": {`(genSelfSignedCertWithKey "a" nil nil 10 (genPrivateKey "ed25519")).Cert`, `^-----BEGIN CERTIFICATE-----\n`},
	"genSignedCert":            {`(genSignedCert "a" (list "10.0.0.1") (list "b") 10 (genCA "b" 10)).Cert`, `^-----BEGIN CERTIFICATE-----\n`},
	"genSignedCertWithKey":     {`(genSignedCertWithKey "a" nil nil 10 (genCA "b" 10) (genPrivateKey "ecdsa")).Cert`, `^-----BEGIN CERTIFICATE-----\n`},
	"htpasswd":                 {`htpasswd "a" "b"`, `^a:\$2a\$10\$[./0-9A-Za-z]{53}$`},
	"bcrypt":                   {`bcrypt "a"`, `^\$2a\$10\$[./0-9A-Za-z]{53}$`},
	"encryptAES":               {`encryptAES "a" "b"`, `^[0-9A-Za-z+/]{43}=$`},
}

// TestDerivedFunctions renders each function twice, with another seed, for other releases, and in a template with other lines around.
func TestDerivedFunctions(t *testing.T) {
	for name, test := range derivedFunctions {
		t.Run(name, func(t *testing.T) {
			line := "  value: {{ " + test.call + " | toJson }}\n"
			with := func(before, after string) map[string]string {
				return chartWith(map[string]string{"templates/a.yaml": before + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n" + line + after})
			}
			value := derivedValues(t, with("", ""), derivedRelease(), "a")["a"]
			if !regexp.MustCompile(test.shape).MatchString(value) {
				t.Errorf("got %s", value)
			}
			if again := derivedValues(t, with("", ""), derivedRelease(), "a")["a"]; again != value {
				t.Errorf("the second render gives %s, not %s", again, value)
			}
			if strings.HasSuffix(name, " rsa") || strings.HasSuffix(name, " dsa") {
				return // as the others, and slow
			}
			if moved := derivedValues(t, with("# {{ .Chart.Name }}\n\n", "  other: {{ randAlphaNum 40 }}\n"), derivedRelease(), "a")["a"]; moved != value {
				t.Errorf("other lines give %s, not %s", moved, value)
			}
			others := map[string]bool{value: true, derivedValues(t, with("", ""), derivedRelease(), "b")["a"]: true}
			for _, change := range []func(*v1alpha1.Helm){func(h *v1alpha1.Helm) { h.ReleaseName = "other" }, func(h *v1alpha1.Helm) { h.Namespace = "other" }} {
				release := derivedRelease()
				change(release)
				others[derivedValues(t, with("", ""), release, "a")["a"]] = true
			}
			if len(others) != 4 {
				t.Errorf("%d of 4 seeds and releases have another value", len(others))
			}
		})
	}
}

// TestAllRandomFunctionsAreDerived compares with what sprig and Prerig say is random.
func TestAllRandomFunctionsAreDerived(t *testing.T) {
	hermetic, all := sprig.HermeticTxtFuncMap(), sprig.TxtFuncMap()
	names := maps.Clone(purposes)
	for name := range all {
		if hermetic[name] == nil && !slices.Contains([]string{"env", "expandenv", "now", "date", "date_in_zone", "date_modify", "htmlDate", "htmlDateInZone", "dateInZone", "dateModify", "derivePassword"}, name) {
			names[name] = "random"
		}
	}
	release := derivedRelease()
	derivation, err := newDerivation(release, Options{Key: keyOf(t, "a")})
	if err != nil {
		t.Fatal(err)
	}
	for name := range names {
		clock := slices.Contains([]string{"now", "ago", "date", "durationRound"}, name)
		if derivation.isDerived(name) == (clock || name == "getHostByName") {
			t.Errorf("%s: %t", name, derivation.isDerived(name))
		}
	}
}

// TestDerivedLengths draws lengths and looks at the alphabets, beside sprig's own functions.
func TestDerivedLengths(t *testing.T) {
	own := sprig.TxtFuncMap()
	for name, alphabet := range map[string]string{"randAlphaNum": digits + letters, "randAlpha": letters, "randNumeric": digits, "randAscii": printable} {
		theirs, _ := own[name].(func(int) string)
		seen, wanted := map[rune]bool{}, map[rune]bool{}
		calls := &derivedCalls{derivation: mustDerivation(t)}
		ours, _ := calls.textFunctions()[name].(func(string, int) (string, error))
		for range 200 {
			length := rand.IntN(60) - 5
			value, err := ours("", length)
			if err != nil || len(value) != len(theirs(length)) {
				t.Errorf("%s %d: %q, %v", name, length, value, err)
			}
			for _, c := range value {
				seen[c] = true
			}
		}
		for _, c := range theirs(20_000) {
			wanted[c] = true
		}
		for c := range seen {
			if !wanted[c] {
				t.Errorf("%s has %q", name, c)
			}
		}
		if len(wanted) != len(alphabet) || len(seen) != len(alphabet) {
			t.Errorf("%s: %d of %d characters, sprig has %d", name, len(seen), len(alphabet), len(wanted))
		}
	}
}

func mustDerivation(t testing.TB) *derivation {
	t.Helper()
	derivation, err := newDerivation(derivedRelease(), Options{Key: keyOf(t, "a")})
	if err != nil {
		t.Fatal(err)
	}
	return derivation
}

// TestCallsAreToldApart renders calls that are alike: what makes a call another one, and what does not.
func TestCallsAreToldApart(t *testing.T) {
	helpers := "{{ define \"password\" }}{{ randAlphaNum 20 }}{{ end }}\n{{ define \"other\" -}}\n  {{ randAlphaNum 20 }}\n{{- end }}{{ define \"outer\" -}}\n  {{ include \"password\" . }}\n{{- end }}"
	object := func(name, expression string) string {
		return configMap("x-"+name, `{{ `+expression+` | quote }}`) + "---\n"
	}
	files := chartWith(map[string]string{
		"Chart.yaml":           chartYAML + "dependencies: [{name: redis, version: 1.0.0}, {name: redis, version: 1.0.0, alias: cache}]\n",
		"templates/_help.tpl":  helpers,
		"templates/secret.yml": object("same", "randAlphaNum 20"),
		"templates/a.yaml": object("a", "randAlphaNum 20") + object("b", "randAlphaNum 20") + object("c", "randAlphaNum 21") + object("d", "randAlpha 20") +
			object("e", "default uuidv4 nil") + object("f", `include "password" .`) + object("g", `include "password" $`) + object("h", `include "other" .`) + object("i", `include "outer" .`) +
			object("j", `20 | randAlphaNum`) + object("k", `tpl "{{ randAlphaNum 20 }}" .`) + object("l", `tpl (printf "{{ tpl %q . }}" "{{ randAlphaNum 20 }}") .`) + object("m", `. | include "password"`) +
			object("n", "cat (randAlphaNum 20) (randAlphaNum 20)") + object("o", `tpl "{{ include \"password\" . }}" .`) +
			"{{ range list 1 2 }}\n" + configMap("x-loop-{{ . }}", "{{ randAlphaNum 20 }}") + "---\n{{ end }}" + object("p", `(include "password" .) | b64enc`) + object("q", `tpl uuidv4 .`),
		"templates/b.yaml":                    object("b-a", "randAlphaNum 20") + object("checksum", `include (print $.Template.BasePath "/secret.yml") .`) + object("after", "randAlphaNum 20"),
		"charts/redis/Chart.yaml":             "apiVersion: v2\nname: redis\nversion: 1.0.0\n",
		"charts/redis/templates/secret.yaml":  configMap("x-redis-{{ .Chart.Name }}", "{{ randAlphaNum 20 }}"),
		"charts/redis/templates/another.yaml": "",
	})
	values := derivedValues(t, files, derivedRelease(), "a")
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if other, taken := seen[values[name]]; taken {
			t.Errorf("%s and %s are %q", name, other, values[name])
		}
		seen[values[name]] = name
		if len(values[name]) < 20 {
			t.Errorf("%s is %q", name, values[name])
		}
	}
	if pair := strings.Fields(values["x-n"]); len(pair) != 2 || pair[0] == pair[1] {
		t.Errorf("two calls of a line: %v", pair)
	}
	if !strings.Contains(values["x-checksum"], values["x-same"]) {
		t.Errorf("a file that is included gives another value than the file: %s, %s", values["x-checksum"], values["x-same"])
	}
	if len(values) != 25 {
		t.Errorf("%d objects", len(values))
	}

	// Whatever else a template gets, values stay as they are.
	files["apps/shop/templates/_help.tpl"] = "{{/* more */}}\n" + strings.ReplaceAll(helpers, "{{ define \"other\"", "{{ define \"more\" }}\n  {{ randAlphaNum 20 }}{{ end }}\n\n{{ define \"other\"")
	files["apps/shop/templates/a.yaml"] = "\n{{- if .Values.never }}\n{{ randAlphaNum 20 }}\n{{- end }}\n" + object("new", `include "password" (dict)`) + files["apps/shop/templates/a.yaml"]
	files["apps/shop/templates/0.yaml"] = object("new-2", `include "password" (list)`)
	after := derivedValues(t, files, derivedRelease(), "a")
	for name, value := range values {
		if after[name] != value {
			t.Errorf("%s is %q, and was %q", name, after[name], value)
		}
	}
}

// TestTextsAreAnnotatedWhereverTheyStand renders texts with and without places, and wants the same text.
func TestTextsAreAnnotatedWhereverTheyStand(t *testing.T) {
	for text, want := range map[string]string{
		"{{- randAlphaNum 5 -}}":                                  `{{- randAlphaNum "0" 5 -}}`,
		"{{ default uuidv4 .x }}":                                 `{{ default (uuidv4 "0") .x }}`,
		`{{ include "a" . -}}`:                                    `{{ include (prerigEnter "0" "a") . | prerigLeave -}}`,
		"{{include `a) \"` (dict \"b\" 1) | indent 2}}":           "{{include (prerigEnter \"0\" `a) \"`) (dict \"b\" 1) | prerigLeave | indent 2}}",
		`{{ $x := include "a\"}" $ }}`:                            `{{ $x := include (prerigEnter "0" "a\"}") $ | prerigLeave }}`,
		`{{ . | tpl .Values.x }}`:                                 `{{ . | tpl (prerigText "0" .Values.x) | prerigLeave }}`,
		`{{ tpl uuidv4 . }}`:                                      `{{ tpl (prerigText "0" (uuidv4 "1")) . | prerigLeave }}`,
		`{{ if eq (include "a" .) "b" }}{{ end }}`:                `{{ if eq (include (prerigEnter "0" "a") . | prerigLeave) "b" }}{{ end }}`,
		`{{ (genCA "a" 1).Cert }}`:                                `{{ (genCA "0" "a" 1).Cert }}`,
		`{{ .randAlphaNum }} randAlphaNum {{/* randAlphaNum */}}`: `{{ .randAlphaNum }} randAlphaNum {{/* randAlphaNum */}}`,
		`{{ "randAlphaNum 5" }}{{ $randAlpha := 1 }}`:             `{{ "randAlphaNum 5" }}{{ $randAlpha := 1 }}`,
		`{{ include "a" (include "b" .) }}`:                       `{{ include (prerigEnter "0" "a") (include (prerigEnter "0" "b") . | prerigLeave) | prerigLeave }}`,
		`{{ include (include "b" .) . }}`:                         `{{ include (prerigEnter "0" (include (prerigEnter "0" "b") . | prerigLeave)) . | prerigLeave }}`,
		"{{ include \"a\"\n  .\n}}":                               "{{ include (prerigEnter \"0\" \"a\")\n  . | prerigLeave\n}}",
		"ä{{ define \"ü\" }}{{ uuidv4 }}{{ end }}":                "ä{{ define \"ü\" }}{{ uuidv4 \"0\" }}{{ end }}",
		`{{ with $x := uuidv4 }}{{ else with uuidv4 }}{{ end }}`:  `{{ with $x := uuidv4 "0" }}{{ else with uuidv4 "0" }}{{ end }}`,
		`{{ randAlphaNum 5 `:                                      `{{ randAlphaNum 5 `,
		`{{ include "a" 'c' }}`:                                   `{{ include (prerigEnter "0" "a") 'c' | prerigLeave }}`,
	} {
		d := mustDerivation(t)
		if strings.Contains(want, `"1"`) {
			number := 0
			if got := annotate(text, "tpl", false, d.isDerived, func(place) int { number++; return 2 - number }); len(got) != len(want) {
				t.Errorf("%s\n%s\n%s", text, got, want)
			}
			continue
		}
		if got := annotate(text, "tpl", false, d.isDerived, d.number); got != want {
			t.Errorf("%s\n%s\n%s", text, got, want)
		}
	}
}

// TestErrorsOfDerivedCharts checks that errors name the places of the templates as they are, and hold no value.
func TestErrorsOfDerivedCharts(t *testing.T) {
	for name, test := range map[string]struct{ template, time, want string }{
		"a mistake":            {`{{ include "h" . }}{{ $x := randAlphaNum 5 }}{{ required "set the port" .Values.port }}{{ define "h" }}{{ end }}`, "", "execution error at (apps/shop/templates/a.yaml:1:48): set the port"},
		"a wrong argument":     {`{{ randAlphaNum "x" }}`, "", `apps/shop/templates/a.yaml:1:16; executing "apps/shop/templates/a.yaml" at <"x">:; expected integer; found "x"`},
		"too few arguments":    {`{{ randAlphaNum }}`, "", "wrong number of args for randAlphaNum: want 1 got 0"},
		"a value in an error":  {`{{ $x := randAlphaNum 30 }}{{ fail (printf "<%s> <%s>" $x (b64enc $x)) }}`, "", "<[derived]> <[derived]>"},
		"a key in an error":    {`{{ fail (genPrivateKey "ecdsa") }}`, "", "[derived]"},
		"no time":              {configMap("a", `{{ (genCA "a" 1).Cert }}`), "", "genCA makes a random key, so that each render would give something else; give the chart a value that makes the call unnecessary, or say in helm.derived.time what the clock shows"},
		"no clock":             {configMap("a", `{{ now | date "2006" }}`), "", "now reads the clock, so that"},
		"a name server":        {configMap("a", `{{ getHostByName "localhost" }}`), "2026-01-01", "or set helm.impure to Empty"},
		"no certificate":       {`{{ genSignedCert "a" nil nil 1 "ca" }}`, "2026-01-01", "the last argument is no certificate; genCA or buildCustomCert makes one"},
		"no authority":         {`{{ genSignedCert "a" nil nil 1 (dict) }}`, "2026-01-01", "the last argument is no certificate"},
		"no key":               {`{{ genCAWithKey "a" 1 "x" }}`, "2026-01-01", "reading a private key: it is no PEM"},
		"an empty key":         {`{{ genCAWithKey "a" 1 "" }}`, "2026-01-01", "reading a private key: it is no PEM"},
		"a key of DSA":         {`{{ genCAWithKey "a" 1 (genPrivateKey "dsa") }}`, "2026-01-01", `keys of the type "DSA PRIVATE KEY" cannot be used for certificates`},
		"no address":           {`{{ genSelfSignedCert "a" (list "x") nil 1 }}`, "2026-01-01", "error parsing ip: x"},
		"no number":            {`{{ randInt 5 5 }}`, "", "there is no number from 5 to less than 5"},
		"less than no bytes":   {`{{ randBytes -1 }}`, "", "-1 is no number of bytes"},
		"a text that is wrong": {`{{ tpl "{{ randAlphaNum }" . }}`, "", "cannot parse template"},
	} {
		t.Run(name, func(t *testing.T) {
			release := derivedRelease()
			release.Derived.Time = test.time
			_, err := Render(context.Background(), sourceOf(t, chartWith(map[string]string{"templates/a.yaml": test.template})), release, Options{Key: keyOf(t, "a")})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "prerig") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := Render(context.Background(), sourceOf(t, chartWith(nil)), derivedRelease(), Options{}); err == nil || !strings.Contains(err.Error(), "there is no seed to derive from") {
		t.Error(err)
	}
}

// TestDerivedClock checks that the clock shows what the pipeline says, and that calls without effect need no time.
func TestDerivedClock(t *testing.T) {
	files := chartWith(map[string]string{"templates/a.yaml": configMap("a", `{{ now | date "2006-01-02T15:04:05Z07:00" }} {{ ago (now) }} {{ date "2006" "x" }} {{ durationRound (toDate "2006" "2024") }} {{ ago (toDate "2006-01-02" "2025-12-31") }}`)})
	if got := derivedValues(t, files, derivedRelease(), "a")["a"]; got != "2026-01-01T00:00:00Z 0s 2026 2y 24h0m0s" {
		t.Errorf("got %s", got)
	}
	release := derivedRelease()
	release.Derived.Time = ""
	files = chartWith(map[string]string{"templates/a.yaml": configMap("a", `{{ $x := genCA "a" 1 }}{{ default (now | date "2006") "x" }}{{ randAlpha 3 | len }}`)})
	if got := derivedValues(t, files, release, "a")["a"]; got != "x3" {
		t.Errorf("got %s", got)
	}
}

// TestRenewedCertificates moves the time: certificates are others, keys and what is signed by them stay.
func TestRenewedCertificates(t *testing.T) {
	files := chartWith(map[string]string{"templates/a.yaml": `{{ $ca := genCA "ca" 10 }}{{ $cert := genSignedCert "web" nil (list "web") 5 $ca }}` +
		configMap("ca", "{{ $ca.Cert | toJson }}") + "---\n" + configMap("ca-key", "{{ $ca.Key | toJson }}") + "---\n" + configMap("cert", "{{ $cert.Cert | toJson }}") + "---\n" + configMap("key", "{{ $cert.Key | toJson }}") +
		"---\n" + configMap("password", "{{ randAlphaNum 10 }}") + "---\n" + configMap("custom", `{{ (genSignedCert "web" nil nil 5 (buildCustomCert ($ca.Cert | b64enc) ($ca.Key | b64enc))).Cert | toJson }}`)})
	before := derivedValues(t, files, derivedRelease(), "a")
	release := derivedRelease()
	release.Derived.Time = "2027-01-01T12:00:00+02:00"
	after := derivedValues(t, files, release, "a")
	for name, changes := range map[string]bool{"ca": true, "ca-key": false, "cert": true, "key": false, "password": false, "custom": true} {
		if (before[name] != after[name]) != changes {
			t.Errorf("%s: %s\n%s", name, before[name], after[name])
		}
	}
	checkChain(t, before["ca"], before["cert"], "2026-01-03")
	checkChain(t, after["ca"], after["cert"], "2027-01-03")
	checkChain(t, before["ca"], before["custom"], "2026-01-03")
}

// TestDerivedReadsNothingElse checks that the record of what is read is that of any render.
func TestDerivedReadsNothingElse(t *testing.T) {
	files := chartWith(map[string]string{"templates/a.yaml": configMap("a", "{{ randAlphaNum 5 }}")})
	derived, refused := sourceOf(t, files), sourceOf(t, files)
	if _, err := Render(context.Background(), derived, derivedRelease(), Options{Key: keyOf(t, "a")}); err != nil {
		t.Fatal(err)
	}
	if _, err := Render(context.Background(), refused, releaseOf("apps/shop"), Options{}); err == nil {
		t.Fatal("it is refused without")
	}
	if derived.Record().Fingerprint() != refused.Record().Fingerprint() {
		t.Error("other files are read")
	}
}

// checkChain verifies a certificate at a time, as a client does.
func checkChain(t *testing.T, ca, cert, at string) {
	t.Helper()
	now, err := time.Parse(time.DateOnly, at)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ca)) {
		t.Fatal("no authority")
	}
	block, _ := pem.Decode([]byte(cert))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err != nil {
		t.Error(err)
	}
}
