// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
)

// The parts of SARIF 2.1.0 (OASIS) that are written.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool `json:"tool"`
		ColumnKind string    `json:"columnKind"`
		// Invocations list what could not be checked.
		Invocations []sarifInvocation `json:"invocations,omitempty"`
		Results     []sarifResult     `json:"results"`
		// Properties holds the numbers of checked pods, of injected ones among them, and of findings that are not
		// among the results. Git hosts show a result as an alert even if it is marked as suppressed, so suppressed
		// ones are omitted.
		Properties map[string]int `json:"properties"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications"`
	}
	sarifNotification struct {
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string              `json:"id"`
		ShortDescription sarifText           `json:"shortDescription"`
		FullDescription  sarifText           `json:"fullDescription"`
		Help             sarifMarkdown       `json:"help"`
		HelpURI          string              `json:"helpUri"`
		Default          sarifConfiguration  `json:"defaultConfiguration"`
		Properties       map[string][]string `json:"properties"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifMarkdown struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown"`
	}
	sarifConfiguration struct {
		Enabled bool   `json:"enabled"`
		Level   string `json:"level"`
	}
	sarifResult struct {
		RuleID              string            `json:"ruleId,omitempty"`
		RuleIndex           *int              `json:"ruleIndex,omitempty"`
		Level               string            `json:"level"`
		Message             sarifText         `json:"message"`
		Locations           []sarifLocation   `json:"locations,omitempty"`
		RelatedLocations    []sarifLocation   `json:"relatedLocations,omitempty"`
		PartialFingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
)

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	repository  = "https://github.com/prerig/prerig"
)

