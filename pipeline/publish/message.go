// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/prerig/prerig/pipeline/render"
)

// Names of the trailers of a commit.
const (
	TrailerPipeline = "Prerig-Pipeline"
	TrailerRemoved  = "Prerig-Removed"
	TrailerSource   = "Prerig-Source"
	TrailerRevision = "Prerig-Source-Revision"
	TrailerPolicy   = "Prerig-Policy"
	TrailerVersion  = "Prerig-Version"
	TrailerCommand  = "Prerig-Command"
)

const defaultSubject = `Render {{.Name}}{{if .Source.Subject}}: {{.Source.Subject}}{{else}} from {{.Source.Revision}}{{end}}`

const removalSubject = `Remove {{.Name}}: its pipeline is gone`

// maxSubject bounds the first line.
const maxSubject = 200

// maxNamed bounds the pipelines that a commit names one by one.
const maxNamed = 50

// subjectData is what the template of a subject sees.
type subjectData struct {
	// Name and Namespace of the pipeline, Path and Branch that are written, Count of objects.
	Name, Namespace, Path, Branch string
	Count                         int
	// Source is the origin.
	Source struct{ URL, Revision, Subject, Author string }
}

// CheckSubject reports what is wrong with a template for the subject of a commit. The commit that it is tried with has a value
// in every field, and long ones, so that a template which cuts them passes.
func CheckSubject(text string) error {
	_, err := renderSubject(Change{
		Pipeline: "namespace/name-of-a-pipeline", Path: "directory/of/the/pipeline", Subject: text, Objects: make([]render.Object, 3),
		Origin: Origin{
			URL: "https://git.example.com/organisation/repository", Revision: "main@sha1:" + strings.Repeat("0123456789", 4),
			Author: "Name of the Author", Subject: "The subject of the commit that the source is at, as long as most of them are",
		},
	}, "environments/production")
	return err
}

// renderSubject renders the first line. Templates have text/template's own functions, none of which reads anything.
func renderSubject(c Change, branch string) (string, error) {
	text := c.Subject
	switch {
	case c.Remove:
		text = removalSubject // a user's template tells of renders
	case text == "":
		text = defaultSubject
	}
	parsed, err := template.New("message").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fmt.Errorf("reading the template of the commit message: %w", err)
	}
	data := subjectData{Path: c.Path, Branch: branch, Count: len(c.Objects)}
	data.Name = c.Pipeline
	if namespace, name, ok := strings.Cut(c.Pipeline, "/"); ok {
		data.Namespace, data.Name = namespace, name
	}
	data.Source.URL, data.Source.Revision = c.Origin.URL, c.Origin.Revision
	data.Source.Subject, data.Source.Author = c.Origin.Subject, c.Origin.Author
	var out bytes.Buffer
	if err := parsed.Execute(&limitedWriter{w: &out, left: 64 << 10}, data); err != nil {
		return "", fmt.Errorf("rendering the template of the commit message: %w", err)
	}
	return oneLine(out.String(), maxSubject), nil
}

type limitedWriter struct {
	w    io.Writer
	left int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, fmt.Errorf("the text is too long")
	}
	return l.w.Write(p)
}

// commitMessage is the whole text of a commit: one subject, a list where several pipelines changed, and trailers.
func commitMessage(changes []Change, branch string) (string, error) {
	var out strings.Builder
	first, err := renderSubject(changes[0], branch)
	if err != nil {
		return "", err
	}
	if len(changes) > 1 {
		first = summarySubject(changes)
		if one := commonOrigin(changes); one.Subject != "" {
			first = oneLine(first+": "+one.Subject, maxSubject)
		}
	}
	if first == "" {
		first = "Render " + changes[0].Pipeline
	}
	out.WriteString(first + "\n\n")
	trailers := map[string]bool{}
	add := func(key, value string) {
		line := key + ": " + oneLine(value, 2000)
		if value != "" && !trailers[line] {
			trailers[line] = true
			out.WriteString(line + "\n")
		}
	}
	if more := len(changes) - maxNamed; more > 0 {
		fmt.Fprintf(&out, "%d pipelines are not named below.\n\n", more)
	}
	named := changes[:min(len(changes), maxNamed)]
	for _, c := range named {
		add(TrailerPipeline, c.Pipeline)
		if c.Remove {
			add(TrailerRemoved, c.Pipeline)
		}
	}
	for _, c := range changes {
		add(TrailerSource, c.Origin.URL)
		add(TrailerRevision, c.Origin.Revision)
		add(TrailerPolicy, c.PolicyDigest)
		add(TrailerVersion, c.Tool)
	}
	for _, c := range named {
		add(TrailerCommand, c.Command)
	}
	return out.String(), nil
}

// summarySubject is the subject for several pipelines.
func summarySubject(changes []Change) string {
	removed := 0
	for _, c := range changes {
		if c.Remove {
			removed++
		}
	}
	switch rendered := len(changes) - removed; {
	case removed == 0:
		return fmt.Sprintf("Render %d pipelines", rendered)
	case rendered == 0:
		return fmt.Sprintf("Remove %d pipelines that are gone", removed)
	default:
		return fmt.Sprintf("Render %d pipelines, remove %d that are gone", rendered, removed)
	}
}

func commonOrigin(changes []Change) Origin {
	for _, c := range changes[1:] {
		if c.Origin != changes[0].Origin {
			return Origin{}
		}
	}
	return changes[0].Origin
}

func oneLine(text string, max int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > max {
		text = strings.ToValidUTF8(text[:max-3], "") + "..."
	}
	return text
}
