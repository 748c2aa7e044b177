// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package validation asks the program prerig-validate what Kubernetes' own validation answers about objects of built-in kinds. The
// program is a module of its own, as it links Kubernetes; package validation of that module describes the protocol.
package validation

// protocol is the version of the protocol that this client knows.
const protocol = 1

// Operation is what a request asks about.
type Operation string

// The operations.
const (
	// Create validates the object as a new one.
	Create Operation = "create"
	// Update validates the object as the next state of the old one.
	Update Operation = "update"
	// Apply reads the object as server-side apply does.
	Apply Operation = "apply"
)

// Types of problems that callers distinguish. All others are causes of the API server, such as FieldValueInvalid.
const (
	TypeUndecodable = "Undecodable"
	TypeImmutable   = "FieldValueImmutable"
	TypeDuplicate   = "FieldValueDuplicate"
	TypeRequired    = "FieldValueRequired"
)

// Request asks about an object.
type Request struct {
	Operation Operation
	Object    map[string]any
	// Old is the object before an Update.
	Old map[string]any
	// Namespace is that of objects that name none; empty for "default".
	Namespace string
}

// message is a request as it is sent.
type message struct {
	ID        int            `json:"id"`
	Operation Operation      `json:"operation"`
	Object    map[string]any `json:"object"`
	Old       map[string]any `json:"old,omitempty"`
	Namespace string         `json:"namespace,omitempty"`
}

// greeting is the first line of the program's output.
type greeting struct {
	Protocol   int    `json:"protocol"`
	Kubernetes string `json:"kubernetes"`
}

// Answer is what the API server would answer.
type Answer struct {
	ID int `json:"id"`
	// Known reports whether the program's release of Kubernetes has the kind.
	Known bool `json:"known"`
	// Problems are what the API server rejects the object for, sorted by field.
	Problems []Problem `json:"problems"`
	// Omitted is how many problems were left out.
	Omitted int `json:"omitted"`
	// Ignored are the fields whose change an Update silently drops.
	Ignored []string `json:"ignored"`
	// Error is the reason the object was not checked; empty if it was.
	Error string `json:"error"`
}

// Problem is one reason for which the API server rejects an object.
type Problem struct {
	// Field is the path as the API server writes it, such as spec.ports[0].name; empty for the object as a whole.
	Field   string `json:"field"`
	Type    string `json:"type"`
	Message string `json:"message"`
}
