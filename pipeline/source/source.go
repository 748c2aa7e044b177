// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package source provides the files of a pipeline's source at one exact revision, wherever they come from, and the
// repository that a result is pushed to. It keeps fetched data in a state directory, reads secrets by name and
// never exposes them.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/dir"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/giturl"
	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Options of a Fetcher.
type Options struct {
	// StateDir keeps the mirrors.
	StateDir string
	// Secrets reads secrets; nil means that none exist.
	Secrets secret.Reader
	// AllowDir allows sources that are local directories, relative to BaseDir.
	AllowDir bool
	BaseDir  string
	// Without lists directories that are excluded from local directories that contain them: results are written to
	// them.
	Without []string
	// Dialer connects to servers; nil means a dialer with the default rules.
	Dialer *egress.Dialer
	// Sources are the repositories that submodules of any pipeline may lead to; nil sets no bound.
	Sources []giturl.Pattern
	// Git, OCI and Dir bound what is fetched; their zero values mean the defaults.
	Git git.Limits
	OCI oci.Limits
	Dir tree.Limits
}

// Fetcher fetches sources. It is safe for use by several goroutines.
type Fetcher struct {
	options Options
	store   *git.Store

	artifacts Once[*oci.Artifact]

	mu      sync.Mutex
	remotes map[string]*git.Remote
}

// artifactsKept is how many artifacts stay in memory.
const artifactsKept = 4

// New returns a Fetcher.
func New(options Options) *Fetcher {
	if options.Git == (git.Limits{}) {
		options.Git = git.DefaultLimits()
	}
	options.Dialer = egress.OrDefault(options.Dialer)
	if options.OCI == (oci.Limits{}) {
		options.OCI = oci.DefaultLimits()
	}
	if options.OCI.Dir == "" {
		options.OCI.Dir = options.StateDir
	}
	if options.Dir == (tree.Limits{}) {
		options.Dir = oci.DefaultLimits().Tree
	}
	return &Fetcher{
		options: options, store: git.NewStore(filepath.Join(options.StateDir, "mirrors"), options.Git),
		remotes: map[string]*git.Remote{}, artifacts: Once[*oci.Artifact]{Last: artifactsKept},
	}
}

// Snapshot is a source at one revision.
type Snapshot struct {
	// Tree holds the files.
	Tree *tree.Tree
	// URL of the repository, or the path of the directory.
	URL string
	// Revision as Flux writes it: main@sha1:…, latest@sha256:… or dir@sha256:….
	Revision string
	// Digest is the revision without its name: the commit's or the manifest's, without an algorithm in front for a
	// commit.
	Digest string
	// Date is the date of the commit, or the creation date that the artifact declares. It is zero if unknown.
	Date time.Time
	// Resolved is when the source was looked at for it. Shared sets it.
	Resolved time.Time
	// Commit is set for Git.
	Commit *git.Commit
	// Damaged reports whether a file could not be read because the local copy is damaged, which the next fetch
	// repairs.
	Damaged func() bool
	// Mounted are the further sources whose files Tree holds too. The other fields are those of the first source, but
	// Resolved.
	Mounted []Mounted
}

// Fetch returns the source in its current state, or at an exact revision: a commit or a manifest digest that an
// event named. If revision is "", the source itself determines it.
func (f *Fetcher) Fetch(ctx context.Context, scope Scope, src v1alpha1.Source, revision string) (*Snapshot, error) {
	ctx = scope.Bind(ctx)
	switch {
	case src.Git != nil:
		return f.fetchGit(ctx, scope, src.Git, revision)
	case src.OCI != nil:
		return f.fetchOCI(ctx, scope.Namespace, src.OCI, revision)
	case src.Dir != nil:
		return f.readDir(src.Dir)
	}
	return nil, errors.New("source has none of git, oci and dir")
}

