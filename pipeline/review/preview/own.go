// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/source/git"
)

// checkOwn treats a pull request as one from a fork unless its head is the newest commit of a branch of the
// repository: only authors with write access are trusted with secrets, and hosts support pull requests that do not
// require it and claim to be of the repository.
func (a *attempt) checkOwn(ctx context.Context, all []catalog.Entry) error {
	if a.in.Fork {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	var errs []error
	for _, e := range all {
		refs, err := a.listReferencesOnce(ctx, e)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		tip, found := refs.ByName["refs/heads/"+a.in.Head]
		switch {
		case a.in.Head == "" || !found:
			a.in.Fork = true
		case tip.String() != a.in.HeadCommit:
			return laterError{fmt.Errorf("the branch %s is at %s, and the head of the pull request is %s", a.in.Head, tip, a.in.HeadCommit)}
		}
		return nil
	}
	a.unproven = errors.Join(errs...)
	return nil
}

// listReferencesOnce asks the repository for its references, once for each secret.
func (a *attempt) listReferencesOnce(ctx context.Context, e catalog.Entry) (git.Refs, error) {
	src, by := e.Pipeline.Spec.Source.Git, ""
	if src.SecretRef != nil {
		by = src.SecretRef.Name
	}
	if refs, ok := a.listed[by]; ok {
		return refs, nil
	}
	_, remote, err := a.p.Heads.Repository(ctx, a.one.Namespace, src.URL, src.SecretRef)
	if err != nil {
		return git.Refs{}, err
	}
	refs, err := remote.List(ctx)
	if err != nil {
		return git.Refs{}, laterError{fmt.Errorf("listing the branches: %w", err)}
	}
	if a.listed == nil {
		a.listed = map[string]git.Refs{}
	}
	a.listed[by] = refs
	return refs, nil
}
