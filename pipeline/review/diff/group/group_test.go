// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// app is a Deployment with the proxy of a mesh; what %s marks can be changed.
type app struct{ name, namespace, image, own, proxy, level string }

func (a app) yaml() string {
	for field, value := range map[*string]string{&a.namespace: "shop", &a.own: "x", &a.image: "1", &a.proxy: "1", &a.level: "1"} {
		if *field == "" {
			*field = value
		}
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: %[2]s
spec:
  template:
    metadata:
      labels:
        app: %[1]s
    spec:
      containers:
      - name: %[1]s
        env:
        - name: FIRST
          value: "1"
        - name: OWN
          value: %[4]s
        image: reg/%[1]s:%[3]s
        ports:
        - containerPort: 8080
      - name: istio-proxy
        args:
        - --level
        - "%[6]s"
        env:
        - name: OWNER
          value: kubernetes://apis/apps/v1/namespaces/%[2]s/deployments/%[1]s
        image: proxyv2:%[5]s
`, a.name, a.namespace, a.image, a.own, a.proxy, a.level)
}

// brief is a change in short: its kind, the objects, and the changed lines with their fields.
func brief(changes []Change) (out []string) {
	for _, c := range changes {
		var names []string
		for _, o := range c.Objects {
			names = append(names, o.Name)
		}
		text := c.Kind + " " + strings.Join(names, ", ")
		for _, h := range c.Hunks {
			text += " | " + h.At
			for l := range strings.Lines(h.Text) {
				if l[0] != ' ' {
					text += " " + l[:1] + strings.TrimSpace(l[1:])
				}
			}
		}
		out = append(out, text)
	}
	return out
}

// compareAll compares pairs of texts, each the one file of a pipeline.
func compareAll(pairs [][2]string) []Change {
	var units []*Unit
	for i, pair := range pairs {
		files := [2]map[string][]byte{{}, {}}
		for side, text := range pair {
			if text != "" {
				files[side]["f.yaml"] = []byte(text)
			}
		}
		found, _ := Compare(files[0], files[1])
		for _, u := range found {
			u.Pipeline, u.Target = fmt.Sprintf("p%d", i), "t"
		}
		units = append(units, found...)
	}
	return Changes(units)
}

func cronJob(name, proxy string) string {
	return "apiVersion: batch/v1\nkind: CronJob\nmetadata:\n  name: " + name + "\nspec:\n  jobTemplate:\n    spec:\n      template:\n        spec:\n" +
		"          containers:\n          - name: main\n            image: x\n          - name: istio-proxy\n            image: proxyv2:" + proxy + "\n"
}

func configMap(name string, lines ...string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  config: |\n    " + strings.Join(lines, "\n    ") + "\n"
}

func TestGrouping(t *testing.T) {
	pair := func(old, now app) [2]string { return [2]string{old.yaml(), now.yaml()} }
	for name, tc := range map[string]struct {
		pairs [][2]string
		want  []string
	}{
		"the same": {
			[][2]string{pair(app{name: "web", proxy: "1"}, app{name: "web", proxy: "2"}), pair(app{name: "cart", proxy: "1"}, app{name: "cart", proxy: "2"})},
			[]string{"modified Deployment shop/web, Deployment shop/cart | spec.template.spec.containers[istio-proxy].image -image: proxyv2:1 +image: proxyv2:2"},
		},
		"the name of only one is shown": {
			[][2]string{pair(app{name: "web", image: "1"}, app{name: "web", image: "2"})},
			[]string{"modified Deployment shop/web | spec.template.spec.containers[web].image -image: reg/web:1 +image: reg/web:2"},
		},
		"the names of many stand aside": {
			[][2]string{pair(app{name: "web", image: "1"}, app{name: "web", image: "2"}), pair(app{name: "cart", image: "1"}, app{name: "cart", image: "2"})},
			[]string{"modified Deployment shop/web, Deployment shop/cart | spec.template.spec.containers[<name>].image -image: reg/<name>:1 +image: reg/<name>:2"},
		},
		"another version is another change": {
			[][2]string{pair(app{name: "web", proxy: "1"}, app{name: "web", proxy: "2"}), pair(app{name: "cart", proxy: "1"}, app{name: "cart", proxy: "3"})},
			[]string{
				"modified Deployment shop/web | spec.template.spec.containers[istio-proxy].image -image: proxyv2:1 +image: proxyv2:2",
				"modified Deployment shop/cart | spec.template.spec.containers[istio-proxy].image -image: proxyv2:1 +image: proxyv2:3",
			},
		},
		"the same lines of another field are another change": {
			[][2]string{
				{app{name: "web", own: `"1"`}.yaml(), app{name: "web", own: `"2"`}.yaml()},
				{app{name: "web"}.yaml(), strings.Replace(app{name: "web"}.yaml(), `value: "1"`, `value: "2"`, 1)},
			},
			[]string{
				`modified Deployment shop/web | spec.template.spec.containers[web].env[OWN].value -value: "1" +value: "2"`,
				`modified Deployment shop/web | spec.template.spec.containers[web].env[FIRST].value -value: "1" +value: "2"`,
			},
		},
		"arguments are known by the one before": {
			[][2]string{
				{app{name: "web", level: "1"}.yaml(), app{name: "web", level: "2"}.yaml()},
				{strings.Replace(app{name: "web", level: "1"}.yaml(), "--level", "--other", 1), strings.Replace(app{name: "web", level: "2"}.yaml(), "--level", "--other", 1)},
			},
			[]string{
				`modified Deployment shop/web | spec.template.spec.containers[istio-proxy].args[] -- "1" +- "2"`,
				`modified Deployment shop/web | spec.template.spec.containers[istio-proxy].args[] -- "1" +- "2"`,
			},
		},
		"a value that happens to be a name": {
			// For web and cart the value is a constant, for app it happens to be its name.
			[][2]string{
				pair(app{name: "web", own: "x"}, app{name: "web", own: "app"}), pair(app{name: "cart", own: "x"}, app{name: "cart", own: "app"}),
				pair(app{name: "app", own: "x"}, app{name: "app", own: "app"}), pair(app{name: "mail", own: "x"}, app{name: "mail", own: "mail"}),
			},
			[]string{
				"modified Deployment shop/web, Deployment shop/cart | spec.template.spec.containers[<name>].env[OWN].value -value: x +value: app",
				"modified Deployment shop/app, Deployment shop/mail | spec.template.spec.containers[<name>].env[OWN].value -value: x +value: <name>",
			},
		},
		"a renamed container is not the object's own": {
			[][2]string{
				{strings.Replace(app{name: "web"}.yaml(), "- name: web", "- name: a1", 1), strings.Replace(app{name: "web"}.yaml(), "- name: web", "- name: b1", 1)},
				{strings.Replace(app{name: "web"}.yaml(), "- name: web", "- name: a1", 1), strings.Replace(app{name: "web"}.yaml(), "- name: web", "- name: c1", 1)},
			},
			[]string{
				"modified Deployment shop/web | spec.template.spec.containers -- name: a1 +- name: b1",
				"modified Deployment shop/web | spec.template.spec.containers -- name: a1 +- name: c1",
			},
		},
		"ports that change are not the object's own": {
			[][2]string{
				{app{name: "web"}.yaml(), strings.Replace(app{name: "web"}.yaml(), "8080", "8081", 1)},
				{app{name: "web"}.yaml(), strings.Replace(app{name: "web"}.yaml(), "8080", "9090", 1)},
			},
			[]string{
				"modified Deployment shop/web | spec.template.spec.containers[web].ports[].containerPort -- containerPort: 8080 +- containerPort: 8081",
				"modified Deployment shop/web | spec.template.spec.containers[web].ports[].containerPort -- containerPort: 8080 +- containerPort: 9090",
			},
		},
		"pods of several kinds": {
			[][2]string{pair(app{name: "web", proxy: "1"}, app{name: "web", proxy: "2"}), {cronJob("night", "1"), cronJob("night", "2")}},
			[]string{"modified Deployment shop/web, CronJob night | pod:spec.containers[istio-proxy].image -image: proxyv2:1 +image: proxyv2:2"},
		},
		"one object has more changes than others": {
			[][2]string{pair(app{name: "web", proxy: "1"}, app{name: "web", proxy: "2"}), pair(app{name: "cart", proxy: "1", level: "1"}, app{name: "cart", proxy: "2", level: "2"})},
			[]string{
				"modified Deployment shop/web, Deployment shop/cart | spec.template.spec.containers[istio-proxy].image -image: proxyv2:1 +image: proxyv2:2",
				`modified Deployment shop/cart | spec.template.spec.containers[istio-proxy].args[] -- "1" +- "2"`,
			},
		},
		"new objects of one shape": {
			[][2]string{{"", configMap("web", "a: 1")}, {"", configMap("cart", "a: 1")}, {"", configMap("cart", "a: 2")}},
			[]string{
				"added ConfigMap web, ConfigMap cart |  +apiVersion: v1 +kind: ConfigMap +metadata: +name: <name> +data: +config: | +a: 1",
				"added ConfigMap cart |  +apiVersion: v1 +kind: ConfigMap +metadata: +name: cart +data: +config: | +a: 2",
			},
		},
		"deleted": {[][2]string{{configMap("web", "a: 1"), ""}}, []string{"deleted ConfigMap web |  -apiVersion: v1 -kind: ConfigMap -metadata: -name: web -data: -config: | -a: 1"}},
		"inside of a text what is around counts": {
			[][2]string{{configMap("web", "[a]", "size: 1"), configMap("web", "[a]", "size: 2")}, {configMap("web", "[b]", "size: 1"), configMap("web", "[b]", "size: 2")}},
			[]string{"modified ConfigMap web | data.config -size: 1 +size: 2", "modified ConfigMap web | data.config -size: 1 +size: 2"},
		},
		"no YAML": {[][2]string{{"a: [\n", "b: [\n"}}, []string{"modified f.yaml |  -a: [ +b: ["}},
		"one file with several objects": {
			[][2]string{{configMap("web", "a: 1") + "---\n" + configMap("cart", "a: 1"), configMap("web", "a: 1") + "---\n" + configMap("cart", "a: 2") + "---\n" + configMap("new", "a: 1")}},
			[]string{
				"modified ConfigMap cart | data.config -a: 1 +a: 2",
				"added ConfigMap new |  +apiVersion: v1 +kind: ConfigMap +metadata: +name: new +data: +config: | +a: 1",
			},
		},
		"the same objects in another order": {
			[][2]string{{"kind: A\nmetadata: {name: aa}\n---\nkind: A\nmetadata: {name: bb}\n", "kind: A\nmetadata: {name: bb}\n---\nkind: A\nmetadata: {name: aa}\n"}},
			[]string{"modified f.yaml |  -metadata: {name: aa} +metadata: {name: bb} -metadata: {name: bb} +metadata: {name: aa}"},
		},
		"a line that ends without a line break": {[][2]string{{"kind: A\nmetadata: {name: aa}", "kind: A\nmetadata: {name: aa}\n"}},
			[]string{"modified A aa | metadata -metadata: {name: aa} \\No newline at end of file +metadata: {name: aa}"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := brief(compareAll(tc.pairs)); !cmp.Equal(got, tc.want) {
				t.Errorf("%s", cmp.Diff(tc.want, got))
			}
		})
	}
}

// TestEveryObjectIsInAChange: whatever is compared, each object that differs is listed, with values that give its own lines
// back.
func TestEveryObjectIsInAChange(t *testing.T) {
	var pairs [][2]string
	want := map[string]bool{}
	for i := range 300 {
		a := app{name: fmt.Sprintf("app-%d", i), namespace: fmt.Sprintf("ns-%d", i%3), image: fmt.Sprint(i % 4), proxy: "1", level: fmt.Sprint(i % 2)}
		b := a
		switch i % 5 {
		case 0:
			continue
		case 1, 2:
			b.proxy = "2"
		case 3:
			b.proxy, b.level = "2", "9"
		case 4:
			b.image = fmt.Sprint(i)
		}
		want[fmt.Sprintf("p%d", len(pairs))] = true
		pairs = append(pairs, [2]string{a.yaml(), b.yaml()})
	}
	got := map[string]bool{}
	for _, c := range compareAll(pairs) {
		for _, o := range c.Objects {
			got[o.Pipeline] = true
			n := 0
			fmt.Sscanf(o.Pipeline, "p%d", &n)
			for _, h := range c.Hunks {
				for l := range strings.Lines(h.Text) {
					text := l[1:]
					for param, value := range o.Values {
						text = strings.ReplaceAll(text, "<"+param+">", value)
					}
					if side := pairs[n][map[byte]int{'-': 0, '+': 1, ' ': 1}[l[0]]]; !strings.Contains(side, text) {
						t.Fatalf("%s has no line %q", o.Name, text)
					}
				}
			}
		}
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestContextThatDiffersIsNotShown(t *testing.T) {
	pairs := [][2]string{
		{app{name: "web", own: "1", image: "5"}.yaml(), app{name: "web", own: "2", image: "5"}.yaml()},
		{app{name: "cart", own: "1", image: "6"}.yaml(), app{name: "cart", own: "2", image: "6"}.yaml()},
	}
	changes := compareAll(pairs)
	want := "         - name: FIRST\n           value: \"1\"\n         - name: OWN\n-          value: 1\n+          value: 2\n"
	if len(changes) != 1 || changes[0].Hunks[0].Text != want {
		t.Errorf("got %+v", changes)
	}
}

func TestPlaces(t *testing.T) {
	old, now := []byte(app{name: "web", proxy: "1"}.yaml()), []byte(app{name: "web", proxy: "2"}.yaml())
	var units []*Unit
	for _, target := range []string{"branch", "artifact"} {
		found, same := Compare(map[string][]byte{"f": old, "g": old}, map[string][]byte{"f": now, "g": old})
		if same != 1 {
			t.Errorf("%d objects are the same", same)
		}
		found[0].Pipeline, found[0].Target = "p", target
		units = append(units, found...)
	}
	changes := Changes(units)
	want := []Object{{Pipeline: "p", Name: "Deployment shop/web", Places: []Place{{"branch", "f"}, {"artifact", "f"}}}}
	if len(changes) != 1 || !cmp.Equal(changes[0].Objects, want) {
		t.Errorf("got %+v", changes)
	}
}

func TestSubstitution(t *testing.T) {
	own := []ownValue{{"name", "web"}, {"namespace", "web-shop"}, {"app", "web"}}
	var got []string
	all, _ := allSubstitutions("web web-shop webby xweb web.web-shop:80", own)
	for _, way := range all {
		got = append(got, way.replaceValues("web web-shop webby xweb web.web-shop:80"))
	}
	sort.Strings(got)
	want := []string{
		"<app> <app>-shop webby xweb <app>.<app>-shop:80", "<app> <namespace> webby xweb <app>.<namespace>:80",
		"<name> <name>-shop webby xweb <name>.<name>-shop:80", "<name> <namespace> webby xweb <name>.<namespace>:80",
		"web <namespace> webby xweb web.<namespace>:80", "web web-shop webby xweb web.web-shop:80",
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}
