// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/attestation"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/verify"
	"github.com/prerig/prerig/pipeline/verify/rendered"
)

// readAttested checks that trusted statements cover the files that the compared pods come from, each as it is in the commit that its
// pods equal. It returns nil if that was not asked for.
func (r *verifyRun) readAttested(report *verify.Report) (*verify.Attested, error) {
	if len(r.attestations) == 0 {
		return nil, nil
	}
	keys, err := readPublicKeys(r.attestations)
	if err != nil {
		return nil, err
	}
	type place struct{ commit, file string }
	pods := map[place]int{}
	for _, pod := range report.Pods {
		if pod.Commit != nil && pod.File != "" {
			pods[place{pod.Commit.ID, pod.File}]++
		}
	}
	commits := map[string]*attestedFiles{}
	out := &verify.Attested{}
	places := slices.SortedFunc(maps.Keys(pods), func(a, b place) int { return strings.Compare(a.file+a.commit, b.file+b.commit) })
	for _, at := range places {
		if commits[at.commit] == nil {
			if commits[at.commit], err = readStatements(r.rendered, at.commit, keys); err != nil {
				return nil, fmt.Errorf("reading the statements of %s: %w", at.commit, err)
			}
		}
		problem, err := commits[at.commit].findProblem(at.file)
		if err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", at.file, at.commit, err)
		}
		if problem == "" {
			out.Covered++
			continue
		}
		out.Uncovered = append(out.Uncovered, verify.Uncovered{File: at.file, Commit: at.commit, Pods: pods[at], Message: problem})
	}
	return out, nil
}

// readPublicKeys reads the files of keys.
func readPublicKeys(names []string) ([]crypto.PublicKey, error) {
	var keys []crypto.PublicKey
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the key of --attestations: %w", err)
		}
		key, err := attestation.ParsePublicKey(text)
		if err != nil {
			return nil, fmt.Errorf("reading the key %s of --attestations: %w", name, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// attestedFiles are the files of a commit with the digests that trusted statements have of them.
type attestedFiles struct {
	files   fs.FS
	digests map[string][]string
	refused []string // statements that cannot be trusted, and why
}

// maxStatement bounds the file of a statement.
const maxStatement = 64 << 20

// readStatements reads the statements of a commit, or of a directory for "".
func readStatements(dir, commit string, keys []crypto.PublicKey) (*attestedFiles, error) {
	files, err := rendered.Files(dir, commit)
	if err != nil {
		return nil, err
	}
	a := &attestedFiles{files: files, digests: map[string][]string{}}
	entries, err := fs.ReadDir(files, publish.StatementDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		name := path.Join(publish.StatementDir, entry.Name())
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		if !entry.Type().IsRegular() || info.Size() > maxStatement {
			a.refused = append(a.refused, name+": it is not a file of a statement")
			continue
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		statement, err := attestation.Open(text, keys)
		if err != nil {
			a.refused = append(a.refused, name+": "+err.Error())
			continue
		}
		// Otherwise a copy of an older statement beside the newer one would cover older files.
		if own := publish.StatementFile(statement.Predicate.BuildDefinition.ExternalParameters.Pipeline); own != name {
			a.refused = append(a.refused, name+": it is the statement of the pipeline whose file is "+own)
			continue
		}
		for file, digest := range statement.Digests() {
			a.digests[file] = append(a.digests[file], digest)
		}
	}
	return a, nil
}

// findProblem returns why no trusted statement covers a file, or "". Several may name it: a pipeline that took over some files of a
// removed one leaves the statement about the others.
func (a *attestedFiles) findProblem(name string) (string, error) {
	digests := a.digests[name]
	if len(digests) == 0 {
		problem := "no trusted statement covers it"
		if len(a.refused) > 0 {
			problem += "; " + strings.Join(a.refused, "; ")
		}
		return problem, nil
	}
	content, err := fs.ReadFile(a.files, name)
	if err != nil {
		return "", err
	}
	if slices.Contains(digests, attestation.SHA256(content)["sha256"]) {
		return "", nil
	}
	return "it was changed after the statement about it was signed", nil
}
