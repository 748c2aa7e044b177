// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// addPreview adds the branch whose pull requests a pipeline previews.
func (x *changeIndex) addPreview(key string, p *v1alpha1.RenderPipeline) {
	git := p.Spec.Source.Git
	if p.Spec.Preview == nil || git == nil {
		return
	}
	w := watchedRef{key: key, ref: git.Ref.Name}
	if git.Ref.Branch != "" {
		w.ref = "refs/heads/" + git.Ref.Branch
	}
	url := giturl.Normal(git.URL)
	x.previews[url] = append(x.previews[url], w)
}

// matchPull finds the pipelines that preview a pull request. A pull request that now targets another branch may
// still be previewed, so the branch is not matched here: it is checked with the pull request itself.
func (x *changeIndex) matchPull(change event.Change, found func(key string)) {
	if change.Pull == nil {
		return
	}
	for _, url := range change.Pull.URLs {
		for _, w := range x.previews[giturl.Normal(url)] {
			found(w.key)
		}
	}
}
