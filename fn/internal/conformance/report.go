// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"text/tabwriter"
)

// Report is the outcome of a corpus.
type Report struct {
	Versions []VersionReport
}

// VersionReport is the outcome of one version.
type VersionReport struct {
	Name     string
	Outcomes []Outcome
}

// RunAll runs every case that wanted wants, on all cores; nil wants all.
func RunAll(versions []*Version, wanted func(*Case) bool) Report {
	var report Report
	for _, v := range versions {
		var cases []*Case
		for _, c := range v.Cases {
			if wanted == nil || wanted(c) {
				cases = append(cases, c)
			}
		}
		outcomes := make([]Outcome, len(cases))
		var group sync.WaitGroup
		slots := make(chan struct{}, runtime.GOMAXPROCS(0))
		for i, c := range cases {
			slots <- struct{}{}
			group.Go(func() {
				outcomes[i] = c.Run()
				<-slots
			})
		}
		group.Wait()
		report.Versions = append(report.Versions, VersionReport{Name: v.Version.String(), Outcomes: outcomes})
	}
	return report
}

// Count is the number of cases that came out so.
func (v VersionReport) Count(s Status) int {
	n := 0
	for _, o := range v.Outcomes {
		if o.Status == s {
			n++
		}
	}
	return n
}

// Good reports whether every case is equal, or equal but for webhook-only fields.
func (r Report) Good() bool {
	for _, v := range r.Versions {
		if v.Count(Different)+v.Count(Failed) > 0 {
			return false
		}
	}
	return true
}

// Write prints the table, and below it the cases that are not equal; verbose adds the differences.
func (r Report) Write(w io.Writer, verbose bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "version\tcases\tequal\tequal but for webhook-only fields\tdifferent\terror\t")
	for _, v := range r.Versions {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t\n", v.Name, len(v.Outcomes),
			v.Count(Equal), v.Count(EqualButWebhookOnly), v.Count(Different), v.Count(Failed))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, v := range r.Versions {
		for _, o := range v.Outcomes {
			for _, note := range o.Notes {
				if _, err := fmt.Fprintf(w, "%s %s: note: %s\n", v.Name, o.Case.Name, note); err != nil {
					return err
				}
			}
			if o.Status == Equal {
				continue
			}
			if err := o.writeFailedCase(w, v.Name, verbose); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeFailedCase prints one case that is not equal: always why, but the whole difference only if verbose.
func (o Outcome) writeFailedCase(w io.Writer, version string, verbose bool) error {
	line := fmt.Sprintf("%s %s: %s", version, o.Case.Name, o.Status)
	switch {
	case o.Status == Different && !verbose:
	case o.Status == Different:
		line += "\n" + o.Detail
	default:
		line += ": " + o.Detail
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
