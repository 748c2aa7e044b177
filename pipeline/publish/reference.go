// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"encoding/json"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// commitReference is a commit of another repository that led to the source's commit, such as that of a program whose
// new image the source's commit brings.
type commitReference struct {
	Commit referencedCommit `json:"commit"`
}

type referencedCommit struct {
	Author  string `json:"author,omitempty"`
	Date    string `json:"date,omitempty"`
	Subject string `json:"subject,omitempty"`
	Body    string `json:"body,omitempty"`
	SHA     string `json:"sha,omitempty"`
	RepoURL string `json:"repoURL,omitempty"`
}

// referencePrefix is that of the trailers by which Argo CD's hydrator learns of the other commit.
const referencePrefix = "argocd-reference-commit-"

var commitHash = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// parseReferences parses the trailers of a commit message's body. It supports one commit; of a repeated trailer the
// last counts. Values that GitOps Promoter would reject are omitted, as one bad trailer would make it reject the
// whole file.
func parseReferences(body string) []commitReference {
	paragraphs := strings.Split(strings.TrimSpace(body), "\n\n")
	var c referencedCommit
	email := ""
	for line := range strings.SplitSeq(paragraphs[len(paragraphs)-1], "\n") {
		key, value, _ := strings.Cut(line, ":")
		name, ok := strings.CutPrefix(strings.ToLower(key), referencePrefix)
		if value = strings.TrimSpace(value); !ok || value == "" {
			continue
		}
		switch name {
		case "author":
			c.Author = value
		case "author-email":
			email = value
		case "date":
			if _, err := time.Parse(time.RFC3339, value); err == nil {
				c.Date = value
			}
		case "subject":
			c.Subject = value
		case "body":
			// It has line breaks, so it is written as a JSON string.
			if text := ""; json.Unmarshal([]byte(value), &text) == nil {
				c.Body = text
			}
		case "sha":
			if commitHash.MatchString(value) {
				c.SHA = value
			}
		case "repourl":
			if u, err := url.Parse(value); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
				u.User = nil
				c.RepoURL = u.String()
			}
		}
	}
	if c.Author != "" && email != "" && !strings.Contains(c.Author, "<") {
		c.Author += " <" + email + ">"
	}
	if _, err := mail.ParseAddress(c.Author); err != nil {
		c.Author = ""
	}
	if c == (referencedCommit{}) {
		return nil
	}
	return []commitReference{{c}}
}

// drySHA returns the source's commit in the form that GitOps Promoter accepts: digits only, even for a revision
// that is not a commit.
func drySHA(digest string) string { return digest[strings.LastIndexByte(digest, ':')+1:] }
