// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/status"
)

// doubt is a reason not to know whether pipelines are gone.
type doubt struct {
	because string
	// file may hold the missing pipelines that its tenant can have; nil for a doubt about all.
	file *catalog.Entry
}

// findDoubts returns why it is not known what is gone, nothing where it is.
func (k *Keeper) findDoubts(now catalog.Status, entries []catalog.Entry) (out []doubt) {
	if now.Error != "" {
		out = append(out, doubt{because: "the pipelines cannot be read now"})
	}
	for _, e := range entries {
		if e.Err == nil {
			continue
		}
		if _, ok := k.Store.Registration(e.Key); e.Opaque || !ok {
			out = append(out, doubt{e.File + " is not valid, and may hold it", &e})
		}
	}
	return out
}

// doubtReason says why it is not known whether a pipeline is gone, "" where it is. A file of one tenant says nothing of the pipelines
// of another one, which could otherwise not be removed for as long as its author likes.
func (k *Keeper) doubtReason(pipeline string) string {
	doubts := k.doubts.Load()
	if doubts == nil {
		return ""
	}
	for _, d := range *doubts {
		if d.file == nil || k.Catalog.MayHold(*d.file, pipeline) {
			return d.because
		}
	}
	return ""
}

// atLeast is how many pipelines may always go at once.
const atLeast = 4

// tooMany returns why so many should not go without somebody's word, by the tenants that they are of; nothing for those whose may. An
// empty catalog is a directory that was not mounted, or a repository that was emptied, much more often than it is meant.
func (k *Keeper) tooMany(now catalog.Status, gone, known []string) map[string]string {
	all, missing := map[string]int{}, map[string]int{}
	for _, name := range known {
		all[k.Catalog.TenantOf(name)]++
	}
	for _, name := range gone {
		missing[k.Catalog.TenantOf(name)]++
	}
	out := map[string]string{}
	for who, n := range missing {
		switch {
		case now.Pipelines == 0:
			out[who] = "no pipeline is left at all"
		case n >= atLeast && n*100 > all[who]*k.MaxShare:
			out[who] = fmt.Sprintf("%d of %d pipelines are gone at once, more than removals.max_share (%d %%)", n, all[who], k.MaxShare)
		}
	}
	return out
}

// approveDue lets those go that are due, as one cause, so that they become one commit for each branch. One that was too many
// once needs a word even when the others have been dealt with. many are the reasons of tooMany.
func (k *Keeper) approveDue(ctx context.Context, gone []string, many map[string]string) error {
	var due, reasons []string
	held := 0
	for _, name := range gone {
		r, ok := k.Store.Registration(name)
		if !ok || r.Removal == nil || !r.Removal.Approved && time.Since(r.Removal.Since) < k.Delay {
			continue
		}
		because := k.doubtReason(name)
		if because == "" && !r.Removal.Approved {
			var err error
			if because, err = k.holdBack(ctx, name, r.Removal, many[k.Catalog.TenantOf(name)]); err != nil {
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
