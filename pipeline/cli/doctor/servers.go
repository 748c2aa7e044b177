// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-git/go-git/v5/plumbing/transport"
	registryerror "github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// refKey is equal for equal secrets of a namespace.
func refKey(namespace string, ref *meta.LocalObjectReference) string {
	if ref == nil {
		return ""
	}
	return namespace + "/" + ref.Name
}

// checkSource asks a source what it has.
func (l *look) checkSource(e catalog.Entry, source v1alpha1.NamedSource) {
	namespace, where := e.Pipeline.Metadata.Namespace, e.Key+" "+source.Field
	switch {
	case source.Git != nil:
		src := source.Git
		key := fmt.Sprintf("source %s %s %v", src.URL, refKey(namespace, src.SecretRef), src.Ref)
		l.askServerOnce(key, answer{area: Sources, where: where + ".git " + src.URL}, e.Key, func(ctx context.Context, a *answer) {
			a.message, a.advice, a.err = l.checkGitSource(ctx, namespace, src)
		})
	case source.OCI != nil:
		src := source.OCI
		key := fmt.Sprintf("source %s %s %v", src.URL, refKey(namespace, src.SecretRef), src.Ref)
		l.askServerOnce(key, answer{area: Sources, where: where + ".oci " + src.URL}, e.Key, func(ctx context.Context, a *answer) {
			a.message, a.err = l.checkArtifactSource(ctx, namespace, src)
		})
	case source.Dir != nil:
		info, err := os.Stat(source.Dir.Path)
		switch {
		case !l.config.AllowLocal:
			l.addFailureUnlessHidden(Sources, where+".dir "+source.Dir.Path,
				errors.New("this daemon may not read local directories"), "allow_local: true (--allow-local) allows it")
		case err != nil:
			l.addFailureUnlessHidden(Sources, where+".dir "+source.Dir.Path, err, "")
		case !info.IsDir():
			l.addFailureUnlessHidden(Sources, where+".dir "+source.Dir.Path, errors.New("it is not a directory"), "")
		default:
			l.addPassedCheck(Sources, where+".dir "+source.Dir.Path, "is a directory")
		}
	}
}

// checkGitSource lists the references of a repository, and looks for the one that is followed.
func (l *look) checkGitSource(ctx context.Context, namespace string,
	src *v1alpha1.GitSource) (message, advice string, err error) {
	_, server, err := l.in.Fetcher.Repository(ctx, namespace, src.URL, src.SecretRef)
	if err != nil {
		return "", "", err
	}
	refs, err := server.List(ctx)
	if err != nil {
		return "", "", err
	}
	name := src.Ref.Name
	switch {
	case src.Ref.Tag != "":
		name = "refs/tags/" + src.Ref.Tag
	case src.Ref.Branch != "":
		name = "refs/heads/" + src.Ref.Branch
	case name == "" && src.Ref.Commit != "":
		return "can be read; the commit is only checked when it is fetched", "", nil
	case name == "":
		name = refs.Default
	}
	if _, ok := refs.ByName[name]; !ok || name == "" {
		return "", "check spec.source.git.ref; an empty repository has no branches yet",
			fmt.Errorf("the repository can be read, but has no %s", cmp.Or(name, "default branch"))
	}
	return "can be read, and has " + strings.TrimPrefix(name, "refs/heads/"), "", nil
}

func (l *look) checkArtifactSource(ctx context.Context, namespace string, src *v1alpha1.OCISource) (string, error) {
	keys, err := secret.Read(ctx, l.in.Secrets, namespace, src.SecretRef, secret.AtRegistry(src.URL, src.Insecure))
	if err != nil {
		return "", err
	}
	registry, err := l.in.Fetcher.Registry(src.URL, keys, src.Insecure)
	if err != nil {
		return "", err
	}
	ref := oci.Ref{Tag: src.Ref.Tag, Digest: src.Ref.Digest}
	if ref.Tag == "" && ref.Digest == "" {
		ref.Tag = "latest"
	}
	found, err := registry.Resolve(ctx, ref)
	if err != nil {
		return "", err
	}
	return "can be read, and has " + found.String(), nil
}

