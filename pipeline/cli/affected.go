// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// affectedReport is what the command prints.
type affectedReport struct {
	Base      string           `json:"base"`
	Head      string           `json:"head"`
	Affected  []dryrun.Touched `json:"affected"`
	LookedAt  int              `json:"lookedAt"`
	NotOfHere int              `json:"otherSources"`
}

func newAffected(streams Streams, version string) *cobra.Command {
	var l localPipelines
	var repository, url, output string
	cmd := newCommand("affected BASE..HEAD", "List the pipelines that a range of commits affects")
	cmd.Long = `List the pipelines whose result could differ between two commits of the repository in the
current directory. Each pipeline is rendered at the first commit; it is affected if
anything that it read there, or looked for and did not find, differs at the second commit.
File names are not used to guess.`
	cmd.Example = `  prerig affected origin/main..HEAD | jq -r '.affected[].pipeline'`
	l.addFlags(cmd)
	cmd.Flags().StringVarP(&repository, "repository", "C", ".", "directory of the repository")
	cmd.Flags().StringVar(&url, "url", "", "URL of the repository as pipelines specify it (default: the URLs of its remotes)")
	formatFlag(cmd, streams, &output, []string{"json", "yaml", "text"})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("specify one range of commits, BASE..HEAD, such as origin/main..HEAD; found %s", countWithNoun(len(args), "argument"))
		}
		base, head, ok := strings.Cut(args[0], "..")
		if !ok || base == "" || head == "" || strings.HasPrefix(head, ".") {
			return fmt.Errorf("the range must be BASE..HEAD, such as origin/main..HEAD; found %q", args[0])
		}
		repo, err := git.OpenLocal(repository)
		if err != nil {
			return notARepositoryError(repository, err)
		}
		from, before, err := repo.Commit(base)
		if err != nil {
			return missingRevisionError(base, err)
		}
		to, after, err := repo.Commit(head)
		if err != nil {
			return missingRevisionError(head, err)
		}
		p, closing, err := l.openDryRun(streams, version)
		if err != nil {
			return err
		}
		defer closing()
		urls := repo.URLs()
		if url != "" {
			urls = []string{url}
		}
		entries, others, err := pipelinesUsingRepository(l.catalog.All(), urls)
		if err != nil {
			return err
		}
		found := p.Affected(cmd.Context(), entries, dryrun.Range{Base: before, Head: after, IsRepository: isOneOf(urls)})
		l.bar.clearLine()
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if output == "text" {
			return listAffected(streams, found, len(entries))
		}
		return writeStructured(streams.Out, output, affectedReport{
			Base: from.Hash.String(), Head: to.Hash.String(), Affected: found, LookedAt: len(entries), NotOfHere: others,
		})
	}
	return cmd
}

// listAffected prints the names of affected pipelines, and their number.
func listAffected(streams Streams, found []dryrun.Touched, of int) error {
	for _, one := range found {
		if _, err := fmt.Fprintln(visibleWriter{streams.Out}, one.Pipeline); err != nil {
			return err
		}
	}
	fmt.Fprintf(streams.Err, "%d of %s affected\n", len(found), countWithNoun(of, "pipeline"))
	return nil
}

// missingRevisionError explains what to do about a missing revision.
func missingRevisionError(revision string, err error) error {
	if fields := strings.Fields(revision); len(fields) == 2 {
		return fmt.Errorf("finding the revision %q: it has a space; a range of two revisions is %s..%s", revision, fields[0], fields[1])
	}
	if err != nil && strings.HasPrefix(err.Error(), "Revision invalid") {
		return fmt.Errorf("finding the revision %q: it cannot be the name of a branch, tag or commit", revision)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, plumbing.ErrReferenceNotFound) || errors.Is(err, plumbing.ErrObjectNotFound) {
		if revision == "HEAD" {
			return errors.New("finding the revision \"HEAD\": the repository has no commit yet; commit the manifests first")
		}
		return fmt.Errorf("finding the revision %q: the repository has no such branch, tag or commit; check the name, or fetch it, and deepen the clone if it is shallow", revision)
	}
	return err
}

// notARepositoryError explains why a directory of -C cannot be opened as a repository.
func notARepositoryError(dir string, err error) error {
	if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
		return fmt.Errorf("reading the repository of -C: %s is a file; specify the directory of a repository", dir)
	}
	if _, statErr := os.Stat(dir); errors.Is(statErr, fs.ErrNotExist) {
		return fmt.Errorf("reading the repository of -C: %s: no such directory", dir)
	}
	if _, statErr := os.Stat(filepath.Join(dir, "objects")); statErr == nil {
		return fmt.Errorf("reading the repository of -C: %s is a bare repository, which has no files to compare with; clone it, and specify the clone: git clone %s", dir, quoteShellWord(dir))
	}
	return fmt.Errorf("%w; specify its directory with -C", err)
}

// isOneOf reports whether a URL names the same repository as one of several.
func isOneOf(urls []string) func(url string) bool {
	var names []string
	for _, u := range urls {
		names = append(names, giturl.Normal(u))
	}
	return func(url string) bool { return slices.Contains(names, giturl.Normal(url)) }
}

// pipelinesUsingRepository returns the pipelines that have the repository among their sources, and the number of
// others.
func pipelinesUsingRepository(all []catalog.Entry, urls []string) (out []catalog.Entry, others int, err error) {
	named := isOneOf(urls)
	for _, e := range all {
		if e.Err != nil {
			return nil, 0, e.Err
		}
		if slices.ContainsFunc(e.Pipeline.AllSources(), func(s v1alpha1.NamedSource) bool { return s.Git != nil && named(s.Git.URL) }) {
			out = append(out, e)
		} else {
			others++
		}
	}
	if len(out) == 0 && others > 0 {
		return nil, 0, errors.New("no pipeline uses this repository as its source; set --url to the URL that the pipelines use")
	}
	return out, others, nil
}
