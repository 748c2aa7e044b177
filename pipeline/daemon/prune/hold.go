// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// doubt is a file that may hold missing pipelines of its tenant.
type doubt struct {
	because string
	file    catalog.Entry
}

// findDoubts returns the files that may hold missing pipelines.
func (k *Keeper) findDoubts(entries []catalog.Entry) (out []doubt) {
	for _, e := range entries {
		if e.Err == nil {
			continue
		}
		if _, ok := k.Store.Registration(e.Key); e.Opaque || !ok {
			out = append(out, doubt{e.File + " is not valid, and may hold it", e})
		}
	}
	return out
}

// doubtReason says why it is not known whether a pipeline is gone, "" where it is. A file of one tenant says nothing of the pipelines
// of another one, which could otherwise not be removed for as long as its author likes; nor does a repository that cannot be read.
func (k *Keeper) doubtReason(pipeline string) string {
	if from, ok := k.Catalog.StatusOf(pipeline); ok && from.Error != "" {
		return "the pipelines cannot be read now"
	}
	doubts := k.doubts.Load()
	if doubts == nil {
		return ""
	}
	for _, d := range *doubts {
		if k.Catalog.MayHold(d.file, pipeline) {
			return d.because
		}
	}
	return ""
}

// atLeast is how many pipelines may always go at once.
const atLeast = 4

// group is who pipelines are counted for: a tenant, or a namespace of a cluster where no tenant has it.
type group struct{ tenant, namespace string }

func (k *Keeper) groupOf(name string) group {
	tenant := k.Catalog.TenantOf(name)
	if tenant == "" && k.Catalog.TellsAll(name) {
		return group{namespace: v1alpha1.NamespaceOf(name)}
	}
	return group{tenant: tenant}
}

// share is how many pipelines there are, how many of these are gone, and how many are held already.
type share struct{ all, gone, held int }

// exceeds returns why so many should not go, "" where they may. of says of what they are.
func (s share) exceeds(percent int, of string) string {
	if s.gone < atLeast || s.gone*100 <= s.all*percent {
		return ""
	}
	return fmt.Sprintf("%d of %d pipelines%s are gone at once, more than removals.max_share (%d %%)", s.gone, s.all, of, percent)
}

// without leaves out pipelines that are gone.
func (s share) without(gone int) share { return share{all: s.all - gone, gone: s.gone - gone} }

// shares counts pipelines by their groups.
func (k *Keeper) shares(gone, known []string) map[group]share {
	out := map[group]share{}
	for _, name := range known {
		s := out[k.groupOf(name)]
		s.all++
		out[k.groupOf(name)] = s
	}
	for _, name := range gone {
		s := out[k.groupOf(name)]
		s.gone++
		if r, ok := k.Store.Registration(name); ok && r.Removal != nil && r.Removal.Held {
			s.held++
		}
		out[k.groupOf(name)] = s
	}
	return out
}

// exceedsAlone returns why what is gone of one group should not go, "" where it may. What is much of a namespace may be little of all, as
// where it is given up: that goes, unless it is too much of all with it, without what other namespaces are held for.
func (k *Keeper) exceedsAlone(shares map[group]share, who group) string {
	own := shares[who].exceeds(k.MaxShare, "")
	if own == "" || who.namespace == "" {
		return own
	}
	var all share
	for g, s := range shares {
		if g.namespace == "" {
			continue
		}
		if g != who && s.exceeds(k.MaxShare, "") != "" {
			s = s.without(s.held)
		}
		all.all, all.gone = all.all+s.all, all.gone+s.gone
	}
	if all.exceeds(k.MaxShare, "") == "" {
		return ""
	}
	return own
}

// inAll counts the pipelines of all namespaces that are no tenant's, for what empties many of them at once, as the loss of their
// definition does. Nobody who can write to one namespace may hold up the others: what is held as too many of its own namespace is left
// out, and so is the one namespace that has most of them, which may only be about to be held.
func (k *Keeper) inAll(shares map[group]share) share {
	var all share
	most := 0
	for g, s := range shares {
		if g.namespace == "" {
			continue
		}
		if s.exceeds(k.MaxShare, "") != "" {
			s = s.without(s.held)
			most = max(most, s.gone)
		}
		all.all, all.gone = all.all+s.all, all.gone+s.gone
	}
	return all.without(most)
}

