// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/git"
)

// Names of the trailers of a commit.
const (
	TrailerPipeline = "Prerig-Pipeline"
	TrailerRemoved  = "Prerig-Removed"
	TrailerSource   = "Prerig-Source"
	TrailerRevision = "Prerig-Source-Revision"
	TrailerMounted  = "Prerig-Mounted-Source"
	TrailerPolicy   = "Prerig-Policy"
	TrailerVersion  = "Prerig-Version"
	TrailerCommand  = "Prerig-Command"
	// TrailerReverts names a commit by others whose changes to a pipeline's files are undone.
	TrailerReverts = "Prerig-Reverts"
	// TrailerSnapshot names a policy that was completed from a cluster, by its digest.
	TrailerSnapshot = "Prerig-Cluster-Snapshot"
)

const defaultSubject = `Render {{.Name}}{{if .Source.Subject}}: {{.Source.Subject}}{{else}} from {{.Source.Revision}}{{end}}`

const removalSubject = `Remove {{.Name}}: its pipeline was deleted`

// maxSubject bounds the first line, and what a template sees of the source's commit.
const maxSubject = 200

// Limits of the subject template. It runs in the daemon but is supplied by others: it must end almost instantly,
// whatever it contains.
const (
	maxTemplate      = 16 << 10 // bytes of its text
	maxTemplateSteps = 1000
	maxMessage       = 64 << 10 // bytes that it prints
)

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

// CheckSubject reports what is wrong with a template for the subject of a commit. The commit that it is tried with has
// a value in every field, and long ones, so that a template which cuts them passes.
func CheckSubject(text string) error {
	_, err := renderSubject(Change{
		Pipeline: "namespace/name-of-a-pipeline", Path: "directory/of/the/pipeline", Subject: text,
		Objects: make([]render.Object, 3),
		Origin: Origin{
			URL:      "https://git.example.com/organisation/repository",
			Revision: "main@sha1:" + strings.Repeat("0123456789", 4),
			Author:   "Name of the Author", Subject: "The subject of the commit that the source is at, as long as most of them are",
		},
	}, "environments/production")
	return err
}

// renderSubject renders the first line. Templates have text/template's own functions, none of which reads anything.
func renderSubject(c Change, branch string) (string, error) {
	text := c.Subject
	switch {
	case c.Remove:
		text = removalSubject // a user's template describes renders
	case text == "":
		text = defaultSubject
	}
	if len(text) > maxTemplate {
		return "", fmt.Errorf("reading the template of the commit message: it has more than %d bytes", maxTemplate)
	}
	parsed, err := template.New("message").Funcs(messageFunctions()).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", fmt.Errorf("reading the template of the commit message: %w", err)
	}
	marks := gotemplate.Marks{}
	marks.Count(parsed)
	data := subjectData{Path: c.Path, Branch: branch, Count: len(c.Objects)}
	data.Name = c.Pipeline
	if namespace, name, ok := strings.Cut(c.Pipeline, "/"); ok {
		data.Namespace, data.Name = namespace, name
	}
	data.Source.URL, data.Source.Revision = c.Origin.URL, c.Origin.Revision
	// A commit of the source may have a first line of megabytes.
	data.Source.Subject = foreign.Line(withoutInstructions(c.Origin.Subject), maxSubject)
	data.Source.Author = foreign.Line(withoutInstructions(c.Origin.Author), maxSubject)
	out := gotemplate.NewOutput(maxMessage, marks)
	out.MaxSteps = maxTemplateSteps
	if err := parsed.Execute(out, data); err != nil {
		return "", fmt.Errorf("making the commit message: %w", gotemplate.ExecuteError("message", err))
	}
	return foreign.Line(out.String(), maxSubject), nil
}

// messageFunctions returns the functions of text/template, which read no external data, with limits on those that
// can generate arbitrarily long text.
func messageFunctions() template.FuncMap {
	functions := template.FuncMap{}
	gotemplate.Bound(functions)
	return functions
}

