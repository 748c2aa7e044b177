// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Media types of CloudEvents over HTTP in JSON.
const (
	structuredType = "application/cloudevents+json"
	batchType      = "application/cloudevents-batch+json"
)

// cloudEvent is what is used of a CloudEvent of version 1.0 or 0.3.
type cloudEvent struct {
	id, source, kind string
	data             []byte
}

// readCloudEvents reads the binary, structured and batch modes of CloudEvents over HTTP.
func readCloudEvents(h http.Header, body []byte) ([]cloudEvent, error) {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	bodies := []json.RawMessage{body}
	read := readStructured
	switch {
	case kind == batchType:
		if err := json.Unmarshal(body, &bodies); err != nil {
			return nil, fmt.Errorf("reading a batch of CloudEvents: %w", err)
		}
	case kind == structuredType:
	case strings.HasPrefix(kind, "application/cloudevents"):
		return nil, fmt.Errorf("reading a CloudEvent: its format %s is not JSON", kind)
	default:
		read = func(body []byte) (cloudEvent, error) { return readBinary(h, body) }
	}
	events := make([]cloudEvent, 0, len(bodies))
	for _, body := range bodies {
		e, err := read(body)
		if err != nil {
			return nil, fmt.Errorf("reading a CloudEvent: %w", err)
		}
		events = append(events, e)
	}
	return events, nil
}

// readBinary reads an event whose attributes are headers and whose data is the body.
func readBinary(h http.Header, body []byte) (cloudEvent, error) {
	e := cloudEvent{id: h.Get("Ce-Id"), source: h.Get("Ce-Source"), kind: h.Get("Ce-Type"), data: body}
	return e, e.validate(h.Get("Ce-Specversion"), h.Get("Content-Type"))
}

// readStructured reads an event that is one JSON object. Names of attributes are case-sensitive.
func readStructured(body []byte) (cloudEvent, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return cloudEvent{}, err
	}
	var e cloudEvent
	var version, dataType, encoding, encoded string
	for name, to := range map[string]*string{
		"specversion": &version, "id": &e.id, "source": &e.source, "type": &e.kind,
		"datacontenttype": &dataType, "datacontentencoding": &encoding, "data_base64": &encoded,
	} {
		if text, ok := fields[name]; ok {
			if err := json.Unmarshal(text, to); err != nil {
				return cloudEvent{}, fmt.Errorf("reading %s: %w", name, err)
			}
		}
	}
	if err := e.validate(version, dataType); err != nil {
		return cloudEvent{}, err
	}
	e.data = fields["data"]
	kind, _, _ := mime.ParseMediaType(dataType)
	switch {
	case version == "0.3" && encoding == "base64":
		if err := json.Unmarshal(fields["data"], &e.data); err != nil {
			return cloudEvent{}, fmt.Errorf("decoding data: %w", err)
		}
	case version == "1.0" && encoded != "":
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return cloudEvent{}, fmt.Errorf("decoding data_base64: %w", err)
		}
		e.data = data
	case len(e.data) > 0 && !isJSON(kind):
		var text string
		if err := json.Unmarshal(e.data, &text); err != nil {
			return cloudEvent{}, fmt.Errorf("reading data of the type %s, which must be a string: %w", dataType, err)
		}
		e.data = []byte(text)
	}
	return e, nil
}

// isJSON reports whether data of a media type is a JSON value and not a string in structured mode; data without a type is.
func isJSON(kind string) bool {
	switch kind {
	case "", "application/json", "text/json", structuredType, batchType:
		return true
	}
	return false
}

// validate checks the attributes that every event has, and the type of its data.
func (e cloudEvent) validate(version, dataType string) error {
	switch {
	case version != "1.0" && version != "0.3":
		return fmt.Errorf("specversion must be 1.0 or 0.3, found %q", version)
	case strings.TrimSpace(e.id) == "":
		return errors.New("id must not be empty")
	case strings.TrimSpace(e.source) == "":
		return errors.New("source must not be empty")
	case strings.TrimSpace(e.kind) == "":
		return errors.New("type must not be empty")
	}
	if _, err := url.Parse(e.source); err != nil {
		return fmt.Errorf("source must be a URI reference: %w", err)
	}
	if _, _, err := mime.ParseMediaType(dataType); dataType != "" && err != nil {
		return fmt.Errorf("reading the type of its data: %w", err)
	}
	return nil
}

