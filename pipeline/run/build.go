// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/giturl"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/policies"
)

// Renderer renders in a process of its own.
type Renderer interface {
	Render(ctx context.Context, files tree.Reader, request render.Request) (*render.Response, error)
}

// Builder renders pipelines from snapshots of their sources. It is safe for concurrent use.
type Builder struct {
	// Renderer renders.
	Renderer Renderer
	// Policies is the directory of the policies that pipelines name by file.
	Policies string
	// Limits that no pipeline can raise.
	Limits render.Limits
	// Repositories fetches remote bases; nil fetches none.
	Repositories Repositories
	// Bases bounds what pipelines may allow as remote bases; without any there is no bound.
	Bases []giturl.Pattern
	// Version of Prerig.
	Version string

	mu      sync.Mutex
	digests map[string]string // of built-in policies
}

// Built is a rendered pipeline.
type Built struct {
	*render.Response
	// Request that was rendered, with the text of all policies.
	Request render.Request
	// Record of what was read of the source. It is there for a build that failed too.
	Record tree.Record
	// Fingerprint of everything that the result depends on.
	Fingerprint string
}

// Build renders. An error is about the pipeline or its source and will be the same again, unless it is that of the context
// or wraps render.ErrTimeout or a FetchError.
func (b *Builder) Build(ctx context.Context, p *v1alpha1.RenderPipeline, root *tree.Tree) (built *Built, err error) {
	limits, err := b.Limits.Lower(p.Spec.Build.Limits)
	if err != nil {
		return &Built{}, err
	}
	view := tree.NewView(root, limits.Read)
	built = &Built{Request: render.Request{Type: p.Spec.Build.Type, Path: p.Spec.Build.Path, Functions: p.Spec.Build.Functions, Limits: limits}}
	defer func() {
		if r := recover(); r != nil {
			err = bug(r)
		}
		built.Record = view.Record()
	}()
	for i, ref := range p.Spec.Policies {
		found, err := b.policy(ref, view)
		if err != nil {
			return built, fmt.Errorf("reading policy %d: %w", i, err)
		}
		built.Request.Policies = append(built.Request.Policies, found...)
	}
	files, err := b.bases(ctx, p, view, &built.Request)
	if err != nil {
		return built, err
	}
	built.Response, err = b.Renderer.Render(ctx, files, built.Request)
	if err != nil {
		return built, err
	}
	built.Fingerprint = render.Fingerprint(view.Record(), &built.Request, b.Version)
	return built, nil
}

// bugError is a panic: odd input must stop no other pipeline.
type bugError struct {
	cause any
	stack []byte
}

func bug(cause any) error { return &bugError{cause, debug.Stack()} }

// Error tells the cause.
func (e *bugError) Error() string {
	return fmt.Sprintf("this is an error of Prerig, please report it: %v", e.cause)
}

// policy reads what one reference names.
func (b *Builder) policy(ref v1alpha1.PolicyRef, view *tree.View) ([]render.Policy, error) {
	switch {
	case ref.BuiltIn != "":
		text, ok := policies.Get(ref.BuiltIn)
		if !ok {
			return nil, fmt.Errorf("there is no built-in policy %q; there are: %s", ref.BuiltIn, strings.Join(policies.Names(), ", "))
		}
		return []render.Policy{{Origin: "built-in " + ref.BuiltIn, YAML: string(text)}}, nil
	case ref.File != "":
		text, err := b.file(ref.File)
		if err != nil {
			return nil, err
		}
		return b.policies(ref.File, text)
	default:
		text, err := view.Read(ref.Path)
		if err != nil {
			return nil, err
		}
		return documents(ref.Path, text)
	}
}

// maxPolicy bounds a policy's file.
const maxPolicy = 16 << 20

// file reads a file of the daemon's own directory, and none outside of it.
func (b *Builder) file(name string) ([]byte, error) {
	if b.Policies == "" {
		return nil, errors.New("no directory of policies is configured")
	}
	root, err := os.OpenRoot(b.Policies)
	if err != nil {
		return nil, errors.New("the directory of policies cannot be opened; is it there? --policies or the configuration names it")
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(name))
	if err != nil || info.IsDir() || info.Size() > maxPolicy {
		return nil, fmt.Errorf("%s is not a readable file in the directory of policies", name)
	}
	return root.ReadFile(filepath.FromSlash(name))
}

// policies takes the InjectionPolicies out of a file of the daemon's own. One that holds something else may have been named
// to see what that is, so its content is not told.
func (b *Builder) policies(name string, text []byte) ([]render.Policy, error) {
	origin := "policy file " + name
	file, err := manifest.Parse(origin, text)
	if err != nil {
		return nil, err
	}
	for _, doc := range file.Docs {
		if _, ok := doc.Peek(); ok || strings.TrimSpace(string(doc.Raw())) == "" {
			continue
		}
		if _, err := doc.Object(); err != nil {
			return nil, err
		}
	}
	return documents(origin, text)
}

// documents takes the InjectionPolicies out of a file.
func documents(origin string, text []byte) ([]render.Policy, error) {
	file, err := manifest.Parse(origin, text)
	if err != nil {
		return nil, err
	}
	var out []render.Policy
	for _, doc := range file.Docs {
		if meta, ok := doc.Peek(); ok && meta.Kind != "InjectionPolicy" {
			continue
		}
		if strings.TrimSpace(string(doc.Raw())) == "" {
			continue
		}
		out = append(out, render.Policy{Origin: origin, YAML: string(doc.Raw())})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no InjectionPolicy", origin)
	}
	return out, nil
}

// RequestDigest is a digest of everything but the source that a pipeline's result depends on. Policies inside of the source
// are part of the record of what was read.
func (b *Builder) RequestDigest(p *v1alpha1.RenderPipeline) string {
	h := sha256.New()
	text, err := json.Marshal([]any{b.Version, p.Spec.Source, p.Spec.Build, p.Spec.Policies, p.Spec.Publish, p.Spec.Gates})
	if err != nil {
		panic(err) // it is plain data
	}
	h.Write(text)
	for _, pattern := range b.Bases {
		fmt.Fprintf(h, "\nbases %q", pattern.String())
	}
	for _, ref := range p.Spec.Policies {
		switch {
		case ref.BuiltIn != "":
			fmt.Fprintf(h, "\nbuilt-in %s", b.builtIn(ref.BuiltIn))
		case ref.File != "":
			content, err := b.file(ref.File)
			fmt.Fprintf(h, "\nfile %x %t", sha256.Sum256(content), err == nil)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func (b *Builder) builtIn(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.digests[name]; ok {
		return known
	}
	text, _ := policies.Get(name)
	sum := sha256.Sum256(text)
	if b.digests == nil {
		b.digests = map[string]string{}
	}
	b.digests[name] = hex.EncodeToString(sum[:])
	return b.digests[name]
}

// Command is what reproduces a result, as it stands in trailers of commits.
func Command(p *v1alpha1.RenderPipeline, snapshot *source.Snapshot) string {
	return "prerig render " + p.Key() + " --revision " + snapshot.Revision
}
