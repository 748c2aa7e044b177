// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// Trailers of the commit of a head: its base and its content, which distinguish it from commits of others, and the
// number of the closed or merged pull request that it follows.
const (
	trailerBase    = "Prerig-Base"
	trailerTree    = "Prerig-Tree"
	trailerFollows = "Prerig-Follows"
)

// maxCarried bounds the trailers that a head keeps of the one before it.
const maxCarried = 200

// headCommit is the newest commit of a head.
type headCommit struct {
	commit *git.Commit
	// ours reports whether Prerig made it for this base and it was not changed since. Then base is the commit that
	// it is on top of, and root is the root directory of that commit, or zero if it is no longer available.
	ours       bool
	base, root git.Hash
	follows    int64
	trailers   []string // lines
}

// readHead reads the commit of a head, and that of the base below it.
func (p *PullRequest) readHead(ctx context.Context, tip git.Hash) (*headCommit, error) {
	commit, err := p.Base.Mirror.Fetch(ctx, p.Base.Remote, git.Ref{Commit: tip})
	if err != nil {
		return nil, err
	}
	h := &headCommit{commit: commit}
	sameTree, sameBase := false, false
	for line := range strings.Lines(commit.Body) {
		line = strings.TrimRight(line, "\r\n")
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case trailerBase:
			name, hash, _ := strings.Cut(value, "@sha1:")
			sameBase, h.base = name == p.Base.Name, hashOf(hash)
		case trailerTree:
			sameTree = value == commit.Tree.String()
		case trailerFollows:
			h.follows, _ = strconv.ParseInt(value, 10, 64)
		default:
			if strings.HasPrefix(key, "Prerig-") {
				h.trailers = append(h.trailers, line)
			}
		}
	}
	if h.ours = sameTree && sameBase && !h.base.IsZero(); h.ours {
		below, err := p.Base.Mirror.Fetch(ctx, p.Base.Remote, git.Ref{Commit: h.base})
		switch {
		case err == nil:
			h.root = below.Tree
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
	}
	return h, nil
}

func hashOf(text string) (hash git.Hash) {
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == len(hash) {
		copy(hash[:], raw)
	}
	return hash
}

// commitHead makes the commit of the next head.
func (r *round) commitHead(follows int64) (git.Hash, error) {
	b := r.p.Base
	text := commitMessage(r.changed, b.Name)
	if r.head != nil && r.head.ours {
		text = r.carryForwardMessage(text)
	}
	text += fmt.Sprintf("%s: %s@sha1:%s\n%s: %s\n", trailerBase, b.Name, r.base.parent, trailerTree, r.wanted)
	if follows > 0 {
		text += fmt.Sprintf("%s: %d\n", trailerFollows, follows)
	}
	data := git.CommitData{Tree: r.wanted, Parents: []git.Hash{r.base.parent}, Author: b.Author, Email: b.Email,
		Date: r.base.date, Message: text, Signer: b.Signer}
	for _, c := range r.changed {
		if c.Origin.Date.After(data.Date) {
			data.Date = c.Origin.Date
		}
	}
	if h := r.head; h != nil && h.ours && h.commit.Date.After(data.Date) {
		data.Date = h.commit.Date
	}
	if data.Date.IsZero() {
		data.Date = time.Now()
	}
	return r.draft.Commit(data)
}

// carryForwardMessage adds the message of the previous head about results that are kept. If no result is new, its
// subject is kept too.
func (r *round) carryForwardMessage(text string) string {
	kept, fresh := map[string]bool{}, false
	for _, c := range r.changed {
		kept[c.Pipeline] = c.identities != nil || c.Remove
		fresh = fresh || c.identities == nil && !c.Remove
	}
	same := !fresh && r.sameGroup()
	if same {
		_, rest, _ := strings.Cut(text, "\n")
		text = r.head.commit.Subject + "\n" + rest
	}
	has := map[string]bool{}
	for line := range strings.Lines(text) {
		has[strings.TrimSuffix(line, "\n")] = true
	}
	var commands []string
	for _, line := range r.head.trailers {
		if words := strings.Fields(line); len(words) > 3 && words[0] == TrailerCommand+":" && kept[words[3]] {
			commands = append(commands, line)
		}
	}
	others := len(kept) > 0 && slices.Contains(slices.Collect(maps.Values(kept)), true)
	left := maxCarried
	for _, line := range r.head.trailers {
		key, value, _ := strings.Cut(line, ": ")
		keep := others
		switch key {
		case TrailerPipeline, TrailerRemoved:
			keep = kept[value]
		case TrailerCommand:
			keep = slices.Contains(commands, line)
		case TrailerRevision:
			keep = slices.ContainsFunc(commands, func(command string) bool { return strings.Contains(command, value) })
		}
		if (keep || same) && !has[line] && left > 0 {
			text, left = text+line+"\n", left-1
			has[line] = true
		}
	}
	return text
}

// sameGroup reports whether the head before had as many pipelines.
func (r *round) sameGroup() bool {
	count := 0
	for _, line := range r.head.trailers {
		if strings.HasPrefix(line, TrailerPipeline+": ") {
			count++
		}
	}
	return count == min(len(r.changed), maxNamed)
}

// isDeclined reports whether a person has closed a pull request that held all that is wanted now. The closed head
// is known until a head is pushed for a later pull request; after that the host may know it, and the body has a
// digest of it.
func (r *round) isDeclined(ctx context.Context) (bool, error) {
	closed := r.request
	if closed == nil || closed.State != pullrequest.StateClosed || closed.Number == r.sure {
		return false, nil
	}
	marks := readBody(closed.Body).marks
	if marks.withdrawn {
		return false, nil
	}
	tip := ""
	if r.head != nil {
		tip = r.head.commit.Hash.String()
	}
	if atClose := hashOf(closed.HeadCommit); !atClose.IsZero() && (closed.HeadCommit != tip || r.head.follows < closed.Number) {
		commit, err := r.p.Base.Mirror.Fetch(ctx, r.p.Base.Remote, git.Ref{Commit: atClose})
		if err == nil {
			return r.hasAllWanted(commit.Tree)
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return marks.content == r.contentDigest(), nil
}

// contentDigest is equal for pull requests that change the same files to the same.
func (r *round) contentDigest() string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(r.differs)) {
		fmt.Fprintf(sum, "%s\x00%s\n", name, r.differs[name].New)
	}
	return hex.EncodeToString(sum.Sum(nil))[:32]
}