// Repository returns the mirror of a Git repository and the way to reach it.
func (f *Fetcher) Repository(ctx context.Context, namespace, url string,
	ref *meta.LocalObjectReference) (*git.Mirror, *git.Remote, error) {
	keys, err := secret.Read(ctx, f.options.Secrets, namespace, ref, secret.At(url))
	if err != nil {
		return nil, nil, err
	}
	remote, err := f.remoteFor(namespace, url, ref, keys)
	if err != nil {
		return nil, nil, err
	}
	mirror, err := f.store.Mirror(url)
	return mirror, remote, err
}

// Resolve returns the current commit of a branch or tag of a repository, or "" if none has that name, and whether it is
// a tag.
func (f *Fetcher) Resolve(ctx context.Context, namespace, url string, ref *meta.LocalObjectReference,
	name string) (commit string, tag bool, err error) {
	_, remote, err := f.Repository(ctx, namespace, url, ref)
	if err != nil {
		return "", false, err
	}
	refs, err := remote.List(ctx)
	if err != nil {
		return "", false, err
	}
	for _, full := range []string{"refs/tags/" + name, "refs/heads/" + name, name} {
		for _, known := range []map[string]git.Hash{refs.Peeled, refs.ByName} {
			if hash, ok := known[full]; ok {
				return hash.String(), strings.HasPrefix(full, "refs/tags/"), nil
			}
		}
	}
	return "", false, nil
}

// Forget lets the mirror of a repository drop commits.
func (f *Fetcher) Forget(ctx context.Context, url string, commits ...string) error {
	mirror, err := f.store.Mirror(url)
	if err != nil {
		return err
	}
	var hashes []git.Hash
	for _, commit := range commits {
		hashes = append(hashes, plumbing.NewHash(commit))
	}
	return mirror.Forget(ctx, hashes...)
}

// Size is how many bytes the mirrors of repositories take.
func (f *Fetcher) Size() int64 { return f.store.Size() }

// Trim reduces the mirrors of repositories to at most limit bytes, removing the oldest first. It must be called
// when no reader is active.
func (f *Fetcher) Trim(ctx context.Context, limit int64) error { return f.store.Trim(ctx, limit) }

