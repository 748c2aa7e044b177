// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Audit is what an API server's audit log tells about the creation of pods: which webhooks changed them. The zero value
// knows nothing.
type Audit struct {
	pods map[string][]mutation // by namespace/name
}

// mutation is what a webhook did to a pod.
type mutation struct {
	webhook string
	// paths are the JSON pointers of its patch, without indices of lists; empty where the log does not have it.
	paths []string
}

// auditEvent is what is read of an event of audit.k8s.io/v1.
type auditEvent struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource, Namespace, Name, Subresource string
	} `json:"objectRef"`
	ResponseObject struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	} `json:"responseObject"`
	Annotations map[string]string `json:"annotations"`
}

// maxAuditLine bounds one event.
const maxAuditLine = 32 << 20

// Read reads a log with an event in each line, as an API server writes it. What are no creations of pods is passed over.
func (a *Audit) Read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxAuditLine)
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if len(line) == 0 {
			continue
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("reading line %d of the audit log: %w", n, err)
		}
		a.add(e)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("reading the audit log: an event has more than %d bytes", maxAuditLine)
	} else if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	return nil
}

const (
	mutationAnnotation = "mutation.webhook.admission.k8s.io/"
	patchAnnotation    = "patch.webhook.admission.k8s.io/"
)

func (a *Audit) add(e auditEvent) {
	name := e.ResponseObject.Metadata.Name
	if name == "" {
		name = e.ObjectRef.Name
	}
	if e.Verb != "create" || e.ObjectRef.Resource != "pods" || e.ObjectRef.Subresource != "" || e.Stage != "ResponseComplete" || name == "" {
		return
	}
	var found []mutation
	for key, value := range e.Annotations {
		round, ok := strings.CutPrefix(key, mutationAnnotation)
		var done struct {
			Configuration, Webhook string
			Mutated                bool
		}
		if !ok || json.Unmarshal([]byte(value), &done) != nil || !done.Mutated {
			continue
		}
		m := mutation{webhook: done.Configuration + "/" + done.Webhook}
		var patch struct {
			Patch []struct {
				Path  string
				Value any
			}
		}
		if json.Unmarshal([]byte(e.Annotations[patchAnnotation+round]), &patch) == nil {
			for _, p := range patch.Patch {
				m.paths = append(m.paths, p.Path)
			}
		}
		found = append(found, m)
	}
	slices.SortFunc(found, func(x, y mutation) int { return strings.Compare(x.webhook, y.webhook) })
	if a.pods == nil {
		a.pods = map[string][]mutation{}
	}
	a.pods[e.ObjectRef.Namespace+"/"+name] = found
}

// webhooks returns the webhooks that the log says have changed a field of a pod when it was created. It is false where the
// log does not have the pod, or does not tell.
func (a *Audit) webhooks(pod map[string]any, c change) ([]string, bool) {
	if a == nil {
		return nil, false
	}
	ref := refOf(pod)
	found := a.pods[ref.Namespace+"/"+ref.Name]
	var all, touching []string
	for _, m := range found {
		all = append(all, m.webhook)
		if slices.ContainsFunc(m.paths, func(pointer string) bool { return touches(pointer, c) }) {
			touching = append(touching, m.webhook)
		}
	}
	all, touching = slices.Compact(all), slices.Compact(touching)
	switch {
	case len(touching) > 0:
		return touching, true
	case len(all) == 1:
		return all, true
	}
	return nil, false
}

// touches reports whether a JSON pointer may be about a field: their keys are the same as far as both go. Indices of lists
// are not compared, as the lists may have been changed since.
func touches(pointer string, c change) bool {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, s := range c.path {
		if i >= len(parts) {
			return true
		}
		part := strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[i])
		if !s.element && part != s.key {
			return false
		}
	}
	return true
}
