// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/source/gitname"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// PullRequest makes results wait for a review: they are pushed to a branch of Prerig's own, and a pull request
// (GitLab: a merge request) from it is kept up to date until it is merged or closed.
type PullRequest struct {
	// Provider is GitHub, GitLab, Gitea (Forgejo too), BitbucketCloud, BitbucketServer or AzureDevOps. The default follows from the
	// repository's URL, where it is that of a public host.
	// +enum=GitHub,GitLab,Gitea,BitbucketCloud,BitbucketServer,AzureDevOps
	Provider string `json:"provider,omitempty"`
	// URL of the host's API. The default follows from the provider and the repository's URL.
	URL string `json:"url,omitempty"`
	// SecretRef names the secret for the API: token, username and password, or githubAppID and githubAppPrivateKey. The default is the
	// one for pushing.
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
	// GroupBy determines which results share a pull request: those of one Pipeline (the default), of the pipelines
	// of one Namespace, of those whose paths are in one Directory, of those with one value of a Label, what one
	// SourceCommit has changed, or All.
	// +enum=Pipeline,Namespace,Directory,Label,SourceCommit,All
	GroupBy GroupBy `json:"groupBy,omitempty"`
	// Label is the name of the pipelines' label for groupBy: Label, such as cluster.
	Label string `json:"label,omitempty"`
	// Head is the branch that is written; pipelines with the same one share a pull request. The default follows from groupBy:
	// prerig/BRANCH/ and the group. With groupBy: SourceCommit, the commit's first digits are added.
	Head string `json:"head,omitempty"`
	// Labels are put on the pull request.
	Labels []string `json:"labels,omitempty"`
	// Merge is Manual (the default: people merge) or WhenGreen: Prerig merges when the host's statuses are green
	// and the conditions of mergeWhen are met.
	// +enum=Manual,WhenGreen
	Merge MergePolicy `json:"merge,omitempty"`
	// MergeWhen is what Prerig waits for with merge: WhenGreen.
	MergeWhen *MergeWhen `json:"mergeWhen,omitempty"`
	// Waves have the groups of a label go one after another.
	Waves *Waves `json:"waves,omitempty"`
}

// GroupBy determines which results share a pull request.
type GroupBy string

// The ways to group.
const (
	GroupByPipeline     GroupBy = "Pipeline"
	GroupByNamespace    GroupBy = "Namespace"
	GroupByDirectory    GroupBy = "Directory"
	GroupByLabel        GroupBy = "Label"
	GroupBySourceCommit GroupBy = "SourceCommit"
	GroupByAll          GroupBy = "All"
)

// States of a PullRequestStatus.
const (
	// PullRequestOpen waits to be merged or closed.
	PullRequestOpen = "Open"
	// PullRequestClosed was closed by a person. Its content is not proposed again; other content is, in a new one.
	PullRequestClosed = "Closed"
	// PullRequestEdited has commits of a person on its branch, which is no longer pushed to.
	PullRequestEdited = "Edited"
	// PullRequestWaiting has its branch, and is opened when it is its turn.
	PullRequestWaiting = "Waiting"
)

// PullRequestStatus is the pull request that a result waits in.
type PullRequestStatus struct {
	// Number is what people call it by, 0 where it is not known yet.
	Number int64 `json:"number,omitempty"`
	// URL of its page.
	URL string `json:"url,omitempty"`
	// State is Open, Closed where a person has closed it, Edited where a person has pushed to its branch, or Waiting where it is not
	// opened yet, as others come first.
	// +enum=Open,Closed,Edited,Waiting
	State string `json:"state"`
	// Head is the branch that it is from.
	Head string `json:"head,omitempty"`
	// Since is when it was opened, or closed.
	Since metav1.Time `json:"since,omitempty"`
	// HeadCommit and BaseCommit are where both branches were.
	HeadCommit string `json:"headCommit,omitempty"`
	BaseCommit string `json:"baseCommit,omitempty"`
	// Message is more detail.
	Message string `json:"message,omitempty"`
}

// Waits reports whether a result waits for a person.
func (s *PullRequestStatus) Waits() bool { return s != nil && s.State != PullRequestClosed }

// HeadFor returns the branch for the result of a commit of the source, without refs/heads/.
func (r *PullRequest) HeadFor(digest string) string {
	if r.GroupBy != GroupBySourceCommit {
		return r.Head
	}
	digest = digest[strings.LastIndexByte(digest, ':')+1:]
	return r.Head + "/" + refPart(digest[:min(len(digest), 12)])
}

