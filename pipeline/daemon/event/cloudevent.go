// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"sort"
	"strconv"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// batchType is the media type of a batch of CloudEvents over HTTP.
const batchType = "application/cloudevents-batch+json"

// readCloudEvents reads the binary, structured and batch modes of CloudEvents 1.0 over HTTP.
func readCloudEvents(h http.Header, body []byte) ([]cloudevents.Event, error) {
	var events []cloudevents.Event
	if kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); kind == batchType {
		if err := json.Unmarshal(body, &events); err != nil {
			return nil, fmt.Errorf("reading a batch of CloudEvents: %w", err)
		}
	} else {
		request, err := http.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("reading a CloudEvent: %w", err)
		}
		request.Header = h
		e, err := cehttp.NewEventFromHTTPRequest(request)
		if err != nil {
			return nil, fmt.Errorf("reading a CloudEvent: %w", err)
		}
		events = append(events, *e)
	}
	for i := range events {
		if err := events[i].Validate(); err != nil {
			return nil, fmt.Errorf("reading a CloudEvent: %s", strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
		}
	}
	return events, nil
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
			return nil, fmt.Errorf("reading the CloudEvent %s of type %s: %w", e.ID(), e.Type(), err)
		}
		out = append(out, changes...)
	}
	return out, nil
}

func cloudEventChanges(e cloudevents.Event) ([]Change, error) {
	if len(e.Data()) == 0 {
		return nil, nil
	}
	if e.Type() == "harbor.artifact.pushed" {
		var d harborData
		if err := json.Unmarshal(e.Data(), &d); err != nil {
			return nil, err
		}
		return d.toChanges()
	}
	if strings.HasPrefix(e.Type(), "dev.cdevents.") {
		return cdEvent(e)
	}
	// Brokers hand on events of all kinds, whose data may be anything.
	var c Change
	if err := json.Unmarshal(e.Data(), &c); err != nil {
		return nil, nil
	}
	return c.splitChange(), nil
}

// cdEvent reads the CDEvents about a merged change or a published artifact (CDEvents 0.4 and later).
func cdEvent(e cloudevents.Event) ([]Change, error) {
	var d struct {
		Subject struct {
			ID      string
			Source  string
			Content struct {
				Repository struct{ ID, Source, URL string }
			}
		}
	}
	if err := json.Unmarshal(e.Data(), &d); err != nil {
		return nil, err
	}
	switch {
	case strings.HasPrefix(e.Type(), "dev.cdevents.change.merged."):
		// A source and an id together identify an object: often the host and the repository's name there.
		r := d.Subject.Content.Repository
		both := ""
		if r.Source != "" && r.ID != "" {
			both = strings.TrimSuffix(r.Source, "/") + "/" + r.ID
		}
		if urls := distinctWords(r.URL, r.Source, r.ID, both, d.Subject.Source); len(urls) > 0 {
			return []Change{{Git: &GitChange{URLs: urls}}}, nil
		}
	case strings.HasPrefix(e.Type(), "dev.cdevents.artifact.published."):
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
		ids[i] = strconv.Quote(e.Source()) + " " + strconv.Quote(e.ID())
	}
	return strings.Join(ids, "\n")
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
