// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

// Audience is the group of people who can change what a rule finds. The zero value means both.
type Audience string

// The two audiences.
const (
	// Operators have the mesh, its policies and the namespaces.
	Operators Audience = "operator"
	// Applications have the manifests of workloads and Services.
	Applications Audience = "application"
)

// Profiles are the names that [Rule.In] knows.
var Profiles = []string{string(Operators), string(Applications), "all"}

// In reports whether the rule belongs to a profile: that of those who can change what it finds, or "all".
func (r Rule) In(profile string) bool {
	return profile == "all" || r.Audience == "" || string(r.Audience) == profile
}

func (r Rule) audienceText() string {
	if r.Audience == "" {
		return "operator, application"
	}
	return string(r.Audience)
}