// commitMessage is the whole text of a commit: one subject, a list where several pipelines changed, and trailers.
func commitMessage(changes []Change, branch string) string {
	var out strings.Builder
	out.WriteString(commitSubject(changes, branch) + "\n\n")
	trailers := map[string]bool{}
	add := func(key, value string) {
		line := key + ": " + foreign.Line(value, 2000)
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
		for _, one := range c.Origin.Mounted {
			add(TrailerMounted, mountedText(one))
		}
		add(TrailerPolicy, c.PolicyDigest)
		for _, digest := range c.Snapshots {
			add(TrailerSnapshot, digest)
		}
		add(TrailerVersion, c.Tool)
	}
	for _, c := range named {
		add(TrailerCommand, c.Command)
	}
	for _, c := range changes {
		if c.undoes != nil && !c.undoes.commit.IsZero() {
			add(TrailerReverts, c.undoes.commit.String())
		}
	}
	return out.String()
}

// commitSubject returns the first line of a commit. A template that fails for a result does not block publishing.
func commitSubject(changes []Change, branch string) string {
	if undoes := onlyUndo(changes); undoes != nil {
		return undoSubject(changes, undoes)
	}
	if len(changes) > 1 {
		first := summarySubject(changes)
		if one := commonOrigin(changes); one.Subject != "" {
			first = foreign.Line(first+": "+withoutInstructions(one.Subject), maxSubject)
		}
		return first
	}
	c := changes[0]
	first, err := renderSubject(c, branch)
	if err != nil && c.Subject != "" {
		c.Subject = ""
		first, err = renderSubject(c, branch)
	}
	if first == "" || err != nil {
		first = foreign.Line("Render "+c.Pipeline, maxSubject)
	}
	return first
}

// subjectWarning returns why the default subject replaces a change's own, or "" if it does not.
func subjectWarning(c Change, branch string) string {
	if _, err := renderSubject(c, branch); err != nil {
		return fmt.Sprintf("git.message cannot be used for this result, whose commit has the default one: %s", err)
	}
	return ""
}

// mountedText describes a further source in a trailer or an annotation.
func mountedText(one v1alpha1.SourceRevision) string {
	return strings.Join(slices.DeleteFunc([]string{one.MountPath, one.URL, one.Revision}, func(s string) bool { return s == "" }), " ")
}

// summarySubject is the subject for several pipelines.
func summarySubject(changes []Change) string {
	removed := 0
	for _, c := range changes {
		if c.Remove {
			removed++
		}
	}
	rendered := len(changes) - removed
	switch {
	case removed == 0:
		return fmt.Sprintf("Render %d pipelines", rendered)
	case rendered == 0:
		return fmt.Sprintf("Remove %d deleted pipelines", removed)
	default:
		return fmt.Sprintf("Render %d pipelines, remove %d deleted ones", rendered, removed)
	}
}

func commonOrigin(changes []Change) Origin {
	for _, c := range changes[1:] {
		if !c.Origin.equal(changes[0].Origin) {
			return Origin{}
		}
	}
	return changes[0].Origin
}

// ciInstruction matches instructions to hosts to skip the checks of a commit: GitHub, GitLab, Bitbucket, Gitea and
// Azure DevOps recognize these.
var ciInstruction = lazyregexp.New(`(?i)\[((?:skip|no)[ -](?:ci|actions)|(?:ci|actions)[ -]skip)\]|\*\*\*(no_ci)\*\*\*`)

// withoutInstructions defuses CI instructions in a text of the source's commit, so that they do not reach the host
// of the rendered branch: skipping the checks of a source does not imply skipping those of its result.
func withoutInstructions(text string) string { return ciInstruction.ReplaceAllString(text, "($1$2)") }

// editedMessage describes whose commits keep a head as it is.
func editedMessage(head string, newest *git.Commit) string {
	return fmt.Sprintf("%s has commits that are not Prerig's, the newest %.12s by %s: %s; nothing is pushed over them",
		head, newest.Hash,
		foreign.Line(newest.Author+" <"+newest.AuthorEmail+">", maxSubject), foreign.Line(newest.Subject, maxSubject))
}
