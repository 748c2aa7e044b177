// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Audit is what an API server's audit log records about the creation of pods: which webhooks changed them. The zero
// value is empty.
type Audit struct {
	pods    map[string][]creation // by namespace/name
	unnamed int
}

// Unnamed returns how many creations of pods have no name in the log and cannot be assigned to a pod: the API
// server generates the names of pods that controllers create, and only the level RequestResponse includes them.
func (a *Audit) Unnamed() int {
	if a == nil {
		return 0
	}
	return a.unnamed
}

// creation is that of a pod. Its uid is empty where the log does not have it.
type creation struct {
	uid       string
	mutations []mutation
}

// mutation is what a webhook did to a pod.
type mutation struct {
	webhook string
	// patch are the places that its patch touches; empty where the log does not have it.
	patch []patched
}

// patched is a place that a patch touches.
type patched struct {
	pointer string // a JSON pointer
	// value is the value of an add or a replace.
	value any
}

// auditEvent is what is read of an event of audit.k8s.io/v1.
type auditEvent struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource, Namespace, Name, Subresource string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	ResponseObject struct {
		Metadata struct {
			Name string `json:"name"`
			UID  string `json:"uid"`
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
		a.addAuditEvent(e)
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

func (a *Audit) addAuditEvent(e auditEvent) {
	name := e.ResponseObject.Metadata.Name
	if name == "" {
		name = e.ObjectRef.Name
	}
	if e.Verb != "create" || e.ObjectRef.Resource != "pods" || e.ObjectRef.Subresource != "" || e.Stage != "ResponseComplete" {
		return
	}
	if e.ResponseStatus.Code >= http.StatusBadRequest {
		return // no pod was made
	}
	if name == "" {
		a.unnamed++
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
				Path, From, Op string
				Value          any
			}
		}
		if json.Unmarshal([]byte(e.Annotations[patchAnnotation+round]), &patch) == nil {
			for _, p := range patch.Patch {
				m.patch = append(m.patch, patched{p.Path, p.Value})
				if p.Op == "move" {
					m.patch = append(m.patch, patched{pointer: p.From})
				}
			}
		}
		found = append(found, m)
	}
	slices.SortFunc(found, func(x, y mutation) int { return strings.Compare(x.webhook, y.webhook) })
	if a.pods == nil {
		a.pods = map[string][]creation{}
	}
	key := e.ObjectRef.Namespace + "/" + name
	a.pods[key] = append(a.pods[key], creation{e.ResponseObject.Metadata.UID, found})
}
