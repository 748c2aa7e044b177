// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/fault"
	"github.com/prerig/prerig/pipeline/giturl"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/queue"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/status"
)

// place is what became of one entry of spec.publish.
type place struct {
	published v1alpha1.Published
	outcome   publish.Outcome
	changed   bool
	record    tree.Record // what was written
	err       error

	// For the difference: the mirror and the commit before, or the files of the artifact before, and the files by their paths.
	mirror *git.Mirror
	before git.Hash
	old    map[string][]byte
	files  map[string][]byte
}

// publish brings the result to every place; one that fails keeps no other from getting it.
func (a *attempt) publish(ctx context.Context) error {
	ctx, span := otel.Tracer("prerig").Start(ctx, "publish")
	defer span.End()
	start := time.Now()
	defer func() { a.seen.Publish = time.Since(start) }()
	var failed []*StageError
	for i, to := range a.p.Spec.Publish {
		var p place
		if to.Git != nil {
			p = a.publishGit(ctx, to.Git)
		} else {
			p = a.publishOCI(ctx, to.OCI)
		}
		if p.err != nil {
			p.err = fmt.Errorf("publishing to %s: %w", p.published.Target, p.err)
			failed = append(failed, stageOf(p.err))
			if bug := (*fault.Error)(nil); errors.As(p.err, &bug) {
				a.log.Error("publishing has panicked", "error", p.err, "stack", string(bug.Stack))
			}
			a.log.Warn("a result was not published", "place", i, "error", p.err)
		}
		a.places = append(a.places, p)
	}
	span.SetAttributes(attribute.StringSlice("prerig.commits", a.revisions()))
	if len(failed) > 0 {
		return together(failed)
	}
	return a.leave(ctx)
}

// together is the error of all places that have failed. It is only as final as the least final of them, and a gate that is
// closed, which waits for a change of the source, does not keep what others may mend from being looked at again.
func together(failed []*StageError) *StageError {
	all := &StageError{Stage: failed[0].Stage, Final: true}
	var errs []error
	for _, one := range failed {
		all.Final = all.Final && one.Final
		if one.Stage != status.StageGate {
			all.Stage = one.Stage
		}
		errs = append(errs, one.Err)
	}
	if all.Err = errors.Join(errs...); len(errs) == 1 {
		all.Err = errs[0]
	}
	return all
}

// revisions gives the commits and digests that the result is published as.
func (a *attempt) revisions() []string {
	var all []string
	for _, p := range a.places {
		if p.err == nil {
			all = append(all, p.published.Revision)
		}
	}
	return all
}

// stageOf says whether trying again can help.
func stageOf(err error) *StageError {
	var gate *publish.GateError
	if errors.As(err, &gate) {
		return &StageError{Stage: status.StageGate, Final: true, Err: err}
	}
	final := errors.Is(err, publish.ErrUnmanaged) || errors.Is(err, publish.ErrNotOwned) || errors.Is(err, errContent) ||
		errors.Is(err, errOwnSource)
	return &StageError{Stage: status.StagePublish, Final: final, Err: err}
}

// command is what reproduces a result, as it stands in trailers of commits.
func command(p *v1alpha1.RenderPipeline, snapshot *source.Snapshot) string {
	return "prerig render " + p.Key() + " --revision " + snapshot.Revision
}

// errContent is about a result that cannot be written as files.
var errContent = errors.New("the result cannot be written")

func (a *attempt) change(layout v1alpha1.Layout, style v1alpha1.Style, ctx context.Context) (publish.Change, error) {
	files, err := publish.Files(a.built.Objects, layout, style)
	if err != nil {
		return publish.Change{}, fmt.Errorf("%w: %w", errContent, err)
	}
	gate := publish.Gate(a.p.Spec.Gates, len(a.built.Objects))
	return publish.Change{
		Pipeline: a.entry.Key, Files: files, Objects: a.built.Objects, Origin: publish.OriginOf(a.snapshot),
		PolicyDigest: a.built.Request.PolicyDigest(), Tool: a.r.Builder.Version, Command: command(a.p, a.snapshot),
		Gate: func(published, deleted int) error {
			// The last moment before something is written: it must still be ours to write.
			if err := queue.Held(ctx); err != nil {
				return err
			}
			return gate(published, deleted)
		},
	}, nil
}

func (a *attempt) publishGit(ctx context.Context, to *v1alpha1.GitPublish) place {
	p := place{published: v1alpha1.Published{Target: Target(v1alpha1.Publish{Git: to})}}
	if a.followed(to) {
		p.err = errOwnSource
		return p
	}
	branch, err := a.r.Branch(ctx, a.p.Metadata.Namespace, to)
	if err != nil {
		p.err = err
		return p
	}
	change, err := a.change(to.Layout, to.Style, ctx)
	if err != nil {
		p.err = err
		return p
	}
	change.Path, change.Subject, change.Adopt = path.Clean(to.Path), to.Message, to.Adopt
	a.ready()
	lock := "branch/" + giturl.Normal(to.URL) + "#" + to.Branch
	done := a.r.publisher.publish(ctx, groupKey(a.p.Metadata.Namespace, to), lock, a.job.Cause, branch, change)
	if errors.Is(done.outcome.Err, publish.ErrNotOwned) {
		if change.Takes = a.r.takes(ctx, a.entry.Key, to); len(change.Takes) > 0 {
			done = a.r.publisher.publish(ctx, groupKey(a.p.Metadata.Namespace, to), lock, a.job.Cause, branch, change)
		}
	}
	if p.err = done.err; p.err == nil {
		p.err = done.outcome.Err
	}
	if p.err != nil {
		return p
	}
	p.outcome, p.changed = done.outcome, done.outcome.Changed()
	p.published.SourceRevision = a.snapshot.Revision
	if !done.result.Commit.IsZero() {
		p.published.Revision = done.result.Commit.String()
	}
	p.mirror, p.before = branch.Mirror, done.result.Before
	p.files = map[string][]byte{}
	for name, content := range change.Files {
		p.files[path.Join(change.Path, name)] = content
	}
	p.record = written(p.files)
	return p
}