// SARIF writes one run with all rules and the results. The fingerprint of a result is made of its rule, object and field, so that
// a Git host knows it again when lines move.
func SARIF(w io.Writer, rs result.Results, o Options) error {
	index := map[string]int{}
	driver := sarifDriver{Name: "prerig", Version: o.Version, InformationURI: repository, Rules: o.sarifRules()}
	for i, r := range driver.Rules {
		index[r.ID] = i
	}
	run := sarifRun{Tool: sarifTool{Driver: driver}, ColumnKind: "utf16CodeUnits", Results: []sarifResult{},
		Properties: map[string]int{"suppressed": len(o.Suppressed)}}
	if o.Objects != nil {
		run.Properties["objects"] = *o.Objects
	}
	if o.Objects == nil || o.Pods > 0 {
		run.Properties["pods"], run.Properties["injected"] = o.Pods, o.Injected
	}
	if o.Baseline != nil {
		run.Properties["baseline"] = o.Baseline.Known
	}
	seen := map[string]int{}
	for _, r := range rs {
		if r.Severity == result.Error && r.Tags[result.TagCode] == "" {
			run.addNotification(r)
			continue
		}
		run.Results = append(run.Results, o.resultOf(r, index, seen))
	}
	return writeIndentedJSON(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

// addNotification notes an error that no rule made: something could not be checked.
func (run *sarifRun) addNotification(r result.Result) {
	if run.Invocations == nil {
		run.Invocations = []sarifInvocation{{}}
	}
	run.Invocations[0].Notifications = append(run.Invocations[0].Notifications,
		sarifNotification{Level: sarifLevel(r.Severity), Message: sarifText{r.Message}, Locations: sarifLocations(r.ResourceRef, r.Field, r.File)})
}

// sarifRules describes the rules that findings may be of.
func (o Options) sarifRules() []sarifRule {
	out := []sarifRule{}
	if o.Rules == nil {
		for _, r := range lint.Rules() {
			out = append(out, ruleOf(r))
		}
		return out
	}
	for _, r := range o.Rules {
		out = append(out, sarifRule{
			ID:               r.Code,
			ShortDescription: sarifText{r.Title},
			FullDescription:  sarifText{r.Why},
			Help:             sarifMarkdown{Text: r.Why + "\n\n" + r.Change, Markdown: r.Why + "\n\n**What to change.** " + r.Change},
			HelpURI:          repository + "/blob/main/" + r.Document,
			Default:          sarifConfiguration{Enabled: r.Severity != "", Level: sarifLevel(r.Severity)},
			Properties:       map[string][]string{"tags": {strings.ToLower(r.Group)}},
		})
	}
	return out
}

func ruleOf(r lint.Rule) sarifRule {
	uri := repository + "/blob/main/" + lint.DocumentPath + "#" + strings.ToLower(r.Code)
	text := r.Why + "\n\n" + r.Change
	markdown := r.Why + "\n\n**What to change.** " + r.Change
	if refs := r.References(); len(refs) > 0 {
		text += "\n\nAnswers " + strings.Join(refs, ", ") + "."
		markdown += "\n\nAnswers " + strings.Join(refs, ", ") + "."
	}
	return sarifRule{
		ID:               r.Code,
		ShortDescription: sarifText{r.Title},
		FullDescription:  sarifText{r.Why},
		Help:             sarifMarkdown{Text: text, Markdown: markdown},
		HelpURI:          uri,
		Default:          sarifConfiguration{Enabled: r.Severity != "", Level: sarifLevel(r.Severity)},
		Properties:       map[string][]string{"tags": {strings.ToLower(r.Group())}},
	}
}

func sarifLevel(s result.Severity) string {
	switch s {
	case result.Error:
		return "error"
	case result.Warning:
		return "warning"
	}
	return "note"
}

func (o Options) resultOf(r result.Result, index map[string]int, seen map[string]int) sarifResult {
	code := r.Tags[result.TagCode]
	out := sarifResult{RuleID: code, Level: sarifLevel(r.Severity), Message: sarifText{r.Message}}
	if i, ok := index[code]; ok {
		out.RuleIndex = &i
	}
	object, field := "", ""
	if r.ResourceRef != nil {
		object = r.ResourceRef.APIVersion + " " + r.ResourceRef.String()
	}
	if r.Field != nil {
		field = r.Field.Path
	}
	out.PartialFingerprints = map[string]string{"prerig/v1": findingFingerprint(code, object, field, r, seen)}
	if len(r.Places) == 0 {
		out.Locations = sarifLocations(r.ResourceRef, r.Field, r.File)
		return out
	}
	// Git hosts show the first location.
	first := r.Places[0]
	out.Message.Text = countWithNoun(len(r.Places), o.placeNoun()) + ": " + out.Message.Text
	out.Locations = sarifLocations(&first.ResourceRef, first.Field, first.File)
	for _, p := range r.Places[1:] {
		out.RelatedLocations = append(out.RelatedLocations, sarifLocations(&p.ResourceRef, p.Field, p.File)...)
	}
	return out
}

// sarifLocations returns one location, or none if it is unknown.
func sarifLocations(ref *result.ResourceRef, field *result.Field, file *result.File) []sarifLocation {
	var at sarifLocation
	if file != nil && file.Path != "" && file.Path != "-" {
		at.Physical = &sarifPhysical{Artifact: sarifArtifact{fileToURI(file.Path)}}
		if file.Line > 0 {
			at.Physical.Region = &sarifRegion{file.Line}
		}
	}
	if ref != nil {
		at.Logical = append(at.Logical, sarifLogical{FullyQualifiedName: ref.String(), Kind: "resource"})
	}
	if field != nil && field.Path != "" {
		at.Logical = append(at.Logical, sarifLogical{FullyQualifiedName: field.Path, Kind: "member"})
	}
	if at.Physical == nil && at.Logical == nil {
		return nil
	}
	return []sarifLocation{at}
}

// findingFingerprint distinguishes equal findings, of which an object may have several, by number.
func findingFingerprint(code, object, field string, r result.Result, seen map[string]int) string {
	container := r.Tags[lint.TagContainer]
	if container != "" {
		// The index of a container moves when another one is added; its name does not.
		field = container + " " + field[strings.LastIndex(field, "]")+1:]
	}
	key := strings.Join([]string{code, object, field}, "\x00")
	if code == "" || len(r.Places) > 0 { // the objects that a finding about the mesh concerns change, and it stays the same
		key += "\x00" + r.Message
	}
	n := seen[key]
	seen[key]++
	sum := sha256.Sum256([]byte(key + "\x00" + strconv.Itoa(n)))
	return hex.EncodeToString(sum[:16])
}

// fileToURI makes a relative reference of a file's path, with slashes and what needs escaping escaped.
func fileToURI(file string) string {
	clean := path.Clean(filepath.ToSlash(file))
	u := url.URL{Path: clean}
	if path.IsAbs(clean) {
		u.Scheme = "file"
	}
	return u.String()
}
