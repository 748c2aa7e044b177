// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	k8sjson "sigs.k8s.io/json"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/helmchart"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Object is an object of a build, or one beside it.
type Object struct {
	// Value is the object.
	Value map[string]any
	// Locate returns the location of a field of the object, or of the object itself, or nil if unknown. It may be
	// nil.
	Locate func(path []any) *result.File
}

// Ref returns the identity of the object.
func (o *Object) Ref() result.ResourceRef { return result.RefTo(o.Value) }

// groupOfObject returns the API group of the object.
func (o *Object) groupOfObject() string {
	group, _, found := strings.Cut(o.Ref().APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Inputs are what releases are rendered from.
type Inputs struct {
	// Spec holds the pipeline's settings for releases.
	Spec *v1alpha1.Releases
	// Files are those of the source, and Archives the charts that were fetched.
	Files    tree.Reader
	Archives []helmchart.Archive
	// Trees are the Git repositories whose files are available.
	Trees []render.Repository
	// Objects are those that releases can refer to.
	Objects []*Object
	// Warn is called with warnings about the output of charts.
	Warn func(message string)
	// BuildKustomize builds a kustomization of a tree to the text of its objects.
	BuildKustomize func(ctx context.Context, files tree.Reader, at string) ([]string, error)
	// Own is NAMESPACE/NAME of the GitRepository that is the source itself; "" where none does.
	Own string
	// MountArtifact makes an ExternalArtifact part of Files, and returns its root there and the directory of the chart in it; nil
	// without Flux.
	MountArtifact func(namespace, name string) (root, chart string, err error)
	// Substituted reports whether the variables of Flux have their values, so that what looks like one is text.
	Substituted bool
}

// Chart is a chart of a repository that is needed but not available.
type Chart struct {
	// Repository is the URL, Name the chart's name and Range the version that is asked for.
	Repository, Name, Range string
	// Where is the object and field that asks for it, and Field the field alone.
	Where, Field string
}

// Rendered is what came of a release.
type Rendered struct {
	// Manifests are those that would be installed, without Created.
	Manifests []Manifest
	// Namespace is that of objects which have none and are not cluster-wide.
	Namespace string
	// Created is a Namespace that would be created, nil where none would.
	Created map[string]any
	// Wanted are the charts that must be fetched before anything is rendered, and Local are charts of the tree, which may need others.
	Wanted []Chart
	Local  []string
	// Unit describes an Application; nil for other releases.
	Unit *render.Unit
	// Results are findings about the object; if they include an error, no manifests exist.
	Results result.Results
}

// Manifest is a text with objects.
type Manifest struct {
	// Template is what it comes from, for messages. Path is the file of the tree that has the text, "" if none does.
	Template, Path string
	// YAML is the text.
	YAML string
}

// addChart adds the manifests of a chart.
func (r *Rendered) addChart(manifests []helmchart.Manifest) {
	for _, one := range manifests {
		r.Manifests = append(r.Manifests, Manifest{Template: one.Template, YAML: one.YAML})
	}
}

// Set renders releases. It is for one goroutine.
type Set struct {
	in      Inputs
	byName  map[objectKey]*Object
	secrets []*Object
	// first is the first Application, whose cluster is that of all.
	first       *Object
	destination destination
}

type objectKey struct{ group, kind, namespace, name string }

// New returns a set of objects.
func New(in Inputs) *Set {
	s := &Set{in: in, byName: map[objectKey]*Object{}}
	for _, o := range in.Objects {
		s.Add(o)
	}
	return s
}

// Add adds an object that releases can refer to. The first of a name is the one that counts.
func (s *Set) Add(o *Object) {
	ref := o.Ref()
	if ref.Kind == "Secret" {
		s.secrets = append(s.secrets, o)
	}
	key := objectKey{o.groupOfObject(), ref.Kind, ref.Namespace, ref.Name}
	if key.namespace == "" {
		key.namespace = s.in.Spec.Namespace
	}
	if s.byName[key] == nil {
		s.byName[key] = o
	}
}

// Groups of the objects that are read.
const (
	fluxGroup   = "helm.toolkit.fluxcd.io"
	sourceGroup = "source.toolkit.fluxcd.io"
	argoGroup   = "argoproj.io"
)

// IsRelease reports whether an object of a group and kind is one that is rendered.
func IsRelease(apiVersion, kind string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group == fluxGroup && kind == "HelmRelease" || group == argoGroup && (kind == "Application" || kind == "ApplicationSet")
}

// Claims reports whether an object is rendered: it is a release, and the pipeline does not keep it.
func (s *Set) Claims(o *Object) bool {
	ref := o.Ref()
	if !IsRelease(ref.APIVersion, ref.Kind) {
		return false
	}
	return !slices.ContainsFunc(s.in.Spec.Keep, func(k v1alpha1.KeptObject) bool {
		return k.Matches(ref.Kind, s.namespaceOf(o), ref.Name)
	})
}

// namespaceOf returns the namespace of an object, or that of objects without one.
func (s *Set) namespaceOf(o *Object) string {
	if ref := o.Ref(); ref.Namespace != "" {
		return ref.Namespace
	}
	return s.in.Spec.Namespace
}

// fault is an error about a field of an object.
type fault struct {
	of      *Object
	field   string
	message string
}

func (f *fault) Error() string { return f.message }

// errorAboutField returns an error about a field, which the text may be followed by what to do.
func errorAboutField(of *Object, field, format string, args ...any) error {
	return &fault{of, field, fmt.Sprintf(format, args...)}
}

// FieldError returns an error about a field of an object. The text may be followed by what to do.
func FieldError(of *Object, field, format string, args ...any) error {
	return errorAboutField(of, field, format, args...)
}

// ErrorFinding makes a result of an error about an object: of FieldError, or any other.
func ErrorFinding(of *Object, err error) result.Result {
	var about *fault
	if !errors.As(err, &about) {
		about = &fault{of: of, message: err.Error()}
	}
	if about.of != of { // an object that it refers to
		ref := about.of.Ref()
		about = &fault{of, "", fmt.Sprintf("%s %s: %s", ref.String(), about.field, about.message)}
	}
	return Finding(result.Error, of, about.field, about.message)
}

// keepHint is what can always be done.
const keepHint = "or leave it to its controller with spec.build.releases.keep"

// IsOutside reports whether an error is about what a build of the tree cannot have, such as a plugin or another repository: its text
// then names what a pipeline can do about it.
func IsOutside(message string) bool {
	return strings.Contains(message, keepHint) || strings.Contains(message, repositoryHint)
}

// Finding makes a result of what is found about a field of an object.
func Finding(severity result.Severity, of *Object, field, message string) result.Result {
	ref := of.Ref()
	out := result.Result{Severity: severity, Message: message, ResourceRef: &ref}
	if field != "" {
		out.Field = &result.Field{Path: field}
	}
	if of.Locate != nil {
		out.File = of.Locate(pathOf(field))
	}
	return out
}

// pathOf reads a path such as spec.valuesFrom[0].name.
func pathOf(field string) []any {
	var out []any
	for part := range strings.FieldsFuncSeq(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		if i, err := strconv.Atoi(part); err == nil {
			out = append(out, i)
			continue
		}
		out = append(out, part)
	}
	return out
}

// DecodeObject reads an object into its type. Fields that the type does not have are returned.
func DecodeObject(o *Object, into any) (unknown []string, err error) {
	return decodeReleaseType(o, into)
}

// decodeReleaseType reads an object into its type. Fields that the type does not have are returned: the API server
// drops them.
func decodeReleaseType(o *Object, into any) (unknown []string, err error) {
	text, err := json.Marshal(o.Value)
	if err != nil {
		return nil, err
	}
	strict, err := k8sjson.UnmarshalStrict(text, into)
	if err != nil {
		return nil, errorAboutField(o, "spec", "cannot be read, and the API server would refuse it: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	for _, one := range strict {
		if name, err := strconv.Unquote(strings.TrimPrefix(one.Error(), "unknown field ")); err == nil {
			unknown = append(unknown, name)
		}
	}
	return unknown, nil
}
