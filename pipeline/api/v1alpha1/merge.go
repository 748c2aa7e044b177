// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // freeze windows have time zones, and images have none

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MergePolicy is who merges a pull request.
type MergePolicy string

// The policies.
const (
	MergeManual    MergePolicy = "Manual"
	MergeWhenGreen MergePolicy = "WhenGreen"
)

// MergeWhen is what Prerig waits for before it merges. What the host itself demands is never passed over.
type MergeWhen struct {
	// Method is Merge (the default), Squash or Rebase.
	// +enum=Merge,Squash,Rebase
	Method string `json:"method,omitempty"`
	// Statuses must exist and be green; * matches any text. Any other existing status must be green as well.
	Statuses []string `json:"statuses,omitempty"`
	// GreenFor is how long all statuses must have been green.
	GreenFor *metav1.Duration `json:"greenFor,omitempty"`
	// Approvals is how many people who may write must have approved of what is merged.
	Approvals int `json:"approvals,omitempty"`
	// After lists groups that have to be merged before.
	After []After `json:"after,omitempty"`
	// Freeze lists periods without merges.
	Freeze []Freeze `json:"freeze,omitempty"`
}

// After is another group of the same branch that has to be merged before: none of it is waiting, and its last merge
// is at least this long ago.
type After struct {
	// Group is named as groupBy does: the value of the label, the namespace, the directory, or the pipeline's namespace and name; or by
	// its head.
	Group string `json:"group"`
	// Delay is how long ago its last merge must be.
	Delay *metav1.Duration `json:"delay,omitempty"`
}

// Freeze is a period without merges, repeated weekly, or from one day to another.
type Freeze struct {
	// Days of the week on which it begins: Mon, Tue, Wed, Thu, Fri, Sat or Sun. The default is all.
	Days []string `json:"days,omitempty"`
	// From and To are times of the day, such as 16:00. Without them it is the whole day. Where To is not after From, it is that of the
	// next day.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Since and Until are the first and last day that it is for, such as 2026-12-20.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	// TimeZone is the name of the zone that all of this is in, such as Europe/Berlin. The default is UTC.
	TimeZone string `json:"timeZone,omitempty"`
}

// Waves have the groups of a label go one after another: the pull request of the next is opened when the one before is merged and green.
type Waves struct {
	// Order lists the values of the label, first to last.
	Order []string `json:"order"`
	// Statuses must exist and be green on what was merged; * matches any text. Any other existing status must be
	// green as well.
	Statuses []string `json:"statuses,omitempty"`
	// GreenFor is how long they must have been green before the next wave begins.
	GreenFor *metav1.Duration `json:"greenFor,omitempty"`
}

func (r *PullRequest) setMergeDefaults() {
	setDefault(&r.Merge, MergeManual)
	if r.MergeWhen != nil {
		setDefault(&r.MergeWhen.Method, "Merge")
	}
}

// HeadOf returns the head of another group of the same branch.
func (r *PullRequest) HeadOf(g *GitPublish, group string) string {
	if strings.HasPrefix(group, "prerig/") || r.GroupBy == GroupBySourceCommit || r.GroupBy == GroupByAll {
		return group
	}
	other := &RenderPipeline{}
	at := *g
	switch r.GroupBy {
	case GroupByNamespace:
		other.Metadata.Namespace = group
	case GroupByDirectory:
		at.Path = path.Join(group, "x")
	case GroupByLabel:
		other.Metadata.Labels = map[string]string{r.Label: group}
	default:
		other.Metadata.Namespace, other.Metadata.Name = path.Dir(group), path.Base(group)
		if !strings.Contains(group, "/") {
			other.Metadata.Namespace = ""
		}
	}
	return r.DefaultHead(&at, other)
}

// TrainKey names the waves of an entry that has some: it is equal for the pipelines that go one after another.
func TrainKey(to *GitPublish) string {
	r := to.PullRequest
	return BranchKey(to.URL, to.Branch) + "\n" + r.Label + "\n" + strings.Join(r.Waves.Order, "\n")
}

// Wave returns which of the waves, from 0, a pipeline with labels belongs to; -1 for none.
func (r *PullRequest) Wave(labels map[string]string) int {
	if r.Waves == nil {
		return -1
	}
	return slices.Index(r.Waves.Order, labels[r.Label])
}

// MatchStatus reports whether a name matches a pattern.
func MatchStatus(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}

var weekdays = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// Contains reports whether a time is in the freeze. One with invalid fields contains every time, so that no pull
// request is merged by mistake.
func (f Freeze) Contains(now time.Time) bool {
	zone, err := time.LoadLocation(f.TimeZone)
	if err != nil {
		return true
	}
	from, to, err := f.minutesOfDay()
	if err != nil {
		return true
	}
	local := now.In(zone)
	minute := local.Hour()*60 + local.Minute()
	if from < to {
		return minute >= from && minute < to && f.beginsOnDayOf(local)
	}
	// It spans midnight, and belongs to the day on which it begins.
	return minute >= from && f.beginsOnDayOf(local) || minute < to && f.beginsOnDayOf(local.AddDate(0, 0, -1))
}

