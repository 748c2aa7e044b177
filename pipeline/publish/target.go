// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/publish/externalartifact"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/secret/sops"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Interface is a place that results are published to: an entry of spec.publish, opened by Targets.
type Interface interface {
	// Key names what only one process may write at a time. Publish and Remove hold the lock of that name.
	Key() string
	// Publish brings the place to what the change wants. Equal content is no change, so that it can be done again.
	Publish(ctx context.Context, c Change) (Receipt, error)
	// Current returns what the place holds of a pipeline now, by paths relative to the entry's directory. wanted
	// holds the files that it would get: existing files at their paths that are not the pipeline's are reported
	// too.
	Current(ctx context.Context, pipeline string, wanted map[string][]byte) (Holding, error)
	// Drift describes in one sentence what others have changed of what was published, or returns "" without a
	// difference, or if what was published is unknown.
	Drift(ctx context.Context, written Written) (string, error)
	// Settle completes what people have done with waiting results, without a new result: a base branch that has
	// moved, a pull request that was merged or closed. It returns what then waits of the pipeline, or nil.
	Settle(ctx context.Context, pipeline string, written Written) (*v1alpha1.PullRequestStatus, error)
	// Remove removes what the change's pipeline has published. It is called if the entry is Removable.
	Remove(ctx context.Context, c Change) (Receipt, error)
}

// Receipt is what publishing one change gave.
type Receipt struct {
	// Revision is the current revision: a commit or the digest of an artifact, or "" if none exists.
	Revision string
	// Changed reports whether anything changed.
	Changed bool
	// Held is the reason why the result has to wait, in which case it was not published, or "" if it does not.
	Held string
	// Outcome has the files that changed.
	Outcome Outcome
	// Files holds the current files, by the paths used in the outcome.
	Files map[string][]byte
	// Old returns the previous content of a file, or nil if it did not exist. It is set if the outcome names files.
	Old func(name string) []byte
	// Record is used later to detect whether others have changed what was written. It is empty if the revision
	// suffices.
	Record tree.Record
	// Problem is an error that kept the changed files from being found. What was published is published all the same.
	Problem error
	// Warning is what a person should know about how it was published, or "".
	Warning string
	// PullRequest is the pull request that it waits in, or nil if it does not wait.
	PullRequest *v1alpha1.PullRequestStatus
}

// Written is what is known of what a pipeline has published at a place.
type Written struct {
	// Revision and Record are those of the receipt.
	Revision string
	Record   tree.Record
	// PullRequest is the one that it was known to wait in.
	PullRequest *v1alpha1.PullRequestStatus
	// Since is how old what is known of the place may be: what was asked since then need not be asked again.
	Since time.Time
}

// Repositories reaches repositories of Git and of artifacts. source.Fetcher does.
type Repositories interface {
	// Repository returns the mirror of a repository and the way to reach it.
	Repository(ctx context.Context, namespace, url string, ref *meta.LocalObjectReference) (*git.Mirror, *git.Remote,
		error)
	// Registry returns the way to a repository in a registry, with the keys of a secret.
	Registry(url string, keys map[string][]byte, insecure bool) (*oci.Registry, error)
}

// Targets opens the places that pipelines publish to. It is safe for concurrent use.
type Targets struct {
	// Hosts opens the hosts of pull requests; nil opens none. It is to be set before the first entry is opened.
	Hosts Hosts
	// Turn returns whose turn it is among waves; if nil, all proceed at once.
	Turn Turns
	// Refresh updates what gates read. It is called once before the gates of all changes that are published
	// together; nil if the gates need no refresh.
	Refresh func(ctx context.Context) error
	// Publishers returns the pipelines that are known to have published to the branch of an entry, for branches
	// that were deleted; nil means no pipelines.
	Publishers func(ctx context.Context, to v1alpha1.Publish) ([]string, error)
	// Artifacts keeps what is published as ExternalArtifacts; nil in a process that serves none.
	Artifacts *externalartifact.Keeper

	repositories Repositories
	secrets      secret.Reader
	limits       tree.Limits
	readOnly     bool
	heads        func(key string, read func() (*tree.Tree, error)) (*tree.Tree, error)
	batcher      changeBatcher
	watchdog     *watchdog.Watchdog
	looks        looks
}

// Lock waits for a lock among all processes.
type Lock func(ctx context.Context, name string) (unlock func(), err error)

