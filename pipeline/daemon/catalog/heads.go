// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/gitname"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// branchUse is a branch that a claim writes, and as what.
type branchUse struct {
	claim      claim
	repository string
	name       string
	head       bool // it is the head of pull requests
	byDefault  bool // the head was not named explicitly
	known      bool // the pipeline was known to write it before
	field      string
}

// branches are all branches of repositories that pipelines write.
type branches struct {
	// byName maps names to the branches of that name, normalized because some systems treat them as equal; above
	// maps each parent of a name to the branches below it.
	byName map[string][]branchUse
	above  map[string][]branchUse
}

func branchID(repository, name string) string { return repository + "\n" + gitname.Key(name) }

// branchUsesOfClaim returns the branches that a claim writes.
func (o *owners) branchUsesOfClaim(c claim) (uses []branchUse) {
	to := c.to.Git
	if to == nil || to.Branch == "" {
		return nil
	}
	repository := giturl.Normal(to.URL)
	uses = append(uses, branchUse{claim: c, repository: repository, name: to.Branch, field: "branch"})
	if next := strings.TrimPrefix(to.Reference(), "refs/heads/"); next != to.Branch {
		uses = append(uses, branchUse{claim: c, repository: repository, name: next, field: "branch"})
	}
	if r := to.PullRequest; r != nil && r.Head != "" {
		own := branchUse{claim: c, repository: repository, name: r.Head, head: true, field: "pullRequest.head"}
		own.byDefault = c.entry.Pipeline != nil && r.Head == r.DefaultHead(to, c.entry.Pipeline)
		uses = append(uses, own)
	}
	known := o.knownEntries(c.entry.Key)
	for i, u := range uses {
		uses[i].known = slices.ContainsFunc(known, func(before v1alpha1.Publish) bool { return u.isOf(before) })
	}
	return uses
}

// isOf reports whether an entry writes the branch, as the same.
func (u branchUse) isOf(entry v1alpha1.Publish) bool {
	git := entry.Git
	if git == nil || giturl.Normal(git.URL) != u.repository {
		return false
	}
	if u.head {
		return git.PullRequest != nil && git.PullRequest.Head == u.name
	}
	return git.Branch == u.name || git.Reference() == "refs/heads/"+u.name
}

// compareUses orders uses by who has a branch if two want it; of equal ones the first by name.
func compareUses(a, b branchUse) int {
	isNew := func(u branchUse) int {
		if u.known {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.precedenceRank(), b.precedenceRank()), cmp.Compare(isNew(a), isNew(b)), strings.Compare(a.claim.entry.Key, b.claim.entry.Key))
}

// precedenceRank orders uses by precedence if two want the same branch: first heads derived from pipeline names, which
// are not a free choice, then branches already written, then heads before other branches.
func (u branchUse) precedenceRank() int {
	switch {
	case u.head && u.byDefault:
		return 0
	case u.known && u.head:
		return 1
	case u.known:
		return 2
	case u.head:
		return 3
	}
	return 4
}

// checkBranches returns the errors of the branches that claims write, by the index of the claim: in a repository no
// branch can be a directory of another, a head cannot be a branch of others, and pipelines of two namespaces share
// a head only if both declare it.
func (o *owners) checkBranches(claims []claim) map[string]error {
	var uses []branchUse
	for _, c := range claims {
		uses = append(uses, o.branchUsesOfClaim(c)...)
	}
	slices.SortStableFunc(uses, compareUses)
	all := branches{byName: map[string][]branchUse{}, above: map[string][]branchUse{}}
	problems := map[string]error{}
	for _, u := range uses {
		err := o.checkSourceOf(u)
		if err == nil {
			err = o.checkShared(u, all.byName[branchID(u.repository, u.name)])
		}
		if err == nil {
			err = all.checkAround(u)
		}
		if err != nil && problems[u.claim.id()] == nil {
			problems[u.claim.id()] = err
		}
		if err == nil {
			all.addBranchUse(u)
		}
	}
	return problems
}