// beginsOnDayOf reports whether it begins on the day of a time.
func (f Freeze) beginsOnDayOf(local time.Time) bool {
	day := local.Format(time.DateOnly)
	return (len(f.Days) == 0 || slices.Contains(f.Days, weekdays[local.Weekday()])) && (f.Since == "" || day >= f.Since) && (f.Until == "" || day <= f.Until)
}

// minutesOfDay returns when it begins and ends, in minutes of the day by the clock on the wall.
func (f Freeze) minutesOfDay() (from, to int, err error) {
	if from, err = minuteOf(f.From, 0); err != nil {
		return 0, 0, err
	}
	to, err = minuteOf(f.To, 24*60)
	return from, to, err
}

func minuteOf(text string, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	hours, minutes, ok := strings.Cut(text, ":")
	h, err := strconv.Atoi(hours)
	m, err2 := strconv.Atoi(minutes)
	if !ok || err != nil || err2 != nil || len(minutes) != 2 || len(hours) > 2 || h < 0 || m < 0 || m > 59 || h*60+m > 24*60 {
		return 0, fmt.Errorf("%q is no time of the day, such as 16:00", text)
	}
	return h*60 + m, nil
}

// String describes the period, for people.
func (f Freeze) String() string {
	var words []string
	if len(f.Days) > 0 {
		words = append(words, strings.Join(f.Days, ", "))
	}
	if f.From != "" || f.To != "" {
		from, to := f.From, f.To
		setDefault(&from, "00:00")
		setDefault(&to, "24:00")
		words = append(words, from+" to "+to)
	}
	if f.Since != "" {
		words = append(words, "since "+f.Since)
	}
	if f.Until != "" {
		words = append(words, "until "+f.Until)
	}
	zone := f.TimeZone
	setDefault(&zone, "UTC")
	return strings.Join(append(words, zone), " ")
}

func (f Freeze) checkFreeze(v *validator, at string) {
	for i, day := range f.Days {
		if !slices.Contains(weekdays, day) {
			v.addError(fmt.Sprintf("%s.days[%d]", at, i), "must be one of Mon, Tue, Wed, Thu, Fri, Sat, Sun, found %q", day)
		}
	}
	for field, text := range map[string]string{"from": f.From, "to": f.To} {
		if _, err := minuteOf(text, 0); err != nil {
			v.addError(at+"."+field, "%s", err)
		}
	}
	for field, text := range map[string]string{"since": f.Since, "until": f.Until} {
		if _, err := time.Parse(time.DateOnly, text); text != "" && err != nil {
			v.addError(at+"."+field, "must be a day such as 2026-12-20, found %q", text)
		}
	}
	if _, err := time.LoadLocation(f.TimeZone); err != nil || f.TimeZone == "Local" {
		v.addError(at+".timeZone", "must be the name of a time zone such as Europe/Berlin, found %q", f.TimeZone)
	}
}

func (r *PullRequest) checkMerge(v *validator, at string, g *GitPublish, p *RenderPipeline) {
	v.checkEnum(at+".merge", string(r.Merge), string(MergeManual), string(MergeWhenGreen))
	if when := r.MergeWhen; when != nil {
		if r.Merge != MergeWhenGreen {
			v.addError(at+".mergeWhen", "is for merge: WhenGreen, and merge is %s", r.Merge)
		}
		v.checkEnum(at+".mergeWhen.method", when.Method, "Merge", "Squash", "Rebase")
		if when.Approvals < 0 {
			v.addError(at+".mergeWhen.approvals", "must not be negative")
		}
		v.checkNotNegative(at+".mergeWhen.greenFor", when.GreenFor)
		for i, freeze := range when.Freeze {
			freeze.checkFreeze(v, fmt.Sprintf("%s.mergeWhen.freeze[%d]", at, i))
		}
		for i, after := range when.After {
			path := fmt.Sprintf("%s.mergeWhen.after[%d]", at, i)
			v.checkNotNegative(path+".delay", after.Delay)
			head := r.HeadOf(g, after.Group)
			switch {
			case after.Group == "":
				v.addError(path+".group", "must be given")
			case r.GroupBy == GroupBySourceCommit:
				v.addError(path, "cannot be used with groupBy: SourceCommit, whose groups have no names")
			case head == r.Head:
				v.addError(path+".group", "is the pipeline's own group")
			}
		}
	}
	if r.Waves != nil {
		r.checkWaves(v, at+".waves", p)
	}
}

func (r *PullRequest) checkWaves(v *validator, at string, p *RenderPipeline) {
	w := r.Waves
	v.checkNotNegative(at+".greenFor", w.GreenFor)
	if r.GroupBy != GroupByLabel {
		v.addError(at, "needs groupBy: Label: the waves are values of a label")
		return
	}
	if len(w.Order) < 2 {
		v.addError(at+".order", "must list two waves at least")
	}
	for i, one := range w.Order {
		if one == "" || slices.Contains(w.Order[:i], one) {
			v.addError(fmt.Sprintf("%s.order[%d]", at, i), "must be a value of the label that is not listed before, found %q", one)
		}
	}
	if value := p.Metadata.Labels[r.Label]; value != "" && r.Wave(p.Metadata.Labels) < 0 {
		v.addError(at+".order", "does not list %s, which is the pipeline's own label %s", value, r.Label)
	}
}

func (v *validator) checkNotNegative(at string, d *metav1.Duration) {
	if d != nil && d.Duration < 0 {
		v.addError(at, "must not be negative")
	}
}
