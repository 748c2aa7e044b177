// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build/cache"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Cache remembers what builds gave before the injection, so that another policy need not build again.
type Cache struct {
	// Store keeps it.
	Store *cache.Store
	// Check has everything built nevertheless, and compared with what is remembered: what differs is an error.
	Check bool
	// Observe is called for each build lookup with whether it was a hit. It must be quick; it may be nil.
	Observe func(hit bool)
}

// identified are renderers that identify their program.
type identified interface {
	Identity() (string, error)
}

// renderFromRemembered renders, starting from the remembered build if one exists.
func (b *Builder) renderFromRemembered(ctx context.Context, p *v1alpha1.RenderPipeline, files tree.Reader, request render.Request) (*render.Response, error) {
	slot, ok := b.buildCacheSlot(p, request)
	if !ok {
		return b.Renderer.Render(ctx, files, request)
	}
	asked := newAskedFiles(files)
	variant, known := b.Cache.findBuilt(slot, asked)
	if b.Cache.Observe != nil {
		b.Cache.Observe(known != nil)
	}
	if known != nil && !b.Cache.Check {
		b.Cache.Store.Use(slot, variant)
		if response, ok := known.Finished(); ok {
			return response, nil
		}
		request.Given = known
		return b.Renderer.Render(ctx, files, request)
	}
	request.Keep = asked
	response, err := b.Renderer.Render(ctx, tree.Answering(asked.answerRendererQuestion), request)
	if err != nil {
		return nil, err
	}
	if known != nil {
		if err := compareBuilds(known, response.Built); err != nil {
			b.Cache.Store.Remove(slot, variant)
			return nil, err
		}
	}
	if response.Built != nil && known == nil {
		b.Cache.rememberBuild(slot, asked.recordedQuestions(), response.Built)
	}
	response.Built = nil
	return response, nil
}

// buildCacheSlot returns a digest of all that a build depends on but the files, and of whom its result is for:
// pipelines of one namespace with the same sources, which are read with what this namespace knows. A build with a key
// for secrets is not kept, and none before a gate, whose findings name places in files that only the build reads.
func (b *Builder) buildCacheSlot(p *v1alpha1.RenderPipeline, request render.Request) (slot string, ok bool) {
	renderer, known := b.Renderer.(identified)
	if b.Cache == nil || !known || request.Discover || request.Gated() {
		return "", false
	}
	program, err := renderer.Identity()
	if err != nil {
		return "", false
	}
	text, err := json.Marshal([]any{program, b.Version, Trust(p), request.WithoutInjection()})
	if err != nil {
		panic(err) // it is plain data
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:20]), true
}

// Trust is what pipelines have in common that may see each other's files: their namespace, and what they read.
func Trust(p *v1alpha1.RenderPipeline) []string {
	trust := []string{p.Metadata.Namespace}
	for _, one := range p.AllSources() {
		trust = append(trust, one.MountPath, one.URL())
	}
	return trust
}

// remembered is the head of what is kept, in front of the build.
type remembered struct {
	Questions []question `json:"questions"`
}

// findBuilt looks for a build that would read what these files hold.
func (c *Cache) findBuilt(slot string, files *askedFiles) (variant string, known *render.Built) {
	for _, variant := range c.Store.Variants(slot) {
		content, ok := c.Store.Read(slot, variant)
		if !ok {
			continue
		}
		head, rest, _ := bytes.Cut(content, []byte("\n"))
		var kept remembered
		if json.Unmarshal(head, &kept) != nil || answersDigest(kept.Questions) != variant || len(kept.Questions) == 0 {
			c.Store.Remove(slot, variant)
			continue
		}
		if !files.answersUnchanged(kept.Questions) {
			continue
		}
		if built, err := render.DecodeBuilt(rest); err == nil {
			return variant, built
		}
		c.Store.Remove(slot, variant)
	}
	return "", nil
}

// rememberBuild remembers a build.
func (c *Cache) rememberBuild(slot string, questions []question, built *render.Built) {
	head, err := json.Marshal(remembered{questions})
	if err != nil {
		panic(err) // it is plain data
	}
	timeless := render.Built{Response: withoutTimes(built.Response), Items: built.Items}
	if content, err := timeless.Encode(); err == nil && len(questions) > 0 {
		c.Store.Write(slot, answersDigest(questions), bytes.Join([][]byte{head, content}, []byte("\n")))
	}
}

// answersDigest is a digest of questions with their answers.
func answersDigest(questions []question) string {
	text, err := json.Marshal(questions)
	if err != nil {
		panic(err) // it is plain data
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:20])
}

// compareBuilds returns an error that describes how a build from scratch differs from the remembered one.
func compareBuilds(known, fresh *render.Built) error {
	differs := func(what string) error {
		return fmt.Errorf("comparing the build with what was remembered of it, which is removed now: %s; please report this, it must not happen", what)
	}
	if fresh == nil {
		return differs("it is not one to be remembered any more")
	}
	for i := range max(len(known.Items), len(fresh.Items)) {
		switch {
		case i >= len(known.Items):
			return differs(fmt.Sprintf("%s was not there", nameOf(fresh.Items[i])))
		case i >= len(fresh.Items):
			return differs(fmt.Sprintf("%s is not there any more", nameOf(known.Items[i])))
		case known.Items[i] != fresh.Items[i]:
			return differs(fmt.Sprintf("%s was %s", nameOf(fresh.Items[i]), describeDifference(known.Items[i], fresh.Items[i])))
		}
	}
	was, err := (&render.Built{Response: withoutTimes(known.Response)}).Encode()
	now, failed := (&render.Built{Response: withoutTimes(fresh.Response)}).Encode()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if !bytes.Equal(was, now) {
		return differs("its findings are others")
	}
	return nil
}

func withoutTimes(r render.Response) render.Response {
	r.Build, r.Inject = 0, 0
	return r
}

func nameOf(item render.BuiltItem) string {
	doc, err := item.Document.Document()
	if err != nil {
		return "a document"
	}
	meta, ok := doc.Peek()
	if !ok {
		return fmt.Sprintf("the document at %s", doc)
	}
	if meta.Namespace != "" {
		meta.Name = meta.Namespace + "/" + meta.Name
	}
	return meta.Kind + " " + meta.Name
}

// describeDifference names the first line that differs, but not its content.
func describeDifference(was, now render.BuiltItem) string {
	before, after := bytes.Split([]byte(was.Document.Text), []byte("\n")), bytes.Split([]byte(now.Document.Text), []byte("\n"))
	for i := range min(len(before), len(after)) {
		if !bytes.Equal(before[i], after[i]) {
			return fmt.Sprintf("%s, with another line %d", nameOf(was), i+1)
		}
	}
	return fmt.Sprintf("%s, with %d lines in the place of %d, or from another file", nameOf(was), len(before), len(after))
}