// id names a claim among those of all pipelines.
func (c claim) id() string { return c.entry.Key + "\n" + c.at }

func (u branchUse) errorf(format string, args ...any) error {
	return &v1alpha1.FieldError{Path: u.claim.at + ".git." + u.field, Message: fmt.Sprintf(format, args...)}
}

// checkSourceOf refuses a head that another pipeline reads its source from.
func (o *owners) checkSourceOf(u branchUse) error {
	reading := o.sources[u.repository+"\nrefs/heads/"+u.name]
	if u.head && slices.ContainsFunc(reading, func(key string) bool { return key != u.claim.entry.Key }) {
		return u.errorf("must not be %s, which another pipeline reads its source from", u.name)
	}
	return nil
}

// checkShared refuses a branch that is the head of others, and a head that is not theirs to share.
func (o *owners) checkShared(u branchUse, others []branchUse) error {
	for _, other := range others {
		mine, theirs := u.claim.entry.Key, other.claim.entry.Key
		switch {
		case mine == theirs && u.claim.at == other.claim.at:
		case u.head != other.head && u.head:
			return u.errorf("must not be %s, which a pipeline publishes to", u.name)
		case u.head != other.head:
			return u.errorf("must not be %s, the head of pull requests of a pipeline; use another branch", u.name)
		case u.name != other.name:
			return u.errorf("must not be %s: another branch that is published to differs from it in upper and lower case alone", u.name)
		case u.head:
			if err := o.checkSharedHead(u, other); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSharedHead rejects a head that pipelines of two namespaces share unintentionally: all changes waiting in it
// are reviewed and merged together.
func (o *owners) checkSharedHead(u, other branchUse) error {
	mine, theirs := u.claim.to.Git.PullRequest, other.claim.to.Git.PullRequest
	if v1alpha1.NamespaceOf(u.claim.entry.Key) == v1alpha1.NamespaceOf(other.claim.entry.Key) {
		return o.checkSameFacts(u, other)
	}
	bySource := u.byDefault && mine.GroupBy == v1alpha1.GroupBySourceCommit && theirs.GroupBy == v1alpha1.GroupBySourceCommit
	if !bySource && !(sharesByGroup(mine) && sharesByGroup(theirs)) {
		return u.errorf("is the head of a pipeline of another namespace; use another")
	}
	return o.checkSameFacts(u, other)
}

// sharesByGroup reports whether an entry lets pipelines of any namespace join its pull request.
func sharesByGroup(r *v1alpha1.PullRequest) bool {
	return slices.Contains([]v1alpha1.GroupBy{v1alpha1.GroupByAll, v1alpha1.GroupByDirectory, v1alpha1.GroupByLabel}, r.GroupBy)
}

// checkAround refuses a branch that is a directory of another, or in one: a repository cannot have both.
func (b *branches) checkAround(u branchUse) error {
	conflict := func(others []branchUse) bool {
		return slices.ContainsFunc(others, func(other branchUse) bool { return u.claim.id() != other.claim.id() || u.head != other.head })
	}
	if conflict(b.above[branchID(u.repository, u.name)]) {
		return u.errorf("must not be %s: a repository cannot have it and a branch below it, which another entry writes; use another", u.name)
	}
	for at := u.name; ; {
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			return nil
		}
		at = at[:i]
		above := b.byName[branchID(u.repository, at)]
		if conflict(above) {
			return u.errorf("must not be below %s: a repository cannot have both as branches, and another entry writes that one; use another", at)
		}
	}
}

// addBranchUse notes that a branch is written. One head for each commit of the source is below its name.
func (b *branches) addBranchUse(u branchUse) {
	id := branchID(u.repository, u.name)
	b.byName[id] = append(b.byName[id], u)
	for at := u.name; ; {
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			return
		}
		at = at[:i]
		if above := branchID(u.repository, at); len(b.above[above]) < 2 {
			b.above[above] = append(b.above[above], u)
		}
	}
}