// parseCloudEvents reads the changes of all events of a request. Events are understood by their data: {"git": …}, {"oci": …} or {"flux": …} as in [Change], Harbor's, and CDEvents' subject content.
func parseCloudEvents(h http.Header, body []byte) ([]Change, error) {
	events, err := readCloudEvents(h, body)
	if err != nil {
		return nil, err
	}
	var out []Change
	for _, e := range events {
		changes, err := cloudEventChanges(e)
		if err != nil {
			return nil, fmt.Errorf("reading the CloudEvent %s of type %s: %w", e.id, e.kind, err)
		}
		out = append(out, changes...)
	}
	return out, nil
}

func cloudEventChanges(e cloudEvent) ([]Change, error) {
	if len(e.data) == 0 {
		return nil, nil
	}
	if e.kind == "harbor.artifact.pushed" {
		var d harborData
		if err := json.Unmarshal(e.data, &d); err != nil {
			return nil, err
		}
		return d.toChanges()
	}
	if strings.HasPrefix(e.kind, "dev.cdevents.") {
		return cdEvent(e)
	}
	// Brokers hand on events of all kinds, whose data may be anything.
	var c Change
	if err := json.Unmarshal(e.data, &c); err != nil {
		return nil, nil
	}
	return c.splitChange(), nil
}

// cdEvent reads the CDEvents about a merged change or a published artifact (CDEvents 0.4 and later).
func cdEvent(e cloudEvent) ([]Change, error) {
	var d struct {
		Subject struct {
			ID      string
			Source  string
			Content struct {
				Repository struct{ ID, Source, URL string }
			}
		}
	}
	if err := json.Unmarshal(e.data, &d); err != nil {
		return nil, err
	}
	switch {
	case strings.HasPrefix(e.kind, "dev.cdevents.change.merged."):
		// A source and an id together identify an object: often the host and the repository's name on it.
		r := d.Subject.Content.Repository
		both := ""
		if r.Source != "" && r.ID != "" {
			both = strings.TrimSuffix(r.Source, "/") + "/" + r.ID
		}
		if urls := distinctWords(r.URL, r.Source, r.ID, both, d.Subject.Source); len(urls) > 0 {
			return []Change{{Git: &GitChange{URLs: urls}}}, nil
		}
	case strings.HasPrefix(e.kind, "dev.cdevents.artifact.published."):
		return packageURL(d.Subject.ID), nil
	}
	return nil, nil
}

// packageURL reads an OCI package URL: pkg:oci/NAME@sha256:HEX?repository_url=HOST/PATH/NAME&tag=TAG.
func packageURL(purl string) []Change {
	rest, ok := strings.CutPrefix(purl, "pkg:oci/")
	if !ok {
		return nil
	}
	rest, query, _ := strings.Cut(rest, "?")
	_, digest, _ := strings.Cut(strings.ReplaceAll(rest, "%3A", ":"), "@")
	c := &OCIChange{Digest: digest}
	for _, pair := range strings.Split(query, "&") {
		key, value, _ := strings.Cut(strings.ReplaceAll(pair, "%2F", "/"), "=")
		switch key {
		case "repository_url":
			c.Repository, c.Host = value, true
		case "tag":
			c.Tag = value
		}
	}
	if c.Repository == "" {
		return nil
	}
	return []Change{{OCI: c}}
}

// cloudEventsID joins source and id of every event in a request: together they name an event (CloudEvents 1.0).
func cloudEventsID(h http.Header, body []byte) string {
	events, err := readCloudEvents(h, body)
	if err != nil {
		return ""
	}
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = strconv.Quote(e.source) + " " + strconv.Quote(e.id)
	}
	return strings.Join(ids, "\n")
}
