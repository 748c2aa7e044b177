// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build/discover"
	"github.com/prerig/prerig/pipeline/cli/policy"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/dir"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/giturl"
	sourcetree "github.com/prerig/prerig/pipeline/source/tree"
)

func newReview(streams Streams, version string) *cobra.Command {
	var o reviewOptions
	cmd := newCommand("review [BASE[..HEAD]]", "Show what a change of a repository would change in the cluster")
	cmd.Long = `Find what a repository deploys, render it at both ends of a change, and show what would change
in the cluster. It needs no pipelines, no policy and no cluster: overlays that no other
kustomization uses, charts with their default values, directories of manifests, and Flux's
HelmReleases and Argo CD's Applications among them are found in the files. Where a directory
or one above it has a prerig.yaml, sidecars are injected by that policy at each end, so that
the changes by the injection are shown apart from those by the source.

BASE is a branch, tag or commit; without it, it is the commit at which the current branch left
the default branch of the remote origin, or HEAD if they are the same. Without HEAD, the files
of the directory are compared, committed or not, except those that git ignores.

What cannot be rendered is an error if the change is the reason. What could not be rendered
before either is listed in one line.

Exit codes, like those of diff:
  0  no differences
  1  differences found (0 with --exit-code=false)
  2  something cannot be rendered any more, or would be rejected; the rest is shown`
	cmd.Example = `  prerig review                                  # the current branch
  prerig review main..feature -o json
  prerig review "$BASE" -o markdown --exit-code=false > comment.md`
	f := cmd.Flags()
	f.StringVarP(&o.directory, "repository", "C", ".", "directory of the repository")
	f.StringVar(&o.kubernetes, "kubernetes-version", gate.NewestKubernetes,
		"version of Kubernetes that charts are rendered for")
	f.StringVar(&o.secrets, "secrets", "secrets", "directory of secrets for chart repositories, with files NAMESPACE/NAME/KEY")
	f.StringVar(&o.cache, "cache", defaultCache(), "cache directory")
	f.IntVarP(&o.jobs, "jobs", "j", 0, "number of concurrent renders (default: one per processor)")
	formatFlag(cmd, streams, &o.output, []string{"text", "markdown", "json", "yaml"})
	f.StringVar(&o.limit, "limit", "github", "for -o markdown: github, gitlab, gitea, bitbucket, azuredevops, or a number of characters; 0 for no limit, also of the lines of each change with -o text")
	f.BoolVar(&o.exitCode, "exit-code", true, "exit with 1 if there are differences")
	for _, name := range []string{"repository", "secrets", "cache"} {
		mustRegister(cmd.MarkFlagDirname(name))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), streams, version, args) }
	return cmd
}

// reviewOptions are the flags of review.
type reviewOptions struct {
	localPipelines
	directory, kubernetes, output, limit string
	urls                                 []string // of the repository
	name                                 string   // of its directory
	exitCode                             bool
	discovery                            discover.Options
}

// linesPerChange bounds the text of each change: an injected pod that moves to another namespace has some hundred lines.
const linesPerChange = 60

// end is one end of the range that is reviewed.
type end struct {
	name     string
	snapshot *source.Snapshot
	entries  []catalog.Entry
	// loose are the keys of builds that maybe no cluster applies, and leftOut those that none does.
	loose, leftOut map[string]bool
	// claims are the ApplicationSets that deploy builds to clusters that only Argo CD knows.
	claims map[string][]discover.Claim
	// maybe are the sources of Flux whose artifacts may have a build.
	maybe map[string][]string
	// untouched are the keys of the builds that read nothing that differs, and changed the files that differ.
	untouched keySet
	changed   []string
}

func (o *reviewOptions) run(ctx context.Context, streams Streams, version string, args []string) error {
	most, err := readLimit(o.limit)
	if err != nil {
		return err
	}
	kubernetes, err := gate.KubernetesMinor(o.kubernetes)
	if err != nil {
		return err
	}
	if len(args) > 1 {
		return fmt.Errorf("specify one range of commits, BASE or BASE..HEAD; found %s",
			countWithNoun(len(args), "argument"))
	}
	base, head, err := o.findEnds(slices.Concat(args, []string{""})[0])
	if err != nil {
		return err
	}
	o.discovery = discover.Options{KubeVersion: kubernetes + ".0", Impure: v1alpha1.ImpureEmpty,
		PolicyName: policy.FileName, URLs: o.urls, Directory: o.name}
	if err := findBuilds(base, head, o.discovery); err != nil {
		return err
	}
	if len(base.entries)+len(head.entries) == 0 {
		return fmt.Errorf("%s deploys nothing: it has no kustomizations, charts or manifests", o.directory)
	}
	c, err := o.compare(ctx, streams, version, base, head)
	if err != nil {
		return err
	}
	notes := notesText(c.Notes)
	if most > 0 {
		c.Shorten(linesPerChange)
	}
	if o.output != "markdown" {
		err = showComparison(streams, c, o.output, o.exitCode)
		if o.output == "text" {
			fmt.Fprint(streams.Err, notes)
		}
		return err
	}
	if most > maxNotes {
		most -= maxNotes
	}
	err = showReview(ctx, streams, c, most, o.exitCode)
	printNotes(streams.Out, notes)
	return err
}