// tooMany returns why so many should not go without somebody's word, by pipeline; nothing for those that may. They are counted by the
// tenants that they are of, or else by their namespaces in a cluster. An empty directory was not mounted, or a repository was emptied,
// much more often than it is meant.
func (k *Keeper) tooMany(gone, known []string) map[string]string {
	shares := k.shares(gone, known)
	inAll := k.inAll(shares).exceeds(k.MaxShare, " of all namespaces")
	alone := map[group]string{}
	for who := range shares {
		alone[who] = k.exceedsAlone(shares, who)
	}
	out := map[string]string{}
	for _, name := range gone {
		from, ok := k.Catalog.StatusOf(name)
		who := k.groupOf(name)
		own := alone[who]
		switch {
		case !ok:
			out[name] = "the configuration has its namespace in no place that pipelines are read from"
		case from.Pipelines == 0 && !k.Catalog.TellsAll(name):
			out[name] = "no pipeline is left at all"
		case k.isLost(name):
			out[name] = "its object is missing, and nobody was seen to delete it: the cluster may have lost its objects, or be another one"
		case own != "":
			out[name] = own
		case who.namespace != "" && inAll != "":
			out[name] = inAll
		}
	}
	return out
}

// isLost reports whether a pipeline whose files would be removed is missing among the objects of a cluster without anybody having been
// seen to delete it: the finalizer has an object stay for that long. A cluster that was set up anew, or another one, has no objects.
func (k *Keeper) isLost(name string) bool {
	r, ok := k.Store.Registration(name)
	if !ok || r.Policy != v1alpha1.DeletionDelete || r.Removal != nil && r.Removal.Deleted || !k.Catalog.TellsAll(name) {
		return false
	}
	_, deleted := k.Catalog.LastWordOf(name)
	return !deleted
}

// approveDue lets those go that are due, as one cause, so that they become one commit for each branch. One that was too many
// once needs a word even when the others have been dealt with. many are the reasons of tooMany.
func (k *Keeper) approveDue(ctx context.Context, gone []string, many map[string]string) error {
	var due, reasons []string
	held := 0
	for _, name := range gone {
		r, ok := k.Store.Registration(name)
		if !ok || r.Removal == nil || !r.Removal.Approved && time.Since(r.Removal.Since) < k.delayOf(name) {
			continue
		}
		because := k.doubtReason(name)
		if because == "" && !r.Removal.Approved {
			var err error
			if because, err = k.holdBack(ctx, name, r.Removal, many[name]); err != nil {
				return err
			}
		}
		if r.Removal.Approved || because == "" {
			due = append(due, name)
			continue
		}
		held++
		reasons = append(reasons, because)
	}
	k.reportHeld(held, reasons)
	return k.requestRemovals(ctx, due, nil)
}

// delayOf is how long a pipeline must be missing. One whose object somebody has deleted is missed by nobody.
func (k *Keeper) delayOf(name string) time.Duration {
	if k.Catalog.IsDeleted(name) {
		return 0
	}
	return k.Delay
}

// holdBack notes that a removal needs a word, and returns why; "" where it does not.
func (k *Keeper) holdBack(ctx context.Context, name string, removal *status.Removal, many string) (because string, err error) {
	if removal.Held {
		return removal.Message, nil
	}
	if many == "" {
		return "", nil
	}
	return many, k.Store.ChangeRegistration(ctx, name, func(r *status.Registration) bool {
		if r.Removal == nil || r.Removal.Approved {
			return false
		}
		r.Removal.Held, r.Removal.Message = true, many
		return true
	})
}

// reportHeld logs that pipelines are held back, once for the same reasons.
func (k *Keeper) reportHeld(held int, reasons []string) {
	slices.Sort(reasons)
	because := strings.Join(slices.Compact(reasons), "; ")
	if held > 0 && k.told != because {
		k.Log.Warn("pipelines that are gone are not removed: confirm it with prerig remove, or bring them back", "pipelines", held, "because", because)
	}
	k.told = because
}
