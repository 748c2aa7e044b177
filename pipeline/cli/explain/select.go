// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
)

// short names of kinds, as kubectl has them.
var short = map[string]string{
	"po": "Pod", "deploy": "Deployment", "rs": "ReplicaSet", "sts": "StatefulSet", "ds": "DaemonSet", "cj": "CronJob",
	"rc": "ReplicationController", "dc": "DeploymentConfig", "ro": "Rollout",
}

// Reference names an object: KIND/NAME or KIND/NAMESPACE/NAME, with the kind in any case, in the plural, or short.
type Reference struct {
	Kind, Namespace, Name string
}

// ParseReference reads a reference; false for what does not have its form.
func ParseReference(s string) (Reference, bool) {
	parts := strings.Split(s, "/")
	for _, p := range parts {
		if p == "" || strings.ContainsAny(p, " \\") {
			return Reference{}, false
		}
	}
	switch len(parts) {
	case 2:
		return Reference{Kind: parts[0], Name: parts[1]}, true
	case 3:
		return Reference{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, true
	}
	return Reference{}, false
}

func (r Reference) String() string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

func (r Reference) matchesWorkload(w Workload) bool {
	kind, _, _ := strings.Cut(r.Kind, ".") // deployment.apps
	lower := strings.ToLower(kind)
	if long, ok := short[lower]; ok {
		kind = long
	}
	if !strings.EqualFold(kind, w.Object.Kind) && !strings.EqualFold(kind, w.Object.Kind+"s") {
		return false
	}
	return r.Name == w.Object.Name && (r.Namespace == "" || r.Namespace == w.Object.Namespace)
}

// Select returns the workloads that the references name. The error names a reference that matches none, and those of
// its name or kind.
func (e Explanation) Select(refs []Reference) (Explanation, error) {
	out := e
	out.Workloads = nil
	for _, r := range refs {
		found := false
		var near []string
		for _, w := range e.Workloads {
			switch {
			case r.matchesWorkload(w):
				out.Workloads = append(out.Workloads, w)
				found = true
			case w.Object.Name == r.Name || (Reference{Kind: r.Kind, Name: w.Object.Name}).matchesWorkload(w):
				if text := describePlace(w); !slices.Contains(near, text) {
					near = append(near, text)
				}
			}
		}
		if found {
			continue
		}
		if len(near) == 0 {
			return out, fmt.Errorf("finding %s: no such file, and no such workload among the %d in the input; prerig explain without names lists them", r, len(e.Workloads))
		}
		const most = 5
		if len(near) > most {
			near = append(near[:most], "…")
		}
		return out, fmt.Errorf("finding %s: no such workload; similar ones: %s", r, strings.Join(near, ", "))
	}
	return out, nil
}

// describePlace names a workload with its file.
func describePlace(w Workload) string {
	if w.File == "" {
		return w.Object.String()
	}
	return fmt.Sprintf("%s (%s:%d)", w.Object, w.File, w.Line)
}
