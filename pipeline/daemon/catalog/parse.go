// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/fault"
	"github.com/prerig/prerig/pipeline/publish"
)

// maxDocuments bounds the documents of one file. maxPlaced is how many wrong ones are read again to find out their lines.
const maxDocuments, maxPlaced = 10_000, 100

// Parse reads the pipelines of one file. Documents are read one by one, so that a wrong one stops no other. Further checks
// are made of each pipeline.
func Parse(name string, data []byte, checks ...func(*v1alpha1.RenderPipeline) error) []Entry {
	file, err := manifest.Parse(name, data)
	if err == nil && len(file.Docs) > maxDocuments {
		err = fmt.Errorf("it has more than %d documents", maxDocuments)
	}
	if err != nil {
		err = fmt.Errorf("reading %s: %w", name, err)
		return []Entry{{Key: name, File: name, Digest: contentDigest(data), Err: err, Opaque: true}}
	}
	var out []Entry
	checks = append([]func(*v1alpha1.RenderPipeline) error{checkPublish}, checks...)
	lines, placed := 0, 0
	for _, doc := range file.Docs {
		text := doc.Raw()
		before := lines
		lines += bytes.Count(text, []byte("\n"))
		all, err := parseDocument(text, checks)
		if err != nil && before > 0 && placed < maxPlaced {
			// Leading empty lines make the line numbers of messages match the file. Parsing them is slow if there
			// are many.
			placed++
			if _, inPlace := parseDocument(append(bytes.Repeat([]byte("\n"), before), text...), checks); inPlace != nil {
				err = inPlace
			}
		}
		if err != nil {
			out = append(out, invalidEntry(name, doc, len(file.Docs), err))
			continue
		}
		for _, p := range all {
			spec, err := json.Marshal([]any{p.Spec, p.Metadata})
			if err != nil {
				out = append(out, invalidEntry(name, doc, len(file.Docs), err))
				continue
			}
			out = append(out, Entry{Key: p.Key(), File: name, Pipeline: p, Digest: contentDigest(spec)})
		}
	}
	return out
}

// parseDocument parses the pipelines of one document. A panic becomes its error: the document is one team's, and the daemon
// serves all.
func parseDocument(text []byte, checks []func(*v1alpha1.RenderPipeline) error) (all []*v1alpha1.RenderPipeline, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			all, err = nil, fault.Recovered(cause)
		}
	}()
	return v1alpha1.ParseAll(text, checks...)
}

// checkPublish refuses entries of spec.publish that no run could publish by.
func checkPublish(p *v1alpha1.RenderPipeline) error {
	var errs []error
	for i, to := range p.Spec.Publish {
		if field, err := publish.Check(to); err != nil {
			errs = append(errs, &v1alpha1.FieldError{Path: fmt.Sprintf("spec.publish[%d].%s", i, field), Message: err.Error()})
		}
	}
	return errors.Join(errs...)
}

// invalidEntry is a document that cannot be used. It keeps the name of the pipeline where that can be seen.
func invalidEntry(name string, doc *manifest.Document, of int, err error) Entry {
	key, opaque := name, true
	if of > 1 {
		key = fmt.Sprintf("%s#%d", name, doc.Index())
	}
	if meta, ok := doc.Peek(); ok && meta.Kind == v1alpha1.Kind && meta.Name != "" {
		key = (&v1alpha1.RenderPipeline{Metadata: v1alpha1.Metadata{Name: meta.Name, Namespace: meta.Namespace}}).Key()
		opaque = false
	}
	return Entry{Key: key, File: name, Digest: contentDigest(doc.Raw()), Err: fmt.Errorf("reading %s: %w", name, joinLines(err)), Opaque: opaque}
}

// joinLines puts several errors in one line.
func joinLines(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

func contentDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
