// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// readTimeout bounds the reading of one place.
const readTimeout = 2 * time.Minute

// branch is a branch as it is now; tree is nil where it does not exist.
type branch struct{ tree *tree.Tree }

// published gives what a place holds of the pipeline now, by paths relative to the pipeline's own. wanted are the files that
// it would get. refused says why publishing would be refused whatever the content.
func (p *Previewer) published(ctx context.Context, r *Result, to v1alpha1.Publish, wanted map[string][]byte) (held publish.Holding, refused, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if to.OCI != nil {
		held, err = p.artifact(ctx, r.Entry.Pipeline.Metadata.Namespace, to.OCI)
	} else {
		held, refused, err = p.onBranch(ctx, r, to.Git, wanted)
	}
	if err != nil {
		return held, nil, fmt.Errorf("reading what is published: %w", err)
	}
	return held, refused, nil
}

func (p *Previewer) onBranch(ctx context.Context, r *Result, to *v1alpha1.GitPublish, wanted map[string][]byte) (held publish.Holding, refused, err error) {
	namespace := r.Entry.Pipeline.Metadata.Namespace
	key := to.URL + "\x00" + to.Branch
	if to.SecretRef != nil {
		key += "\x00" + namespace + "/" + to.SecretRef.Name
	}
	at, err := p.branches.get(key, func() (*branch, error) { return p.branch(ctx, namespace, to) })
	if err != nil || at.tree == nil {
		return held, nil, err
	}
	view := tree.NewView(at.tree, tree.Limits{})
	managed, err := publish.Managed(view)
	if err != nil {
		return held, nil, err
	}
	if !managed && !to.Adopt && to.Propose == nil {
		refused = publish.ErrUnmanaged
	}
	owned, err := publish.Published(view, r.Entry.Key)
	if err != nil {
		return held, nil, err
	}
	base := path.Clean(to.Path)
	held = publish.Holding{Files: map[string][]byte{}, Objects: owned.Objects}
	for name, content := range owned.Files {
		at, err := relative(base, name)
		if err != nil {
			return held, nil, err
		}
		held.Files[at] = content
	}
	// What is there and not the pipeline's is taken over or refused, as publishing would.
	for name := range wanted {
		if _, ok := held.Files[name]; ok {
			continue
		}
		content, err := view.Read(path.Join(base, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return held, nil, err
		}
		if held.Files[name] = content; !to.Adopt && refused == nil {
			refused = fmt.Errorf("writing %s: %w", path.Join(base, name), publish.ErrNotOwned)
		}
	}
	return held, refused, nil
}

func (p *Previewer) branch(ctx context.Context, namespace string, to *v1alpha1.GitPublish) (*branch, error) {
	mirror, remote, err := p.Fetcher.Repository(ctx, namespace, to.URL, to.SecretRef)
	if err != nil {
		return nil, err
	}
	commit, err := mirror.Fetch(ctx, remote, git.Ref{Name: "refs/heads/" + to.Branch})
	if errors.Is(err, git.ErrNoRef) {
		return &branch{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &branch{tree: mirror.Tree(commit)}, nil
}

// relative gives a path on the branch as it is from the pipeline's own. What the pipeline has left at another path begins
// with "../", so that it is never taken for a file that is to be at this one.
func relative(base, name string) (string, error) {
	at, err := filepath.Rel(filepath.FromSlash(base), filepath.FromSlash(name))
	return filepath.ToSlash(at), err
}

// elsewhere says whether a path that relative has given is one that the pipeline leaves.
func elsewhere(name string) bool { return strings.HasPrefix(name, "../") }

// artifact gives what is at the first tag, nothing where there is no such tag.
func (p *Previewer) artifact(ctx context.Context, namespace string, to *v1alpha1.OCIPublish) (publish.Holding, error) {
	var secret map[string][]byte
	if to.SecretRef != nil {
		if p.Secrets == nil {
			return publish.Holding{}, fmt.Errorf("reading secret %s: no secrets are configured", to.SecretRef.Name)
		}
		var err error
		if secret, err = p.Secrets.Secret(ctx, namespace, to.SecretRef.Name); err != nil {
			return publish.Holding{}, fmt.Errorf("reading secret %s: %w", to.SecretRef.Name, err)
		}
	}
	registry, err := oci.Connect(to.URL, secret, to.Insecure)
	if err != nil {
		return publish.Holding{}, err
	}
	return publish.PublishedArtifact(ctx, registry, firstTag(to))
}

func firstTag(to *v1alpha1.OCIPublish) string {
	if len(to.Tags) > 0 {
		return to.Tags[0]
	}
	return "latest"
}

// against says in words what a place is compared with.
func against(to v1alpha1.Publish) string {
	switch {
	case to.OCI != nil:
		return "artifact " + to.OCI.URL + ":" + firstTag(to.OCI)
	case to.Git.Propose != nil:
		next := to.Git.Branch + "-next"
		if to.Git.Propose.ActivePath != "" {
			next += "/" + to.Git.Propose.ActivePath
		}
		return fmt.Sprintf("active branch %s of %s (what is proposed goes to %s)", to.Git.Branch, to.Git.URL, next)
	}
	return "branch " + to.Git.Branch + " of " + to.Git.URL
}

// directory reads all files below a directory; one that does not exist has none.
func directory(dir string) (map[string][]byte, error) {
	out := map[string][]byte{}
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return out, nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = content
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what is published: %w", err)
	}
	return out, nil
}
