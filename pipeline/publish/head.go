// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// BranchHead is what the newest commit of a target branch has of a pipeline.
type BranchHead struct {
	Contents
	// Commit is the newest commit, "" where the branch does not exist.
	Commit string
	// HasResult reports whether the files are those that the pipeline has written last.
	HasResult bool
}

// ErrNoBranch is the error about a target without a branch.
var ErrNoBranch = errors.New("results are not published to a branch")

// ReadHead returns what the newest commit of the branch of an entry has of a pipeline. An answer that the server has
// sent after since is reused.
func (t *Targets) ReadHead(
	ctx context.Context,
	p *v1alpha1.RenderPipeline,
	to v1alpha1.Publish,
	state *status.State,
	since time.Time,
) (BranchHead, error) {
	if to.Git == nil {
		return BranchHead{}, ErrNoBranch
	}
	opened, err := t.Open(ctx, p.Metadata.Namespace, to)
	if err != nil {
		return BranchHead{}, err
	}
	target, _ := branchOf(opened)
	if target == nil {
		return BranchHead{}, ErrNoBranch
	}
	branch := target.branch
	refs, err := branch.Remote.ListSince(ctx, since)
	if err != nil {
		return BranchHead{}, err
	}
	tip, exists := refs.ByName[to.Git.Reference()]
	if !exists {
		return BranchHead{}, nil
	}
	commit, err := branch.Mirror.Fetch(ctx, branch.Remote, git.Ref{Name: to.Git.Reference(), Commit: tip})
	if err != nil {
		return BranchHead{}, err
	}
	files := branch.Mirror.Tree(commit)
	head := BranchHead{Commit: tip.String()}
	if head.Contents, err = contentsOf(tree.NewView(files, t.limits), p.Key()); err != nil {
		return BranchHead{}, err
	}
	if record := publishedToEntry(state, to, since).Record; len(record) > 0 {
		_, differences := record.Differences(files, 1)
		head.HasResult = differences == 0
	}
	return head, nil
}

// maxSearchedBytes bounds the files that are searched for proxies.
const maxSearchedBytes = 64 << 20

// proxyName is in the image of every proxy of Istio.
var proxyName = []byte("proxyv2")

// Proxies returns the version of Istio's proxy of each workload in the files, by its name as result.ResourceRef prints
// it. isWorkload reports whether an object of a kind that only the pipeline knows is a workload; it may be nil.
func (c Contents) Proxies(isWorkload func(name string) bool) (map[string]string, error) {
	kinds, err := workload.NewRegistry(nil)
	if err != nil {
		return nil, err
	}
	out, left := map[string]string{}, maxSearchedBytes
	for _, file := range c.Names {
		if !manifest.IsFileName(file) || strings.HasPrefix(file, metaDir+"/") {
			continue
		}
		content, err := c.read(file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if left -= len(content); left < 0 {
			return nil, errors.New("too much is published to look for proxies in it")
		}
		if !bytes.Contains(content, proxyName) {
			continue
		}
		parsed, err := manifest.Parse("", content)
		if err != nil {
			continue // a person has written it
		}
		for _, doc := range parsed.Docs {
			object, err := doc.Object()
			version := IstioVersion(render.Object{YAML: doc.Raw()})
			if err != nil || version == "" {
				continue
			}
			ref := result.RefTo(object)
			_, known := kinds.Lookup(ref.APIVersion, ref.Kind)
			if name := ref.String(); known || isWorkload != nil && isWorkload(name) {
				out[name] = version
			}
		}
	}
	return out, nil
}
