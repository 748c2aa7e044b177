// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Report counts the cases and keeps the smallest of each class of differences.
type Report struct {
	options        Options
	counts         map[Result]int
	byInstallation map[string]map[Result]int
	exceptions     map[string]int
	classes        map[string]*class
	unreadable     map[string]int
}

// class are the cases that differ in a field.
type class struct {
	name  string
	count int
	// smallest is the case with the shortest workload.
	smallest *Case
	size     int
	where    map[string]int
}

func newReport(o Options) *Report {
	return &Report{options: o, counts: map[Result]int{}, byInstallation: map[string]map[Result]int{},
		exceptions: map[string]int{}, classes: map[string]*class{}, unreadable: map[string]int{}}
}

// Differences is the number of cases that differ and are not excepted.
func (r *Report) Differences() int { return r.counts[Different] }

func (r *Report) addInstallationCases(installation string, cases []*Case) {
	counts := map[Result]int{}
	r.byInstallation[installation] = counts
	for _, k := range cases {
		counts[k.Result]++
		r.counts[k.Result]++
		for _, name := range k.Exceptions {
			r.exceptions[name]++
		}
		switch k.Result {
		case Different:
			r.countCaseClasses(k)
		case Unreadable:
			r.unreadable[number.ReplaceAllString(firstBytes(k.ClusterRefused, 100), "N")]++
		}
	}
}

func (r *Report) countCaseClasses(k *Case) {
	for _, name := range k.differenceClasses() {
		c := r.classes[name]
		if c == nil {
			c = &class{name: name, where: map[string]int{}}
			r.classes[name] = c
		}
		c.count++
		c.where[k.Installation]++
		// A case with one difference shows it better than a small one with many.
		size := len(toJSON(k.Workload)) + 10000*len(k.Differences)
		if c.smallest == nil || size < c.size || size == c.size && k.Name() < c.smallest.Name() {
			c.smallest, c.size = k, size
		}
	}
}

var number = regexp.MustCompile(`\d+`)

// differenceClasses names the fields in which a case differs, or who refuses it and why.
func (k *Case) differenceClasses() []string {
	if k.ClusterRefused != "" {
		return []string{"only the cluster refuses: " + number.ReplaceAllString(firstBytes(k.ClusterRefused, 90), "N")}
	}
	if k.PrerigRefused != "" {
		return []string{"only Prerig refuses: " + number.ReplaceAllString(firstBytes(k.PrerigRefused, 90), "N")}
	}
	var places []string
	for _, d := range k.Differences {
		places = append(places, number.ReplaceAllString(d.Place, "N"))
	}
	slices.Sort(places)
	return slices.Compact(places)
}

func firstBytes(s string, n int) string { return strings.ReplaceAll(s[:min(n, len(s))], "\n", " ") }

// Write writes the report: the counts, and each class with its smallest case.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Istio %s, seed %d: %d workloads in %d installations\n\n", r.options.Version, r.options.Seed,
		r.options.Count, len(r.byInstallation))
	for _, result := range []Result{EqualInjected, EqualLeft, RefusedByBoth, Unreadable, Newer, Excepted, Different} {
		fmt.Fprintf(&b, "%8d  %s\n", r.counts[result], result)
	}
	for _, why := range slices.Sorted(maps.Keys(r.unreadable)) {
		fmt.Fprintf(&b, "\n%8d  not readable: %s", r.unreadable[why], why)
	}
	for _, e := range append(slices.Clone(exceptions), afterRemoval, lastOfKey, repeatedVariable, quoted, bootstrapScript) {
		if n := r.exceptions[e.name]; n > 0 {
			fmt.Fprintf(&b, "\n%8d  %s: %s\n", n, e.name, e.reason)
		}
	}
	if len(r.classes) > 0 {
		fmt.Fprintf(&b, "\ndifferent by installation:")
		for _, name := range slices.Sorted(maps.Keys(r.byInstallation)) {
			if n := r.byInstallation[name][Different]; n > 0 {
				fmt.Fprintf(&b, " %s %d,", name, n)
			}
		}
		b.WriteString("\n")
	}
	classes := slices.SortedFunc(maps.Values(r.classes), func(a, b *class) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.name, b.name))
	})
	for _, c := range classes {
		c.writeClassSummary(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shown is the most bytes of a value that a report shows.
const shown = 400

func (c *class) writeClassSummary(b *strings.Builder) {
	k := c.smallest
	fmt.Fprintf(b, "\n%8d  %s\n          case %s\n", c.count, c.name, k.Name())
	if k.ClusterRefused != "" {
		fmt.Fprintf(b, "          cluster refuses: %s\n", firstBytes(k.ClusterRefused, 2*shown))
	}
	if k.PrerigRefused != "" {
		fmt.Fprintf(b, "          Prerig refuses:  %s\n", firstBytes(k.PrerigRefused, 2*shown))
	}
	for i, d := range k.Differences {
		if i == 4 {
			fmt.Fprintf(b, "          … and %d more\n", len(k.Differences)-i)
			break
		}
		fmt.Fprintf(b, "          %s\n            cluster %s\n            Prerig  %s\n", d.Place,
			firstBytes(d.Cluster, shown), firstBytes(d.Prerig, shown))
	}
}
