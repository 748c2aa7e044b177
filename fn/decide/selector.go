// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// selector is a label selector that can explain why it does not match, and that can be evaluated over labels that
// are only partly known.
type selector struct {
	requirements []requirement
}

type requirement struct {
	labels.Requirement
	text string
}

// compileSelector makes a selector ready; none matches everything.
func compileSelector(s *v1alpha1.LabelSelector) (selector, error) {
	if s == nil {
		return selector{}, nil
	}
	all, err := s.Selector()
	if err != nil {
		return selector{}, err
	}
	list, _ := all.Requirements()
	out := selector{}
	for _, r := range list {
		out.requirements = append(out.requirements, requirement{r, describeRequirement(r)})
	}
	return out, nil
}

// describeRequirement writes a requirement for people.
func describeRequirement(r labels.Requirement) string {
	values := strings.Join(r.Values().List(), ", ")
	switch r.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		if r.Values().Len() > 1 {
			return "must have " + r.Key() + " in (" + values + ")"
		}
		return "must have " + r.Key() + "=" + values
	case selection.NotIn, selection.NotEquals:
		if r.Values().Len() > 1 {
			return "must not have " + r.Key() + " in (" + values + ")"
		}
		return "must not have " + r.Key() + "=" + values
	case selection.Exists:
		return "must have the label " + r.Key()
	case selection.DoesNotExist:
		return "must not have the label " + r.Key()
	}
	return r.String()
}

// knownLabels is a set of labels; if all is false, the object may have further labels.
type knownLabels struct {
	labels labels.Set
	all    bool
}

// evaluateKnownLabels returns Yes, No or Unknown, and the requirement that does not hold or is not known.
func (s selector) evaluateKnownLabels(k knownLabels) (Answer, *requirement) {
	answer, which := Yes, (*requirement)(nil)
	for i := range s.requirements {
		r := &s.requirements[i]
		if !k.all && !k.labels.Has(r.Key()) {
			answer, which = Unknown, r
			continue
		}
		if !r.Matches(k.labels) {
			return No, r
		}
	}
	return answer, which
}

// describeMismatch describes what a requirement wants and what the labels are.
func (r *requirement) describeMismatch(whose Level, k knownLabels) string {
	has := "it does not have it"
	if !k.all && !k.labels.Has(r.Key()) {
		has = "its labels are not known"
	} else if v, ok := k.labels[r.Key()]; ok {
		has = "it has " + r.Key() + "=" + v
	}
	return fmt.Sprintf("the %s %s; %s", whose, r.text, has)
}

// positiveRequirement returns the requirement that a match depends on: one that needs a label to be present.
func (s selector) positiveRequirement() *requirement {
	for i := range s.requirements {
		switch s.requirements[i].Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals, selection.Exists:
			return &s.requirements[i]
		}
	}
	return nil
}