// checkTarget asks whether an entry of spec.publish could be published to.
func (l *look) checkTarget(e catalog.Entry, i int, to v1alpha1.Publish) {
	namespace, where := e.Pipeline.Metadata.Namespace, fmt.Sprintf("%s spec.publish[%d]", e.Key, i)
	switch {
	case to.Git != nil:
		g := to.Git
		key := fmt.Sprintf("target %s %s %s %t", g.URL, g.Branch, refKey(namespace, g.SecretRef), g.PullRequest != nil)
		if g.Signing != nil {
			key += " " + g.Signing.SecretRef.Name
		}
		if g.Attestation != nil {
			key += " " + g.Attestation.SecretRef.Name
		}
		l.askServerOnce(key, answer{area: Targets, where: where + ".git " + g.URL + " " + g.Branch}, e.Key, func(ctx context.Context, a *answer) {
			a.message, a.err = l.checkBranchPush(ctx, namespace, to)
			a.advice = adviceToPush(a.err)
		})
	case to.OCI != nil:
		key := fmt.Sprintf("target %s %s", to.OCI.URL, refKey(namespace, to.OCI.SecretRef))
		for _, signing := range []*v1alpha1.ArtifactSigning{to.OCI.Signing, to.OCI.Attestation} {
			if signing != nil {
				key += " " + signing.SecretRef.Name
			}
		}
		l.askServerOnce(key, answer{area: Targets, where: where + ".oci " + to.OCI.URL}, e.Key, func(ctx context.Context, a *answer) {
			a.message, a.err = l.checkRegistryTarget(ctx, namespace, to)
			a.advice = adviceToPush(a.err)
		})
	}
}

// adviceToPush returns the advice for errors of servers that deny a push.
func adviceToPush(err error) string {
	var refused *registryerror.Error
	if errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden) ||
		errors.Is(err, transport.ErrAuthorizationFailed) || errors.Is(err, transport.ErrAuthenticationRequired) {
		return "set secretRef to a secret of a user who may push; nothing was pushed by this check"
	}
	return ""
}

// checkBranchPush begins a push and ends it before any data is sent: hosts report missing permissions at that point.
func (l *look) checkBranchPush(ctx context.Context, namespace string, to v1alpha1.Publish) (string, error) {
	// It reads all keys: for pushing, signing, and the host's API.
	if _, err := l.in.Targets.Open(ctx, namespace, to); err != nil {
		return "", err
	}
	g := to.Git
	_, server, err := l.in.Fetcher.Repository(ctx, namespace, g.URL, g.SecretRef)
	if err != nil {
		return "", err
	}
	push, err := server.BeginPush(ctx)
	if err != nil {
		return "", err
	}
	defer push.Close()
	message := "accepts pushes by this user"
	if _, ok := push.Refs().ByName["refs/heads/"+g.Branch]; !ok {
		message += "; the branch does not exist yet and will be created"
	}
	if g.PullRequest == nil {
		return message, nil
	}
	host, err := l.in.Targets.Hosts(ctx, namespace, g)
	if err != nil {
		return "", err
	}
	if _, err := host.Find(ctx, g.PullRequest.HeadFor(git.Hash{}.String()), g.Branch); err != nil {
		return "", fmt.Errorf("listing pull requests: %w", err)
	}
	return message + ", and its API responds", nil
}

func (l *look) checkRegistryTarget(ctx context.Context, namespace string, to v1alpha1.Publish) (string, error) {
	if _, err := l.in.Targets.Open(ctx, namespace, to); err != nil {
		return "", err
	}
	keys, err := secret.Read(ctx, l.in.Secrets, namespace, to.OCI.SecretRef,
		secret.AtRegistry(to.OCI.URL, to.OCI.Insecure))
	if err != nil {
		return "", err
	}
	registry, err := l.in.Fetcher.Registry(to.OCI.URL, keys, to.OCI.Insecure)
	if err != nil {
		return "", err
	}
	if err := registry.CheckPush(ctx); err != nil {
		return "", err
	}
	return "accepts pushes by this user", nil
}
