// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/source/git"
)

// NotesRef is where GitOps Promoter looks for the source commit of a rendered one
// (docs/advanced-usage/custom-hydrator.md).
const NotesRef = "refs/notes/hydrator.metadata"

const metadataFile = "hydrator.metadata"

// hydratorMetadata is the file hydrator.metadata, as Argo CD's hydrator writes it.
type hydratorMetadata struct {
	RepoURL  string   `json:"repoURL,omitempty"`
	DrySHA   string   `json:"drySha,omitempty"`
	Commands []string `json:"commands,omitempty"`
	Author   string   `json:"author,omitempty"`
	Date     string   `json:"date,omitempty"`
	Subject  string   `json:"subject,omitempty"`
	Body     string   `json:"body,omitempty"`

	References []commitReference `json:"references,omitempty"`
}

// Of the source's commit, how many bytes of the subject and the author are recorded, and of the body.
const maxRecorded, maxBody = 2000, 64 << 10

// hydratorFiles returns the files that are written together with a change: one at the pipeline's path, and one at
// the root unless the path is an active path of its own, outside of which no file may be touched.
func (b *Branch) hydratorFiles(c Change) (map[string][]byte, error) {
	// A commit of the source may have megabytes of each, and the files are written with every publish.
	body := foreign.Head(c.Origin.Body, maxBody)
	data := hydratorMetadata{
		RepoURL: c.Origin.URL, DrySHA: drySHA(c.Origin.Digest),
		Subject: foreign.Line(c.Origin.Subject, maxRecorded), Body: body, References: parseReferences(body),
	}
	if c.Command != "" {
		data.Commands = []string{c.Command}
	}
	if c.Origin.Author != "" {
		name, email := foreign.Line(c.Origin.Author, maxRecorded), foreign.Line(c.Origin.AuthorEmail, maxRecorded)
		data.Author = fmt.Sprintf("%s <%s>", name, email)
	}
	if !c.Origin.Date.IsZero() {
		data.Date = c.Origin.Date.UTC().Format(time.RFC3339)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		return nil, fmt.Errorf("writing hydrator.metadata: %w", err)
	}
	files := map[string][]byte{path.Join(c.Path, metadataFile): text.Bytes()}
	if c.Remove {
		files[path.Join(c.Path, metadataFile)] = nil
	}
	if b.ActivePath == "" {
		files[metadataFile] = text.Bytes()
	}
	return files, nil
}

// attachSourceNote records the source commit on the rendered one. It also signals "nothing changed": then the note of
// the branch's head is set to the new source commit.
func (b *Branch) attachSourceNote(ctx context.Context, draft *git.Draft, refs git.Refs, result Result,
	changes []Change) ([]git.Update, error) {
	dry := drySHA(commonDigest(changes, result.Outcomes))
	if result.Commit.IsZero() || dry == "" {
		return nil, nil
	}
	text, err := json.Marshal(map[string]string{"drySha": dry})
	if err != nil {
		return nil, err
	}
	old := refs.ByName[NotesRef]
	data := git.CommitData{Author: b.Author, Email: b.Email, Message: "Notes added by Prerig\n",
		Date: changes[0].Origin.Date}
	var root git.Hash
	if !old.IsZero() {
		commit, err := b.Mirror.Fetch(ctx, b.Remote, git.Ref{Commit: old})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", NotesRef, err)
		}
		root, data.Parents = commit.Tree, []git.Hash{old}
		if commit.Date.After(data.Date) {
			data.Date = commit.Date
		}
	}
	files, err := sourceNoteFiles(draft, root, result.Commit.String(), text)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	if data.Tree, err = draft.Edit(root, files); err != nil {
		return nil, err
	}
	if data.Date.IsZero() {
		data.Date = time.Now()
	}
	commit, err := draft.Commit(data)
	if err != nil {
		return nil, err
	}
	return []git.Update{{Name: NotesRef, Old: old, New: commit}}, nil
}

// sourceNoteFiles returns the files to write for a note. Git spreads many notes over directories by pairs of the hash's
// digits, and reads any mixture: an old note is removed wherever it is.
func sourceNoteFiles(draft *git.Draft, root git.Hash, commit string, text []byte) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range []string{commit, commit[:2] + "/" + commit[2:], commit[:2] + "/" + commit[2:4] + "/" + commit[4:]} {
		content, ok, err := draft.Content(root, name)
		if err != nil {
			return nil, fmt.Errorf("reading a note: %w", err)
		}
		if ok && bytes.Equal(bytes.TrimSpace(content), text) {
			return nil, nil
		}
		if ok {
			files[name] = nil
		}
	}
	name := commit
	spread, err := draft.IsDir(root, commit[:2])
	if err != nil {
		return nil, err
	}
	if spread {
		name = commit[:2] + "/" + commit[2:]
	}
	files[name] = text
	return files, nil
}

// commonDigest is the source commit that a note can name: that of all changes which went through.
func commonDigest(changes []Change, outcomes []Outcome) string {
	dry := ""
	for i, c := range changes {
		if outcomes[i].Err != nil {
			return ""
		}
		if dry != "" && dry != c.Origin.Digest {
			return ""
		}
		dry = c.Origin.Digest
	}
	return dry
}

// errBlocked is about names that Git cannot have at once: a and a/b.
var errBlocked = errors.New("a repository cannot have both as branches")

// blockingBranchError names the existing branch that prevents a new one from being created.
func blockingBranchError(refs git.Refs, target string) error {
	if _, exists := refs.ByName[target]; exists {
		return nil
	}
	for name := range refs.ByName {
		if strings.HasPrefix(target, name+"/") || strings.HasPrefix(name, target+"/") {
			return fmt.Errorf("it is in the way of %s: %w", name, errBlocked)
		}
	}
	return nil
}
