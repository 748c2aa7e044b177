// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// workloadData is the page of a workload.
type workloadData struct {
	workloadRow
	Pipe Pipeline
	// Rules are those that have found something, Findings the lines of the newest run about it.
	Rules    []ruleData
	Findings []string
	Manifest *shownManifest
	Problem  string
	Ticks    tickChart
}

// eventStreamPath implements livePage.
func (d workloadData) eventStreamPath() string {
	return "/events?pipeline=" + url.QueryEscape(d.Pipe.Name)
}

// ruleData is a rule as a page explains it.
type ruleData struct{ Code, Title, Why, Change string }

// explainRule describes a rule of lint or of the gate.
func explainRule(code string) ruleData {
	if rule, ok := lint.Lookup(code); ok {
		return ruleData{code, rule.Title, rule.Why, rule.Change}
	}
	if rule, ok := gate.Lookup(code); ok {
		return ruleData{code, rule.Title, rule.Why, rule.Change}
	}
	return ruleData{Code: code}
}

func (h *pageHandler) workloadPage(w http.ResponseWriter, r *http.Request) {
	e, workload, ok := h.requestedWorkload(w, r)
	if !ok {
		return
	}
	data := workloadData{workloadRow: workload, Pipe: h.views.viewPipeline(e)}
	shown := []workloadRow{data.workloadRow}
	colourVersions(shown, nil)
	data.workloadRow = shown[0]
	data.Ticks = drawTicks(data.Pipe.Runs)
	for _, one := range data.Codes {
		data.Rules = append(data.Rules, explainRule(one.Code))
	}
	data.Findings = findingsAbout(data.Pipe.Runs, workload.Name)
	var err error
	data.Manifest, err = h.manifests.workload(r.Context(), e.Pipeline, h.views.store.Get(e.Key), workload.Name)
	data.Problem = h.problemOf(err)
	h.pages.writePage(w, r, "workload", workload.Name, data)
}

// findingsAbout returns what the newest run with findings has found about a workload.
func findingsAbout(runs []status.Run, workload string) (out []string) {
	for _, run := range runs {
		if len(run.Findings) == 0 {
			continue
		}
		for _, line := range run.Findings {
			if strings.Contains(line, workload+" ") || strings.Contains(line, workload+":") {
				out = append(out, line)
			}
		}
		return out
	}
	return nil
}
