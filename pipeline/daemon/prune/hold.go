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

// findUncertainFiles returns the files that may hold missing pipelines.
func (k *Keeper) findUncertainFiles(entries []catalog.Entry) (out []doubt) {
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

// uncertainRemovalReason returns the reason it is unknown whether a pipeline was removed, or "" if it is known. A file
// of one tenant does not cast doubt on the pipelines of another, which its author could otherwise keep from being
// removed indefinitely; nor does a repository that cannot be read.
func (k *Keeper) uncertainRemovalReason(pipeline string) string {
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
	tenant := k.Catalog.TenantOfNamespace(v1alpha1.NamespaceOf(name))
	if tenant == "" && k.Catalog.TellsAll(name) {
		return group{namespace: v1alpha1.NamespaceOf(name)}
	}
	return group{tenant: tenant}
}

// share counts all pipelines, those of them that are missing, and those already held.
type share struct{ all, gone, held int }

// reasonOverPercent returns the reason so many should not be removed, or "" if they may. of describes the set they
// belong to.
func (s share) reasonOverPercent(percent int, of string) string {
	if s.gone < atLeast || s.gone*100 <= s.all*percent {
		return ""
	}
	return fmt.Sprintf("%d of %d pipelines%s were deleted at once, more than removals.max_share (%d %%)", s.gone, s.all, of, percent)
}

// excludeMissing excludes missing pipelines.
func (s share) excludeMissing(gone int) share { return share{all: s.all - gone, gone: s.gone - gone} }

// sharesByGroup counts pipelines by their groups.
func (k *Keeper) sharesByGroup(gone, known []string) map[group]share {
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

// groupExceedsLimit returns the reason the missing pipelines of one group should not be removed, or "" if they may. A
// large share of a namespace may be a small share of all, as when a namespace is abandoned: it is removed, unless
// this makes too many of all, not counting the pipelines that other namespaces are held for.
func (k *Keeper) groupExceedsLimit(shares map[group]share, who group) string {
	own := shares[who].reasonOverPercent(k.MaxShare, "")
	if own == "" || who.namespace == "" {
		return own
	}
	var all share
	for g, s := range shares {
		if g.namespace == "" {
			continue
		}
		if g != who && s.reasonOverPercent(k.MaxShare, "") != "" {
			s = s.excludeMissing(s.held)
		}
		all.all, all.gone = all.all+s.all, all.gone+s.gone
	}
	if all.reasonOverPercent(k.MaxShare, "") == "" {
		return ""
	}
	return own
}

// shareOutsideTenants counts the pipelines of all namespaces that belong to no tenant, to detect an event that empties
// many of them at once, such as the loss of their definition. A writer of one namespace must not hold up the others:
// pipelines held as too many of their own namespace are excluded, and so is the one namespace that has most of them,
// which may be about to be held.
func (k *Keeper) shareOutsideTenants(shares map[group]share) share {
	var all share
	most := 0
	for g, s := range shares {
		if g.namespace == "" {
			continue
		}
		if s.reasonOverPercent(k.MaxShare, "") != "" {
			s = s.excludeMissing(s.held)
			most = max(most, s.gone)
		}
		all.all, all.gone = all.all+s.all, all.gone+s.gone
	}
	return all.excludeMissing(most)
}

// removalLimitReasons returns, by pipeline, the reason so many should not be removed without confirmation; those that
// may be removed have no entry. They are counted by tenant, or by namespace in a cluster without tenants. An empty
// directory is much more often one that was not mounted, or a repository emptied by mistake, than intended.
func (k *Keeper) removalLimitReasons(gone, known []string) map[string]string {
	shares := k.sharesByGroup(gone, known)
	inAll := k.shareOutsideTenants(shares).reasonOverPercent(k.MaxShare, " of all namespaces")
	alone := map[group]string{}
	for who := range shares {
		alone[who] = k.groupExceedsLimit(shares, who)
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
			out[name] = "its object is missing, and no deletion was observed: the cluster may have lost its objects, or be another one"
		case own != "":
			out[name] = own
		case who.namespace != "" && inAll != "":
			out[name] = inAll
		}
	}
	return out
}

// isLost reports whether a pipeline whose files would be removed is missing among the objects of a cluster although
// no deletion was seen: the finalizer keeps a deleted object until then. A newly installed cluster, or a different
// one, has no objects.
func (k *Keeper) isLost(name string) bool {
	r, ok := k.Store.Registration(name)
	if !ok || r.Policy != v1alpha1.DeletionDelete || r.Removal != nil && r.Removal.Deleted || !k.Catalog.TellsAll(name) {
		return false
	}
	_, deleted := k.Catalog.LastWordOf(name)
	return !deleted
}

// approveDue lets those go that are due, as one cause, so that they become one commit for each branch. One that was too many
// once needs a word even when the others have been dealt with. many are the reasons of removalLimitReasons.
func (k *Keeper) approveDue(ctx context.Context, gone []string, many map[string]string) error {
	var due, reasons []string
	held := 0
	for _, name := range gone {
		r, ok := k.Store.Registration(name)
		if !ok || r.Removal == nil || !r.Removal.Approved && time.Since(r.Removal.Since) < k.delayOf(name) {
			continue
		}
		because := k.uncertainRemovalReason(name)
		if because == "" && !r.Removal.Approved {
			var err error
			if because, err = k.holdRemovalForApproval(ctx, name, r.Removal, many[name]); err != nil {
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

// delayOf returns how long a pipeline must be missing. A pipeline whose object was deleted needs no delay.
func (k *Keeper) delayOf(name string) time.Duration {
	if k.Catalog.IsDeleted(name) {
		return 0
	}
	return k.Delay
}

// holdRemovalForApproval notes that a removal needs a word, and returns why; "" where it does not.
func (k *Keeper) holdRemovalForApproval(ctx context.Context, name string, removal *status.Removal, many string) (because string, err error) {
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
		k.Log.Warn("deleted pipelines are not removed: confirm it with prerig daemon remove, or bring them back", "pipelines", held, "because", because)
	}
	k.told = because
}
