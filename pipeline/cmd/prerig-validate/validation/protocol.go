// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"time"
)

// Protocol is the version of the protocol, which changes when an older client would misread it.
const Protocol = 1

// Limits of the protocol.
const (
	// MaxLine is how many bytes a request may have.
	MaxLine = 16 << 20
	// MaxProblems is how many problems an answer has.
	MaxProblems = 200
	// MaxTime is how long a request may take.
	MaxTime = 20 * time.Second
	// maxMemory is the size in bytes at which the program collects garbage more often.
	maxMemory = 512 << 20
)

// The operations of a request.
const (
	Create = "create"
	Update = "update"
	Apply  = "apply"
)

// Types of problems that are not among the causes of the API server (metav1.CauseType).
const (
	// TypeImmutable is a change of a field that cannot change.
	TypeImmutable = "FieldValueImmutable"
	// TypeUndecodable is an object that the API server cannot read into the type of its kind.
	TypeUndecodable = "Undecodable"
	// TypeNotDeclared is a field that the type of server-side apply does not have.
	TypeNotDeclared = "FieldNotDeclared"
)

// Greeting is the first line of the output.
type Greeting struct {
	Protocol int `json:"protocol"`
	// Kubernetes is the release whose code answers, such as v1.36.3.
	Kubernetes string `json:"kubernetes"`
}

// Request asks about an object.
type Request struct {
	ID        int64           `json:"id"`
	Operation string          `json:"operation"`
	Object    json.RawMessage `json:"object"`
	// Old is the object before an update.
	Old json.RawMessage `json:"old,omitempty"`
	// Namespace is that of objects that name none; empty for "default".
	Namespace string `json:"namespace,omitempty"`
}

// Answer is what the API server would answer.
type Answer struct {
	ID int64 `json:"id"`
	// Known reports whether the release has the kind.
	Known bool `json:"known"`
	// Problems are sorted by field, type and message.
	Problems []Problem `json:"problems,omitempty"`
	// Omitted is how many problems the answer leaves out.
	Omitted int `json:"omitted,omitempty"`
	// Ignored are the fields whose change an update silently drops.
	Ignored []string `json:"ignored,omitempty"`
	// Error is the reason the object was not checked.
	Error string `json:"error,omitempty"`
}

// Problem is one reason for which the API server rejects the object.
type Problem struct {
	// Field is the path as the API server writes it, such as spec.ports[0].name; empty for the object as a whole.
	Field   string `json:"field,omitempty"`
	Type    string `json:"type"`
	Message string `json:"message"`
}
