// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package access decides who may do what: roles and the namespaces that they apply to, the tokens that grant them,
// and a record of who did what.
package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Role is a permission level. Roles other than Metrics include all lower ones.
type Role string

// The roles.
const (
	// Metrics may only read the metrics.
	Metrics Role = "metrics"
	// Read looks at pipelines, their runs and their diffs.
	Read Role = "read"
	// Operate reconciles, suspends and resumes.
	Operate Role = "operate"
	// Administer confirms removals.
	Administer Role = "administer"
)

// Roles are all roles, as they are offered to users.
var Roles = []Role{Metrics, Read, Operate, Administer}

// Includes reports whether who has the role may do what needs another one. Every role that reads also reads metrics, where it
// is not bound to namespaces: see Grant.
func (r Role) Includes(needed Role) bool {
	have, want := slices.Index(Roles, r), slices.Index(Roles, needed)
	return have >= 0 && want >= 0 && have >= want
}

// Grant is a role in some namespaces.
type Grant struct {
	Role Role
	// Namespaces of the pipelines that it is for; none means all pipelines, those without a namespace among them.
	Namespaces []string
}

// Check returns what is wrong with a grant. A set but empty namespace list is an error, as it would hardly be meant
// as all.
func (g Grant) Check() error {
	if !slices.Contains(Roles, g.Role) {
		return fmt.Errorf("role: must be %s, found %q", roleNames(), g.Role)
	}
	if g.Namespaces != nil && len(g.Namespaces) == 0 {
		return errors.New("namespaces: must name at least one; leave it out for all")
	}
	if g.Role == Metrics && len(g.Namespaces) > 0 {
		return errors.New("namespaces: cannot be given with the role metrics, because metrics are about all pipelines")
	}
	for _, namespace := range g.Namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("namespaces: %q is not the name of a namespace: %s", namespace, problems[0])
		}
	}
	return nil
}

func roleNames() string {
	names := make([]string, len(Roles))
	for i, role := range Roles {
		names[i] = string(role)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// Principal is who asks for something.
type Principal struct {
	// Kind is how the principal was identified.
	Kind Kind
	// Name is the name of the token, of the user, or of a socket's user. It appears in the log.
	Name   string
	Grants []Grant
}

// Kind is how a principal was identified.
type Kind string

// The kinds of principals. The zero Kind is unidentified and has no permissions.
const (
	ByToken   Kind = "token"
	BySignIn  Kind = "oidc"
	BySocket  Kind = "socket"
	Anonymous Kind = "anonymous" // where everybody may look
)

// Everything is the grant to do everything.
func Everything() []Grant { return []Grant{{Role: Administer}} }

// String returns the principal in its log form.
func (p Principal) String() string {
	if p.Kind == "" {
		return "nobody"
	}
	if p.Name == "" {
		return string(p.Kind)
	}
	return string(p.Kind) + ":" + p.Name
}

// May reports whether the principal may do what needs a role with pipelines of a namespace, which is "" for those without one.
func (p Principal) May(needed Role, namespace string) bool {
	return slices.ContainsFunc(p.Grants, func(g Grant) bool {
		return g.Role.Includes(needed) && (len(g.Namespaces) == 0 || slices.Contains(g.Namespaces, namespace))
	})
}

// MayEverywhere reports whether the principal may do what needs a role with all pipelines.
func (p Principal) MayEverywhere(needed Role) bool {
	return slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.Role.Includes(needed) && len(g.Namespaces) == 0 })
}

// MaySomewhere reports whether pipelines could exist for which the principal has the needed role. Metrics are about
// all pipelines, so a grant for some namespaces does not include them.
func (p Principal) MaySomewhere(needed Role) bool {
	if needed == Metrics {
		return p.MayEverywhere(needed)
	}
	return slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.Role.Includes(needed) })
}
