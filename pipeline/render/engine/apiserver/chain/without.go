// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"maps"
	"slices"
	"strings"
)

// Without returns the cluster without an object that a cause names. A ServiceAccount and a Namespace, which pods need, only lose
// what they set on pods. It returns nil for an object whose absence rejects pods, or that is not known.
func (c *Cluster) Without(object string) *Cluster {
	kind, name, _ := strings.Cut(object, " ")
	out := *c
	switch kind {
	case "MutatingAdmissionPolicy":
		out.Policies = c.Policies.Without(name)
	case "LimitRange":
		namespace, name, _ := strings.Cut(name, "/")
		out.LimitRanges = maps.Clone(c.LimitRanges)
		out.LimitRanges[namespace] = slices.DeleteFunc(slices.Clone(c.LimitRanges[namespace]), func(l LimitRange) bool { return l.Name == name })
	case "ServiceAccount":
		return c.withoutAccount(name)
	case "Namespace":
		known := c.Namespaces[name]
		if known == nil {
			return nil
		}
		ns := known.DeepCopy()
		delete(ns.Annotations, nodeSelectorAnnotation)
		out.Namespaces = maps.Clone(c.Namespaces)
		out.Namespaces[name] = ns
	case "PriorityClass":
		if class := c.Priorities[name]; class == nil || !class.GlobalDefault {
			return nil
		}
		out.Priorities = maps.Clone(c.Priorities)
		delete(out.Priorities, name)
	default:
		return nil
	}
	return &out
}

// withoutAccount returns the cluster with a ServiceAccount that sets nothing on pods; nil if it is not known.
func (c *Cluster) withoutAccount(name string) *Cluster {
	known := c.Accounts[name]
	if known == nil {
		return nil
	}
	account, mounts := *known, false
	account.ImagePullSecrets, account.AutomountServiceAccountToken = nil, &mounts
	out := *c
	out.Accounts = maps.Clone(c.Accounts)
	out.Accounts[name] = &account
	return &out
}

// Repeat returns the admission of the same pod as it was at the beginning, in this cluster. It does not look for orders that count.
func (c *Cluster) Repeat(a *Admission) *Admission {
	out := c.New(a.request, &Trace{})
	out.Ordered, out.Seen = true, a.Seen
	return out
}
