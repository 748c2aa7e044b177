// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package result holds Prerig's messages to the user about an object: the results of the KRM functions
// specification v1 (config.kubernetes.io/v1, kind ResourceList, field results). It does not decide what to report.
package result

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
)

// Severity of a result. The empty value is never written: the specification reads it as error.
type Severity string

// The severities of the KRM functions specification.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// ParseSeverity reads a severity as users write it for a rule: Error, Warning, Info, in whatever case, or Off, for
// which it returns the empty one.
func ParseSeverity(text string) (Severity, error) {
	switch s := Severity(strings.ToLower(text)); s {
	case Error, Warning, Info:
		return s, nil
	case "off":
		return "", nil
	}
	return "", fmt.Errorf("%q is not Error, Warning, Info or Off", text)
}

// ResourceRef names the object that a result is about.
type ResourceRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace,omitempty"`
}

// RefTo names an object.
func RefTo(object map[string]any) (ref ResourceRef) {
	ref.APIVersion, _ = object["apiVersion"].(string)
	ref.Kind, _ = object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	ref.Name, _ = metadata["name"].(string)
	ref.Namespace, _ = metadata["namespace"].(string)
	return ref
}

// GeneratedName returns the generateName of an object, which is the beginning of the name that the API server is going
// to give it.
func GeneratedName(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["generateName"].(string)
	return name
}

// String returns "Kind namespace/name", without the namespace where it is not known.
func (r ResourceRef) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Field names the field of the object that a result is about, as a path such as spec.template.spec.containers[0].image.
type Field struct {
	Path          string `json:"path"`
	CurrentValue  any    `json:"currentValue,omitempty"`
	ProposedValue any    `json:"proposedValue,omitempty"`
}

// File is where the object came from. Index is its position among the documents of the file, from 0; Line is
// counted from 1, and is 0 if unknown. Line is not part of the specification and is encoded in the tags on the
// wire.
type File struct {
	Path  string `json:"path"`
	Index int    `json:"index"`
	Line  int    `json:"-"`
}

// Result is one message to the user.
type Result struct {
	Message     string            `json:"message"`
	Severity    Severity          `json:"severity"`
	ResourceRef *ResourceRef      `json:"resourceRef,omitempty"`
	Field       *Field            `json:"field,omitempty"`
	File        *File             `json:"file,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	// Places are the objects that the result is about if it has several; ResourceRef, Field and File are then nil.
	// On the wire they are in the tags, as the specification has one object for a result.
	Places []Place `json:"-"`
}

// Place is one of several objects that a result is about, with the field and the file where they are known.
type Place struct {
	ResourceRef ResourceRef
	Field       *Field
	File        *File
}

// String returns the object and where it is, such as "Deployment shop/web (k8s/web.yaml:13)".
func (p Place) String() string {
	if p.File == nil || p.File.Path == "" {
		return p.ResourceRef.String()
	}
	return p.ResourceRef.String() + " (" + p.File.String() + ")"
}

// String returns the path and, where it is known, the line, such as "k8s/web.yaml:13".
func (f File) String() string {
	if f.Line > 0 {
		return f.Path + ":" + strconv.Itoa(f.Line)
	}
	return f.Path
}

// TagCode is the tag that carries the stable code of a rule, TagLine the one that carries File.Line on the wire, and
// TagObjects the one that carries the objects of Places, one a line.
const (
	TagCode    = "prerig.dev/code"
	TagLine    = "prerig.dev/line"
	TagObjects = "prerig.dev/objects"
)

// String returns the one-line form for standard error: severity, place, object, field, code and message. The place
// is omitted if the message of a result about a file begins with it anyway. For several objects it prints the
// number and the first.
func (r Result) String() string {
	var b strings.Builder
	b.WriteString(string(r.Severity))
	b.WriteString(": ")
	if r.File != nil && r.File.Path != "" && (r.ResourceRef != nil || !strings.Contains(r.Message, r.File.Path+":")) {
		b.WriteString(r.File.String() + ": ")
	}
	if len(r.Places) > 0 {
		fmt.Fprintf(&b, "%d objects, such as %s: ", len(r.Places), r.Places[0])
	}
	if r.ResourceRef != nil {
		b.WriteString(r.ResourceRef.String())
		if r.Field != nil && r.Field.Path != "" {
			b.WriteString(" " + r.Field.Path)
		}
		b.WriteString(": ")
	}
	b.WriteString(strings.ReplaceAll(r.Message, "\n", " "))
	if code := r.Tags[TagCode]; code != "" {
		fmt.Fprintf(&b, " [%s]", code)
	}
	return b.String()
}

// Results is a list of results in the order in which they are to be shown.
type Results []Result

// Worst returns the highest severity in the list, and "" for an empty one.
func (rs Results) Worst() Severity {
	worst := Severity("")
	for _, r := range rs {
		if r.Severity.Rank() > worst.Rank() {
			worst = r.Severity
		}
	}
	return worst
}

// maxMessage bounds a message in bytes. The longest ones of Prerig itself have a quarter of that.
const maxMessage = 4 << 10

// Bound cuts messages that are too long to be read. They would quote the user's files in full.
func (rs Results) Bound() {
	for i := range rs {
		if len(rs[i].Message) > maxMessage {
			rs[i].Message = foreign.Text(rs[i].Message, maxMessage)
		}
	}
}

// Sort orders by severity, errors first, and keeps the order among equals.
func (rs Results) Sort() {
	sort.SliceStable(rs, func(i, j int) bool { return rs[i].Severity.Rank() > rs[j].Severity.Rank() })
}

// Rank is higher for what is more severe, and 0 for what is no severity.
func (s Severity) Rank() int {
	switch s {
	case Error:
		return 3
	case Warning:
		return 2
	case Info:
		return 1
	}
	return 0
}