// findEnds returns the two ends of a range.
func (o *reviewOptions) findEnds(revisions string) (base, head *end, err error) {
	repository, err := git.OpenLocal(o.directory)
	if err != nil {
		return nil, nil, notARepositoryError(o.directory, err)
	}
	first, last, isRange := strings.Cut(revisions, "..")
	if isRange && (first == "" || last == "" || strings.HasPrefix(last, ".")) {
		return nil, nil, fmt.Errorf("the range must be BASE..HEAD, such as origin/main..HEAD; found %q", revisions)
	}
	if first == "" {
		if first, err = repository.ForkPoint(); err != nil {
			return nil, nil, fmt.Errorf("%w; name the commit to compare with", err)
		}
	}
	o.urls = checkedURLs(repository)
	if root, err := repository.Root(); err == nil {
		o.name = filepath.Base(root)
	}
	url := slices.Concat(o.urls, []string{""})[0]
	if base, err = commitEnd(repository, first, url); err != nil {
		return nil, nil, err
	}
	if last != "" {
		head, err = commitEnd(repository, last, url)
		return base, head, err
	}
	root, err := repository.Root()
	if err != nil {
		return nil, nil, err
	}
	head, _, err = workEnd(root)
	if err == nil {
		head.name = "the files of " + o.directory
	}
	return base, head, err
}

// workEnd returns the files of a directory, or of the repository that it is in without those that git ignores, and the
// URLs of the repository.
func workEnd(at string) (here *end, urls []string, err error) {
	ignored := func(string, bool) bool { return false }
	if repository, err := git.OpenLocal(at); err == nil {
		if at, err = repository.Root(); err != nil {
			return nil, nil, err
		}
		if ignored, err = repository.Ignored(); err != nil {
			return nil, nil, err
		}
		urls = checkedURLs(repository)
	}
	files, err := dir.ReadExcept(at, sourcetree.Limits{}, ignored)
	if err != nil {
		return nil, nil, err
	}
	url := slices.Concat(urls, []string{""})[0]
	return &end{name: at, snapshot: &source.Snapshot{Tree: files, URL: url, Revision: "dir@" + files.ID()}}, urls, nil
}

// checkedURLs returns the URLs of a repository that pipelines can have.
func checkedURLs(repository *git.Local) (urls []string) {
	for _, one := range repository.URLs() {
		if len(giturl.Check(one)) == 0 {
			urls = append(urls, one)
		}
	}
	return urls
}

func commitEnd(repository *git.Local, revision, url string) (*end, error) {
	commit, files, err := repository.CommitInFull(revision)
	if err != nil {
		return nil, missingRevisionError(revision, err)
	}
	hash := commit.Hash.String()
	return &end{name: revision, snapshot: &source.Snapshot{
		Tree: files, URL: url, Revision: revision + "@sha1:" + hash, Digest: hash, Date: commit.Date, Commit: commit,
	}}, nil
}

// findBuilds finds the builds of both ends.
func findBuilds(base, head *end, options discover.Options) error {
	changed, err := sourcetree.ChangedFiles(base.snapshot.Tree, head.snapshot.Tree)
	if err != nil {
		return fmt.Errorf("comparing %s and %s: %w", base.name, head.name, err)
	}
	base.changed, head.changed = changed, changed
	first, second, err := discover.BothEnds(sourcetree.NewView(base.snapshot.Tree, sourcetree.Limits{}),
		sourcetree.NewView(head.snapshot.Tree, sourcetree.Limits{}), changed, options)
	if err != nil {
		return fmt.Errorf("reading %s and %s: %w", base.name, head.name, err)
	}
	if base.entries, err = entriesOf(base.snapshot, first); err != nil {
		return err
	}
	if head.entries, err = entriesOf(head.snapshot, second); err != nil {
		return err
	}
	for one, builds := range map[*end][]discover.Build{base: first, head: second} {
		one.loose, one.leftOut, one.claims = map[string]bool{}, map[string]bool{}, map[string][]discover.Claim{}
		one.untouched, one.maybe = keySet{}, map[string][]string{}
		for _, b := range builds {
			one.claims[b.Path] = b.Claims
			one.untouched[b.Path], one.maybe[b.Path] = b.Untouched, b.Maybe
			one.loose[b.Path], one.leftOut[b.Path] = b.Loose, b.LeftOut
		}
	}
	return nil
}

// discoverEntries returns a pipeline for each build of a repository, by the name of its directory.
func discoverEntries(snapshot *source.Snapshot, options discover.Options) ([]catalog.Entry, error) {
	builds, err := discover.Builds(sourcetree.NewView(snapshot.Tree, sourcetree.Limits{}), options)
	if err != nil {
		return nil, err
	}
	return entriesOf(snapshot, builds)
}

// entriesOf returns a pipeline for each build.
func entriesOf(snapshot *source.Snapshot, builds []discover.Build) ([]catalog.Entry, error) {
	var out []catalog.Entry
	for _, b := range builds {
		p := v1alpha1.RenderPipeline{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind,
			Metadata: v1alpha1.Metadata{Name: b.Name}}
		p.Spec.Build = b.Spec
		p.Spec.Source.Dir = &v1alpha1.DirSource{Path: "."}
		if snapshot.URL != "" {
			p.Spec.Source = v1alpha1.Source{Git: &v1alpha1.GitSource{URL: snapshot.URL}}
		}
		if b.Policy != "" {
			p.Spec.Policies = []v1alpha1.PolicyRef{{Path: b.Policy}}
		}
		text, err := yaml.Marshal(p)
		if err != nil {
			return nil, err
		}
		for _, e := range catalog.Parse(b.Path, text) {
			e.Key = b.Path
			out = append(out, e)
		}
	}
	return out, nil
}

// isLoose reports whether no cluster may apply a build, as far as the files tell.
func (e *end) isLoose(key string) bool { return e.loose[key] || len(e.maybe[key]) > 0 }