// NewTargets returns Targets for opening places to publish to. Secrets may be nil; limits bound
// how much of the previous files is read. dog abandons what hangs, and may be nil.
func NewTargets(repositories Repositories, secrets secret.Reader, lock Lock, limits tree.Limits,
	dog *watchdog.Watchdog) *Targets {
	return &Targets{
		repositories: repositories, secrets: secrets, limits: limits, heads: readEach, watchdog: dog,
		batcher: changeBatcher{lock: lock, watchdog: dog},
	}
}

// LimitRuns sets the maximum number of concurrent runs in this process: if all of them wait for others of their
// causes, no more can arrive, and the waiting changes are published. It must be called before the first entry is
// opened.
func (t *Targets) LimitRuns(n int) { t.batcher.slots = n }

// WaitForStalled sets how long changes of one cause wait for one of them that does not come to an end, before they are
// published without it, at least; it is three seconds otherwise. It is to be called before the first entry is opened.
func (t *Targets) WaitForStalled(d time.Duration) { t.batcher.batches.stall = d }

// Readers returns Targets that can only read what is published: no signing key is needed. heads is called for the
// files of a branch with a key that is equal for equal branches, and may cache what read returns, as source.Once
// does; nil disables caching. The files are nil for a branch that does not exist.
func Readers(repositories Repositories, secrets secret.Reader, heads func(key string, read func() (*tree.Tree, error)) (*tree.Tree, error)) *Targets {
	if heads == nil {
		heads = readEach
	}
	return &Targets{repositories: repositories, secrets: secrets, readOnly: true, heads: heads}
}

func readEach(_ string, read func() (*tree.Tree, error)) (*tree.Tree, error) { return read() }

// Open opens an entry of spec.publish of a pipeline in a namespace.
func (t *Targets) Open(ctx context.Context, namespace string, to v1alpha1.Publish) (Interface, error) {
	kind, ok := targetKinds[to.Kind()]
	if !ok {
		return nil, errors.New("the entry of spec.publish names no place to publish to")
	}
	step := watchdog.Step{Name: watchdog.StepPublish, Subject: "opening " + namespace + " " + to.Target(),
		Limit: openTimeout}
	target, err := watchdog.Run(ctx, t.watchdog, step, func(ctx context.Context) (Interface, error) { return kind.open(t, ctx, namespace, to) })
	if err != nil {
		return nil, err
	}
	return batchedTarget{target, &t.batcher.batches}, nil
}

// targetKind is a kind of targets.
type targetKind struct {
	// open opens an entry.
	open func(t *Targets, ctx context.Context, namespace string, to v1alpha1.Publish) (Interface, error)
	// check describes what is wrong with an entry, and with which of its fields; nil if the API's own checks
	// suffice.
	check func(to v1alpha1.Publish) (field string, err error)
}

// targetKinds maps the fields of v1alpha1.Publish to the existing kinds. They are listed only here.
var targetKinds = map[string]targetKind{
	"git": {open: (*Targets).openGit, check: checkGit},
	"oci": {open: (*Targets).openOCI},

	"externalArtifact": {open: (*Targets).openExternalArtifact},
}

// Check returns why no run could publish by an entry of spec.publish, with the path of the field in the entry. It
// covers what the entry's type does not enforce.
func Check(to v1alpha1.Publish) (field string, err error) {
	if to.Encryption != nil {
		for i, recipient := range to.Encryption.Age {
			if _, err := sops.ParseRecipient(recipient); err != nil {
				return fmt.Sprintf("encryption.age[%d]", i), err
			}
		}
	}
	if kind := targetKinds[to.Kind()]; kind.check != nil {
		return kind.check(to)
	}
	return "", nil
}

// Enter notes the start of a pipeline's job of a cause that has size jobs, so that their results become one commit for
// each branch: what is published waits for the others until each has something to publish, or has left.
func (t *Targets) Enter(cause, pipeline string, size int) {
	t.batcher.batches.recordJobStart(cause, pipeline, size)
}

// Leave notes that a job has ended, or that it will take so long that the others of its cause had better not wait. It
// may be called more than once.
func (t *Targets) Leave(cause, pipeline string) { t.batcher.batches.recordJobLeft(cause, pipeline) }

const (
	// openTimeout bounds the reading of secrets and the opening of what is kept of a repository.
	openTimeout = time.Minute
	// publishTimeout bounds one commit or artifact with its retries.
	publishTimeout = 5 * time.Minute
	// PublishWait bounds Publish and Remove of all kinds: a commit that is under way, the wait for others of the same
	// cause, the lock, and the commit itself.
	PublishWait = 3*publishTimeout + batchLongest + 2*time.Minute
)
