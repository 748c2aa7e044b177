// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// Objects are the RenderPipelines that are objects of a cluster. pipeline/kubernetes has one. It is safe for concurrent use.
type Objects interface {
	// String names the cluster for people.
	String() string
	// Pipelines returns the existing pipelines as this process knows them, without those being deleted, or an error
	// if they cannot be read now.
	Pipelines() ([]Object, error)
	// IsDeleted reports whether the pipeline of a key is being deleted: its object still exists until its resources
	// are handled.
	IsDeleted(key string) bool
	// LastText returns Object.Text of a pipeline as it was when it was seen being deleted, until a day after its
	// object disappears; nil if no deletion was seen.
	LastText(key string) []byte
	// Confirm asks the API server whether the pipeline of a key exists in a version and is not being deleted. It
	// returns an error if this is not so or unknown.
	Confirm(ctx context.Context, key string, version queue.ObjectVersion) error
}

// Object is a RenderPipeline as an API server has it.
type Object struct {
	// Namespace and Name of the object.
	Namespace, Name string
	// Version of the object.
	Version queue.ObjectVersion
	// Text is the object in JSON, without what the API server adds to it.
	Text []byte
}

// parsedObject is an object with what it was read as.
type parsedObject struct {
	text    []byte
	entries []Entry
}

// readObjects reads the objects of the cluster again if they changed, and returns the keys that changed.
func (o *origin) readObjects() ([]string, error) {
	all, err := o.Objects.Pipelines()
	o.setError(err)
	if err != nil {
		return nil, err
	}
	o.reading.Lock()
	defer o.reading.Unlock()
	parsed, read := make(map[string]parsedObject, len(all)), []Entry(nil)
	for _, object := range all {
		name := object.Namespace + "/" + object.Name
		known, ok := o.parsed[name]
		if !ok || !bytes.Equal(known.text, object.Text) {
			known = parsedObject{object.Text, parseObject(name, object.Text)}
		}
		parsed[name] = known
		for _, e := range known.entries {
			e.Object = object.Version
			if e.Pipeline != nil {
				own := *e.Pipeline // the rules of tenants change it
				e.Pipeline = &own
			}
			read = append(read, e)
		}
	}
	o.parsed = parsed
	return o.catalog.replaceEntries(o, read, ""), nil
}

// onLineOne is where everything is in a text of one line.
var onLineOne = lazyregexp.New(`\bline 1: `)

// WithoutLine returns the message of an error about an object that was read from a single line.
func WithoutLine(err error) string { return onLineOne.ReplaceAllString(err.Error(), "") }

// parseObject reads an object, whose key is its namespace and name whatever is wrong with it.
func parseObject(name string, text []byte) []Entry {
	entries := Parse(name, text)
	for i := range entries {
		e := &entries[i]
		if e.Err != nil {
			e.Key, e.Opaque = name, false
			e.Err = errors.New(WithoutLine(e.Err))
		}
	}
	return entries
}

// Confirm asks the API server whether an entry that is an object is as it is known here, see Objects.
func (c *Catalog) Confirm(ctx context.Context, e Entry) error {
	if !e.isObject() {
		return nil
	}
	return e.origin.Objects.Confirm(ctx, e.Key, e.Object)
}

// IsDeleted reports whether the pipeline of a key was deleted as an object of a cluster: this is deliberate, while
// a missing file may be an oversight.
func (c *Catalog) IsDeleted(key string) bool {
	for _, o := range c.origins {
		if o.Objects != nil && o.Objects.IsDeleted(key) {
			return true
		}
	}
	return false
}

// LastWord is the final declaration of a pipeline's author about its files before deleting it.
type LastWord struct {
	// Policy is "" where it cannot be read.
	Policy    v1alpha1.DeletionPolicy
	Suspended bool
}

// LastWordOf returns the final declaration of a pipeline's author in an object of a cluster, whether or not the
// rest of it is valid; false if no deletion was seen.
func (c *Catalog) LastWordOf(key string) (word LastWord, ok bool) {
	for _, o := range c.origins {
		if o.Objects == nil {
			continue
		}
		text := o.Objects.LastText(key)
		if text == nil {
			continue
		}
		var object struct {
			Spec struct {
				DeletionPolicy v1alpha1.DeletionPolicy `json:"deletionPolicy"`
				Suspend        bool                    `json:"suspend"`
			} `json:"spec"`
		}
		if json.Unmarshal(text, &object) != nil {
			return LastWord{}, true
		}
		word = LastWord{Policy: object.Spec.DeletionPolicy, Suspended: object.Spec.Suspend}
		if word.Policy == "" {
			word.Policy = v1alpha1.DeletionOrphan
		}
		return word, true
	}
	return LastWord{}, false
}

// TellsAll reports whether a pipeline of this name would be an object of a cluster: an API server that answers knows all of them, while
// an empty directory may not have been mounted. Of a namespace, the key ends with a slash.
func (c *Catalog) TellsAll(key string) bool {
	for _, o := range c.origins {
		if len(c.origins) == 1 || o.mayHave(key) {
			return o.Objects != nil
		}
	}
	return false
}