// RollbackHead is the branch that a commit of another is taken back from.
func RollbackHead(branch, commit string) string {
	return "prerig/" + refPart(branch) + "/rollback/" + commit[:min(len(commit), 12)]
}

func (r *PullRequest) setDefaults(g *GitPublish, p *RenderPipeline) {
	setDefault(&r.GroupBy, GroupByPipeline)
	r.setMergeDefaults()
	if r.Provider == "" {
		if u, err := giturl.Parse(g.URL); err == nil {
			r.Provider = u.KindOf()
		}
	}
	if r.SecretRef == nil {
		r.SecretRef = g.SecretRef
	}
	if r.Head == "" && g.Branch != "" {
		r.Head = r.DefaultHead(g, p)
	}
}

// headRoot is where the heads are that pipelines do not name themselves. No other branch that is written may be in or above it.
const headRoot = "prerig"

// DefaultHead is the head of a pipeline that names none.
func (r *PullRequest) DefaultHead(g *GitPublish, p *RenderPipeline) string {
	return headRoot + "/" + refPart(g.Branch) + "/" + r.groupBranchName(g, p)
}

// groupBranchName returns the part of the branch's name that is equal for the pipelines that share a pull request. No
// name of a group is a directory of another's, as a repository cannot have both as branches.
func (r *PullRequest) groupBranchName(g *GitPublish, p *RenderPipeline) string {
	switch r.GroupBy {
	case GroupByNamespace:
		return "namespace/" + refPart(cmp.Or(p.Metadata.Namespace, "_none"))
	case GroupByDirectory:
		return "directory/" + refPart(path.Dir(path.Clean(g.Path)))
	case GroupByLabel:
		return "label/" + refPart(r.Label) + "/" + refPart(p.Metadata.Labels[r.Label])
	case GroupBySourceCommit:
		return "commit"
	case GroupByAll:
		return "all"
	}
	return "pipeline/" + refPart(p.Key())
}

var notInRefPart = lazyregexp.New(`[^A-Za-z0-9.-]+`)

// maxRefPart bounds a part of a branch's name.
const maxRefPart = 100

// refPart makes one part of a branch's name of a text. Texts that lose more than their slashes get a digest, so that two of them stay
// apart.
func refPart(text string) string {
	clean := notInRefPart.ReplaceAllString(text, "_")
	clean = strings.TrimSuffix(strings.ReplaceAll(strings.Trim(clean, ".-"), "..", "_"), ".lock")
	clean = clean[:min(len(clean), maxRefPart)]
	if clean == strings.ReplaceAll(text, "/", "_") && !strings.Contains(text, "_") && clean != "" {
		return clean
	}
	sum := sha256.Sum256([]byte(text))
	return strings.Trim(clean+"-"+hex.EncodeToString(sum[:4]), "-")
}

func (r *PullRequest) checkPullRequest(v *validator, at string, g *GitPublish, p *RenderPipeline) {
	v.checkEnum(at+".groupBy", string(r.GroupBy), "Pipeline", "Namespace", "Directory", "Label", "SourceCommit", "All")
	v.checkHost(at, r.Provider, r.URL, r.SecretRef)
	switch {
	case g.Propose != nil:
		v.addError(at, "cannot be used with propose: GitOps Promoter opens the pull requests then")
	case r.GroupBy == GroupByLabel && r.Label == "":
		v.addError(at+".label", "must be given with groupBy: Label")
	case r.GroupBy == GroupByLabel && p.Metadata.Labels[r.Label] == "":
		v.addError(at+".label", "the pipeline has no label %s to be grouped by", r.Label)
	case r.GroupBy != GroupByLabel && r.Label != "":
		v.addError(at+".label", "is for groupBy: Label, and groupBy is %s", r.GroupBy)
	}
	r.checkMerge(v, at, g, p)
	if r.Head == "" {
		return
	}
	if err := gitname.CheckBranch(r.Head); err != nil {
		v.addError(at+".head", "%s", err)
	}
	if r.Head == g.Branch || p.ownBranchOf(g.URL, r.Head) != "" {
		v.addError(at+".head", "must be a branch with no other use, found %q", r.Head)
	}
}
