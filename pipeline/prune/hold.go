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
	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/status"
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

// tooMany returns why so many should not go without somebody's word, by pipeline; nothing for those that may. They are counted by the
// tenants that they are of. An empty directory was not mounted, or a repository was emptied, much more often than it is meant.
func (k *Keeper) tooMany(gone, known []string) map[string]string {
	all, missing := map[string]int{}, map[string]int{}
	for _, name := range known {
		all[k.Catalog.TenantOf(name)]++
	}
	for _, name := range gone {
		missing[k.Catalog.TenantOf(name)]++
	}
	out := map[string]string{}
	for _, name := range gone {
		from, ok := k.Catalog.StatusOf(name)
		who := k.Catalog.TenantOf(name)
		switch n := missing[who]; {
		case !ok:
			out[name] = "the configuration has its namespace in no place that pipelines are read from"
		case from.Pipelines == 0 && !k.Catalog.TellsAll(name):
			out[name] = "no pipeline is left at all"
		case k.isLost(name):
			out[name] = "its object is missing, and nobody was seen to delete it: the cluster may have lost its objects, or be another one"
		case n >= atLeast && n*100 > all[who]*k.MaxShare:
			out[name] = fmt.Sprintf("%d of %d pipelines are gone at once, more than removals.max_share (%d %%)", n, all[who], k.MaxShare)
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
