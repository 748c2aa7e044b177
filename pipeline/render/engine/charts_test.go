// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// watchedReader tells of each look at a tree.
type watchedReader struct {
	tree.Reader
	looked func(name string)
}

func (r watchedReader) Lookup(name string) (tree.Info, error) {
	r.looked(name)
	return r.Reader.Lookup(name)
}

func (r watchedReader) Read(name string) ([]byte, error) {
	r.looked(name)
	return r.Reader.Read(name)
}

// chartRequest is one for a chart of the source.
func chartRequest(at string) render.Request {
	r := request("")
	r.Type, r.Helm = v1alpha1.BuildHelm, &v1alpha1.Helm{Chart: at}
	return r
}

// chartOf returns a Chart.yaml with dependencies, each a name and a repository.
func chartOf(dependencies ...string) string {
	var out strings.Builder
	out.WriteString("apiVersion: v2\nname: x\nversion: 1.0.0\ndependencies:\n")
	for _, one := range dependencies {
		name, repository, _ := strings.Cut(one, " ")
		fmt.Fprintf(&out, "- {name: %s, version: '1', repository: '%s'}\n", name, repository)
	}
	return out.String()
}

// namesOf returns the names of charts, each once.
func namesOf(found []render.ChartReference) string {
	var names []string
	for _, one := range found {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

const chartServer = "https://charts.example.com/"

// selfish are charts that are inside of themselves many times, those with links with one dependency of a repository.
func selfish() map[string]map[string]string {
	files, links := []string{"web " + chartServer}, map[string]string{"app/Chart.yaml": chartOf("web " + chartServer)}
	both := map[string]string{}
	for i := range 30 {
		files = append(files, fmt.Sprintf("x%d file://.", i))
		links[fmt.Sprintf("app/charts/x%d", i)] = "->.."
		both[fmt.Sprintf("app/y/z%d", i)] = "->.."
	}
	for i := range 30 {
		files = append(files, fmt.Sprintf("y%d file://y/z%d", i, i))
	}
	both["app/Chart.yaml"] = chartOf(files...)
	return map[string]map[string]string{"dependencies": {"app/Chart.yaml": chartOf(files[1:31]...)}, "links": links, "dependencies by links": both}
}

// A chart that depends on itself, by name or by links, is looked at a few times and not once for each way to it.
func TestChartInsideOfItselfIsLookedAtOnce(t *testing.T) {
	for name, files := range selfish() {
		t.Run(name, func(t *testing.T) {
			looks, want := 0, "web"
			if name == "dependencies" {
				want = ""
			}
			reader := watchedReader{tree.NewView(build(t, files), tree.Limits{}), func(string) {
				if looks++; looks > 10_000 {
					t.Fatal("there is no end to it")
				}
			}}
			found, err := reference.FindCharts(ctx, reader, chartRequest("app"))
			if err != nil || namesOf(found) != want {
				t.Errorf("got %v, %v", found, err)
			}
			in := map[string]string{"k/kustomization.yaml": "helmGlobals: {chartHome: ..}\nhelmCharts: [{name: app}]\n"}
			for at, text := range files {
				in[at] = text
			}
			looks, reader.Reader = 0, tree.NewView(build(t, in), tree.Limits{})
			if found, err = reference.FindCharts(ctx, reader, request("k")); err != nil || namesOf(found) != want {
				t.Errorf("in a kustomization: got %v, %v", found, err)
			}
		})
	}
}

// A chart that is reached in several ways has all that is found in any of them.
func TestChartThatIsReachedTwice(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		at    string
		want  string
	}{
		"by two others": {map[string]string{
			"app/Chart.yaml": chartOf("a file://../a", "b file://../b"), "a/Chart.yaml": chartOf("c file://../c"), "b/Chart.yaml": chartOf("c file://../c", "d "+chartServer),
			"c/Chart.yaml": chartOf("e " + chartServer),
		}, "app", "d e"},
		"by links, beside other charts": {map[string]string{
			"app/Chart.yaml": chartOf("dev file://dev/web", "prod file://prod/web"), "app/dev/web": "->../../web", "app/prod/web": "->../../web",
			"web/Chart.yaml": chartOf("lib file://../lib"), "app/dev/lib/Chart.yaml": chartOf("old " + chartServer), "app/prod/lib/Chart.yaml": chartOf("new " + chartServer),
		}, "app", "new old"},
		"too deep at first": {map[string]string{
			"x0/Chart.yaml": chartOf("x1 file://../x1", "x8 file://../x8"), "x1/Chart.yaml": chartOf("x2 file://../x2"), "x2/Chart.yaml": chartOf("x3 file://../x3"),
			"x3/Chart.yaml": chartOf("x4 file://../x4"), "x4/Chart.yaml": chartOf("x5 file://../x5"), "x5/Chart.yaml": chartOf("x6 file://../x6"),
			"x6/Chart.yaml": chartOf("x7 file://../x7"), "x7/Chart.yaml": chartOf("x8 file://../x8"), "x8/Chart.yaml": chartOf("x9 file://../x9"),
			"x9/Chart.yaml": chartOf("last " + chartServer),
		}, "x0", "last"},
	} {
		found, err := reference.FindCharts(ctx, tree.NewView(build(t, tc.files), tree.Limits{}), chartRequest(tc.at))
		if got := namesOf(found); err != nil || got != tc.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, tc.want)
		}
	}
}

// The search ends with its context, and is bounded without one.
func TestFindChartsEnds(t *testing.T) {
	files := map[string]string{"app/Chart.yaml": chartOf("a file://../a"), "a/Chart.yaml": chartOf("b " + chartServer), "k/kustomization.yaml": "helmCharts: [{name: app}]\n"}
	for at, r := range map[string]render.Request{"app": chartRequest("app"), "k": request("k")} {
		stopped, stop := context.WithCancel(ctx)
		defer stop()
		reader := watchedReader{tree.NewView(build(t, files), tree.Limits{}), func(name string) {
			if strings.HasPrefix(name, at+"/") {
				stop()
			}
		}}
		if _, err := reference.FindCharts(stopped, reader, r); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", at, err)
		}
	}
	var many []string
	for i := range 14_000 {
		many = append(many, fmt.Sprintf("x%d file://x%d", i, i))
	}
	files = map[string]string{"app/Chart.yaml": chartOf(many...), "app/charts/sub/Chart.yaml": chartOf(many...)}
	_, err := reference.FindCharts(ctx, tree.NewView(build(t, files), tree.Limits{}), chartRequest("app"))
	var limit *tree.LimitError
	if !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
}
