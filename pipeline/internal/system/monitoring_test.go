// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/config"
)

// monitoring is where the alerts and the dashboard are.
const monitoring = "../../../examples/monitoring"

// shownQuery is an expression of an alert or a panel, and the labels that its texts use.
type shownQuery struct {
	where, expr string
	labels      []string
}

var (
	labelInText   = regexp.MustCompile(`\$labels\.(\w+)`)
	labelInLegend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
	selector      = regexp.MustCompile(`\b((?:prerig|process)_[a-z_]+)\s*(\{[^}]*\})?`)
	matcher       = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	grouping      = regexp.MustCompile(`\b(?:by|on|without|ignoring)\s*\(([^)]*)\)`)
)

// shownQueries are those of the alerts and of the dashboard with its variables.
func shownQueries(t *testing.T) (out []shownQuery) {
	t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	readMonitoring(t, "rules.yaml", func(text []byte) error { return yaml.Unmarshal(text, &rules) })
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			q := shownQuery{where: rule.Alert, expr: rule.Expr}
			for _, text := range rule.Annotations {
				for _, found := range labelInText.FindAllStringSubmatch(text, -1) {
					q.labels = append(q.labels, found[1])
				}
			}
			out = append(out, q)
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
	}
	readMonitoring(t, "dashboard.json", func(text []byte) error { return json.Unmarshal(text, &dashboard) })
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			q := shownQuery{where: "panel " + panel.Title, expr: target.Expr}
			for _, found := range labelInLegend.FindAllStringSubmatch(target.LegendFormat, -1) {
				q.labels = append(q.labels, found[1])
			}
			out = append(out, q)
		}
	}
	for _, variable := range dashboard.Templating.List {
		if variable.Type == "query" {
			out = append(out, shownQuery{where: "variable " + variable.Name, expr: variable.Query})
		}
	}
	return out
}

func readMonitoring(t *testing.T, name string, decode func([]byte) error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, name))
	if err == nil {
		err = decode(text)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// exported are the labels with their values of everything that a daemon exports, by the names that queries use.
func (f *fixture) exported() map[string]map[string][]string {
	f.t.Helper()
	_, body := f.ask(f.page, "/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	out := map[string]map[string][]string{}
	for name, family := range families {
		labels := map[string][]string{}
		for _, m := range family.Metric {
			for _, l := range m.Label {
				labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
			}
		}
		names := []string{name}
		if family.GetType().String() == "HISTOGRAM" {
			labels["le"], names = nil, []string{name + "_bucket", name + "_sum", name + "_count"}
		}
		for _, one := range names {
			out[one] = labels
		}
	}
	return out
}

// check returns what of a query is not exported. Prometheus itself adds job and instance, and in Kubernetes the namespace.
func (q shownQuery) check(exported map[string]map[string][]string) (problems []string) {
	known := map[string]bool{"job": true, "instance": true, "namespace": true}
	selectors := selector.FindAllStringSubmatch(q.expr, -1)
	if len(selectors) == 0 {
		return []string{"it has no metric of ours"}
	}
	for _, found := range selectors {
		labels, ok := exported[found[1]]
		if !ok {
			problems = append(problems, found[1]+" is not exported")
		}
		for name := range labels {
			known[name] = true
		}
		for _, m := range matcher.FindAllStringSubmatch(found[2], -1) {
			if _, ok := labels[m[1]]; !ok && m[1] != "job" && m[1] != "instance" {
				problems = append(problems, found[1]+" has no label "+m[1])
			}
			for value := range strings.SplitSeq(m[2], "|") {
				if value != "" && !strings.HasPrefix(value, "$") && !isValueOf(exported, m[1], value) {
					problems = append(problems, fmt.Sprintf("no label %s has the value %q", m[1], value))
				}
			}
		}
	}
	for _, found := range grouping.FindAllStringSubmatch(q.expr, -1) {
		for name := range strings.SplitSeq(found[1], ",") {
			q.labels = append(q.labels, strings.TrimSpace(name))
		}
	}
	for _, name := range q.labels {
		if !known[name] {
			problems = append(problems, "its metrics have no label "+name)
		}
	}
	return problems
}

// isValueOf reports whether a label has a value in any metric: a state may have no pipeline of its own now.
func isValueOf(exported map[string]map[string][]string, label, value string) bool {
	for name, labels := range exported {
		if strings.HasPrefix(name, "prerig_") && slices.Contains(labels[label], value) {
			return true
		}
	}
	return false
}

// deliver sends a body with headers to a receiver.
func (f *fixture) deliver(receiver, body string, headers http.Header, want int) {
	f.t.Helper()
	r, err := http.NewRequest(http.MethodPost, "http://"+f.hooks+"/hook/"+receiver, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header = headers.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != want {
		f.t.Errorf("a delivery to %s was answered with %s, want %d", receiver, resp.Status, want)
	}
}

// TestMonitoringUsesWhatIsExported scrapes a daemon in which everything has happened once, and looks for each metric, label and value of
// the alerts and of the dashboard. The alerts themselves are tested by examples/monitoring.
func TestMonitoringUsesWhatIsExported(t *testing.T) {
	f, r := fromGit(t, same)
	f.c.PipelinesGitList = append(f.c.PipelinesGitList, f.c.PipelinesGit)
	f.c.PipelinesGitList[0].Name = "shop"
	f.c.PipelinesGit.URL = ""
	f.c.Receivers = append(f.c.Receivers, config.Receiver{Name: "hub", Provider: "github", Secret: f.c.Receivers[0].Secret})
	commit := r.Commit("first", app(f, "web", "web:1"))
	f.start()
	f.shows("web/shop/deployment-web.yaml", "image: web:1")
	for _, want := range []int{http.StatusAccepted, http.StatusOK} { // the second is a duplicate
		if got := f.push(commit); got != want {
			t.Errorf("a delivery was answered with %d, want %d", got, want)
		}
	}
	if _, err := post(f.hooks, []byte(`{"git": {"urls": ["https://h/unwatched"], "ref": "refs/heads/main"}}`), "2"); err != nil {
		t.Fatal(err)
	}
	f.deliver("git", "{}", nil, http.StatusUnauthorized)
	mac := hmac.New(sha256.New, []byte(hookKey))
	mac.Write([]byte("{}"))
	f.deliver("hub", "{}", http.Header{ // is ignored
		"X-Github-Event": {"ping"}, "X-Github-Delivery": {"3"}, "X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))},
	}, http.StatusOK)
	f.push(r.Commit("second", app(f, "web", "web:2")))
	f.shows("web/shop/deployment-web.yaml", "image: web:2")
	queries := shownQueries(t)
	f.eventually("looking for what the alerts and the dashboard use", func() string {
		exported, problems := f.exported(), []string{}
		for _, q := range queries {
			for _, problem := range q.check(exported) {
				problems = append(problems, q.where+": "+problem)
			}
		}
		return strings.Join(problems, "\n")
	})
	exported := f.exported()
	for _, wrong := range []shownQuery{
		{expr: "up"}, {expr: "prerig_no_such_metric"}, {expr: `prerig_pipelines{stat="Ready"}`}, {expr: `prerig_pipelines{state=~"Ready|Rady"}`},
		{expr: "sum by (pipeline) (prerig_pipelines)"}, {expr: "prerig_pipelines", labels: []string{"name"}},
	} {
		if len(wrong.check(exported)) == 0 {
			t.Errorf("%s %v was found", wrong.expr, wrong.labels)
		}
	}
	if len(queries) < 35 {
		t.Errorf("found only %d queries", len(queries))
	}
}