// remoteFor keeps one remote for each URL and secret, so that connections are used again. Two secrets with the same
// keys may be for other repositories.
func (f *Fetcher) remoteFor(namespace, url string, ref *meta.LocalObjectReference,
	keys map[string][]byte) (*git.Remote, error) {
	key := url + "\x00" + secretDigest(keys)
	if ref != nil {
		key += "\x00" + namespace + "\x00" + ref.Name
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if remote, ok := f.remotes[key]; ok {
		return remote, nil
	}
	remote, err := git.NewRemote(url, keys, f.options.Dialer)
	if err != nil {
		return nil, err
	}
	if ref != nil {
		ref := *ref
		remote.BindCredentials(func(ctx context.Context, url string) error {
			_, err := secret.Read(ctx, f.options.Secrets, namespace, &ref, secret.At(url))
			return err
		})
	}
	if len(f.remotes) > 1000 {
		clear(f.remotes)
	}
	f.remotes[key] = remote
	return remote, nil
}

func secretDigest(secret map[string][]byte) string {
	var keys []string
	for key := range secret {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	h := sha256.New()
	for _, key := range keys {
		fmt.Fprintf(h, "%s %d %s\n", key, len(secret[key]), secret[key])
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (f *Fetcher) fetchGit(ctx context.Context, scope Scope, src *v1alpha1.GitSource,
	revision string) (*Snapshot, error) {
	mirror, remote, err := f.Repository(ctx, scope.Namespace, src.URL, src.SecretRef)
	if err != nil {
		return nil, err
	}
	commit, err := mirror.Fetch(ctx, remote, gitRef(src.Ref, revision))
	if err != nil {
		return nil, err
	}
	files := mirror.Tree(commit)
	if src.Submodules {
		if files, err = f.mountSubmodules(ctx, scope, src, files); err != nil {
			return nil, err
		}
	}
	return &Snapshot{
		Tree: files, URL: src.URL, Revision: commit.Revision(), Digest: commit.Hash.String(), Date: commit.Date,
		Commit:  commit,
		Damaged: mirror.Damaged,
	}, nil
}

func gitRef(ref v1alpha1.GitRef, revision string) git.Ref {
	var out git.Ref
	switch {
	case ref.Name != "":
		out.Name = ref.Name
	case ref.Tag != "":
		out.Name = "refs/tags/" + ref.Tag
	case ref.Branch != "":
		out.Name = "refs/heads/" + ref.Branch
	}
	if revision == "" {
		revision = ref.Commit
	}
	if revision != "" {
		out.Commit = plumbing.NewHash(revision[strings.LastIndexByte(revision, ':')+1:])
	}
	return out
}

func (f *Fetcher) fetchOCI(ctx context.Context, namespace string, src *v1alpha1.OCISource,
	revision string) (*Snapshot, error) {
	keys, err := secret.Read(ctx, f.options.Secrets, namespace, src.SecretRef, secret.AtRegistry(src.URL, src.Insecure))
	if err != nil {
		return nil, err
	}
	registry, err := f.Registry(src.URL, keys, src.Insecure)
	if err != nil {
		return nil, err
	}
	ref := oci.Ref{Tag: src.Ref.Tag, Digest: src.Ref.Digest}
	if ref.Tag == "" && ref.Digest == "" {
		ref.Tag = "latest"
	}
	if _, digest, ok := strings.Cut("@"+revision, "@sha256:"); ok {
		ref.Digest = "sha256:" + digest
	}
	digest := ref.Digest
	if digest == "" {
		resolved, err := registry.Resolve(ctx, ref)
		if err != nil {
			return nil, err
		}
		digest = resolved.Digest
	}
	artifact, err := f.pullArtifact(ctx, registry, src, digest)
	if err != nil {
		return nil, err
	}
	named := *artifact
	named.Tag = ref.Tag
	return &Snapshot{Tree: named.Tree, URL: src.URL, Revision: named.String(), Digest: named.Digest,
		Date: named.Created}, nil
}

// Registry returns access to a repository in a registry. It does not contact the registry.
func (f *Fetcher) Registry(url string, keys map[string][]byte, insecure bool) (*oci.Registry, error) {
	registry, err := oci.Connect(url, keys, insecure, f.options.Dialer)
	if err != nil {
		return nil, err
	}
	registry.Dir = f.options.OCI.Dir
	return registry, nil
}

// pullArtifact pulls by digest, so that it is exactly what was resolved, and keeps the last few.
func (f *Fetcher) pullArtifact(ctx context.Context, registry *oci.Registry, src *v1alpha1.OCISource,
	digest string) (*oci.Artifact, error) {
	pulled := false
	artifact, err := f.artifacts.Get(src.URL+"@"+digest+" "+src.LayerMediaType, func() (*oci.Artifact, error) {
		pulled = true
		return registry.Pull(ctx, oci.Ref{Digest: digest}, src.LayerMediaType, f.options.OCI)
	})
	if err != nil || pulled {
		return artifact, err
	}
	// A user who may no longer pull it must not get it from the local copy.
	if _, err := registry.Resolve(ctx, oci.Ref{Digest: digest}); err != nil {
		return nil, err
	}
	return artifact, nil
}

func (f *Fetcher) readDir(src *v1alpha1.DirSource) (*Snapshot, error) {
	if !f.options.AllowDir {
		return nil, errors.New("reading a local directory: this daemon was started without permission for local sources")
	}
	path := src.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.options.BaseDir, path)
	}
	files, err := dir.Read(path, f.options.Dir, f.options.Without...)
	if err != nil {
		return nil, err
	}
	return &Snapshot{Tree: files, URL: src.Path, Revision: "dir@sha256:" + files.ID(), Digest: "sha256:" + files.ID()},
		nil
}