// errOwnSource is about a pipeline that would render what it has published itself.
var errOwnSource = errors.New("it is the branch that the source is read from, and every commit would be read as a new source; publish to another branch")

// followed says whether an entry is about the branch that the source was read from. Where the source names none, that is
// only known now.
func (a *attempt) followed(to *v1alpha1.GitPublish) bool {
	source := a.p.Spec.Source.Git
	if source == nil || giturl.Normal(source.URL) != giturl.Normal(to.URL) {
		return false
	}
	name, _, _ := strings.Cut(a.snapshot.Revision, "@")
	return source.Ref == (v1alpha1.GitRef{}) && reference(to) == "refs/heads/"+name
}

// Branch gives the branch that an entry of spec.publish is about.
func (r *Runner) Branch(ctx context.Context, namespace string, to *v1alpha1.GitPublish) (*publish.Branch, error) {
	mirror, remote, err := r.Fetcher.Repository(ctx, namespace, to.URL, to.SecretRef)
	if err != nil {
		return nil, err
	}
	branch := &publish.Branch{Mirror: mirror, Remote: remote, Name: to.Branch, Adopt: to.Adopt}
	if to.Author != nil {
		branch.Author, branch.Email = to.Author.Name, to.Author.Email
	}
	if to.Propose != nil {
		branch.Propose, branch.ActivePath = true, to.Propose.ActivePath
	}
	if to.Signing != nil {
		secret, err := r.secret(ctx, namespace, &to.Signing.SecretRef)
		if err != nil {
			return nil, err
		}
		if branch.Signer, err = publish.NewSigner(to.Signing.Format, secret); err != nil {
			return nil, err
		}
	}
	return branch, nil
}

func (r *Runner) secret(ctx context.Context, namespace string, ref *meta.LocalObjectReference) (map[string][]byte, error) {
	if ref == nil {
		return nil, nil
	}
	if r.Secrets == nil {
		return nil, fmt.Errorf("reading secret %s: no secrets are configured", ref.Name)
	}
	secret, err := r.Secrets.Secret(ctx, namespace, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("reading secret %s: %w", ref.Name, err)
	}
	return secret, nil
}

// groupKey is equal for entries whose changes can go into one commit.
func groupKey(namespace string, to *v1alpha1.GitPublish) string {
	same := *to
	same.Path, same.Layout, same.Style, same.Message = "", "", "", ""
	text, err := json.Marshal([]any{namespace, same})
	if err != nil {
		panic(err) // it is plain data
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// written is the record of a view that has read all files: it tells later whether somebody else has changed them.
func written(files map[string][]byte) tree.Record {
	record := make(tree.Record, 0, len(files))
	for name, content := range files {
		record = append(record, tree.Access{Op: tree.OpRead, Path: name, Outcome: git.BlobHash(content).String()})
	}
	sort.Slice(record, func(i, j int) bool { return record[i].Path < record[j].Path })
	return record
}

func (a *attempt) publishOCI(ctx context.Context, to *v1alpha1.OCIPublish) place {
	p := place{published: v1alpha1.Published{Target: Target(v1alpha1.Publish{OCI: to})}}
	fail := func(err error) place {
		p.err = err
		return p
	}
	secret, err := a.r.secret(ctx, a.p.Metadata.Namespace, to.SecretRef)
	if err != nil {
		return fail(err)
	}
	registry, err := oci.Connect(to.URL, secret, to.Insecure)
	if err != nil {
		return fail(err)
	}
	signer, err := a.r.artifactSigner(ctx, a.p.Metadata.Namespace, to.Signing)
	if err != nil {
		return fail(err)
	}
	change, err := a.change(to.Layout, to.Style, ctx)
	if err != nil {
		return fail(err)
	}
	a.ready()
	unlock, err := a.r.Queue.Lock(ctx, "artifact/"+to.URL)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	artifact := &publish.Artifact{Registry: registry, Tags: to.Tags, Signer: signer}
	result, err := artifact.Publish(ctx, change)
	if err != nil {
		return fail(err)
	}
	p.changed = result.Changed
	p.published.Revision, p.published.SourceRevision = result.Digest, a.snapshot.Revision
	if p.changed {
		a.compareArtifact(ctx, &p, registry, result.Before, change.Files)
	}
	return p
}

// artifactSigner gives the signer of an entry, nil where it asks for none.
func (r *Runner) artifactSigner(ctx context.Context, namespace string, signing *v1alpha1.ArtifactSigning) (*publish.ArtifactSigner, error) {
	if signing == nil {
		return nil, nil
	}
	secret, err := r.secret(ctx, namespace, &signing.SecretRef)
	if err != nil {
		return nil, err
	}
	return publish.NewArtifactSigner(secret)
}

// Target names an entry of spec.publish in the status.
func Target(to v1alpha1.Publish) string {
	if to.OCI != nil {
		tag := "latest"
		if len(to.OCI.Tags) > 0 {
			tag = to.OCI.Tags[0]
		}
		return to.OCI.URL + ":" + tag
	}
	name := to.Git.Branch
	if to.Git.Propose != nil {
		if name += "-next"; to.Git.Propose.ActivePath != "" {
			name += "/" + to.Git.Propose.ActivePath
		}
	}
	return to.Git.URL + " " + name + " " + to.Git.Path
}
