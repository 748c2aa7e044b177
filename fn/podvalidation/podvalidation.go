// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package podvalidation finds what every API server rejects in a pod: the part of Kubernetes' own validation that an injection can violate, by
// its annotations, its configuration or a custom template. It reads pods as maps, as a manifest has them, and knows the defaults of the fields
// that are not written. What depends on the cluster's configuration, and fields that it does not know, are never a problem.
//
// Source of all checks: pkg/apis/core/validation/validation.go of Kubernetes 1.36.
package podvalidation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// The codes of lint's rules that report the same problems.
const (
	CodeNoContainer  = "PR207"
	CodeAboveLimit   = "PR403"
	CodeQuantity     = "PR405"
	CodePodResources = "PR410"
	CodeContainer    = "PR611"
	CodeRejected     = "PR622"
)

// Problem is one reason for which the API server rejects a pod.
type Problem struct {
	// Code is one of the codes above.
	Code string
	// Field is the path of the field in the pod, such as spec.containers[1].image.
	Field string
	// Container is the name of the container that the field is in; empty where it is in none.
	Container string
	// Volume is the name of the volume that a mount misses; empty for other problems.
	Volume string
	// Current is the value of the field, nil where it has none.
	Current any
	// Message is a sentence without a full stop.
	Message string
	// key is the same for the same problem in another version of the pod, where the container may be elsewhere.
	key string
}

// Options hold what a pod itself does not specify.
type Options struct {
	// Minor is the minor version of Kubernetes 1; 0 means that it is not known, and that the newest one is meant.
	Minor int
}

// isBeforeMinor reports whether the version is known to be before a minor version.
func (o Options) isBeforeMinor(minor int) bool { return o.Minor != 0 && o.Minor < minor }

// Check returns the problems of a pod in the order of its fields: metadata, containers, volumes, the rest.
func Check(pod map[string]any, o Options) []Problem { return checkPod(pod, nil, o) }

// Added returns the problems that a pod has after a change and did not have before it.
func Added(before, after map[string]any, o Options) []Problem {
	problems := checkPod(after, before, o)
	if len(problems) == 0 {
		return nil
	}
	had := map[string]bool{}
	for _, p := range checkPod(before, nil, o) {
		had[p.key] = true
	}
	return slices.DeleteFunc(problems, func(p Problem) bool { return had[p.key] })
}

// Hidden returns the problems of probes and hooks that a pod has before an injection and not after it: the injection replaces the
// probe, the API server would reject the workload as it is written, and the proxy's agent does not start with such a probe.
func Hidden(before, after map[string]any, o Options) []Problem {
	return slices.DeleteFunc(Added(after, before, o), func(p Problem) bool {
		return p.Code != CodeRejected || !strings.Contains(p.Field, "Probe.") && !strings.Contains(p.Field, ".lifecycle.")
	})
}

// checker collects the problems of one pod.
type checker struct {
	Options
	spec  map[string]any
	found []Problem
}

func checkPod(pod, before map[string]any, o Options) []Problem {
	parts := podmap.PartsOf(pod)
	if parts.Spec == nil {
		return nil
	}
	c := &checker{Options: o, spec: parts.Spec}
	c.checkAddedMetadata(parts.Meta, podmap.PartsOf(before).Meta)
	c.checkContainerLists()
	c.checkVolumes()
	c.podResources(pod)
	c.checkPodSettings()
	return c.found
}

// place is where the checker is: a container, or the pod.
type place struct {
	path      string
	container string
	// named is the path without places in lists, which an injection may change.
	named string
}

var podPlace = place{path: "spec", named: "spec"}

// placeOfContainer returns the place of a container in a list of the pod.
func placeOfContainer(list string, i int, c map[string]any) place {
	return place{path: fmt.Sprintf("spec.%s[%d]", list, i), container: text(c["name"])}
}

func (p place) field(name string) place {
	return place{path: p.path + "." + name, container: p.container, named: p.named + "." + name}
}

func (p place) key(name string) place {
	return place{path: p.path + "[" + name + "]", container: p.container, named: p.named + "[" + name + "]"}
}

// element returns the place of an element of a list, by its distinguishing key.
func (p place) element(i int, name any) place {
	return place{path: fmt.Sprintf("%s[%d]", p.path, i), container: p.container,
		named: fmt.Sprintf("%s[%v]", p.named, name)}
}

// addProblem adds a problem. The format distinguishes problems of one place.
func (c *checker) addProblem(code string, at place, current any, format string, args ...any) {
	c.found = append(c.found, Problem{
		Code: code, Field: at.path, Container: at.container, Current: current, Message: fmt.Sprintf(format, args...),
		key: at.container + "\x00" + at.named + "\x00" + format,
	})
}

// rejectField adds a problem without a rule of its own.
func (c *checker) rejectField(at place, current any, format string, args ...any) {
	c.addProblem(CodeRejected, at, current, format, args...)
	p := &c.found[len(c.found)-1]
	if at.container != "" {
		p.Message = "container " + at.container + ": " + p.Message
	}
	p.Message += ": the API server refuses the pod"
}

// isLabel reports whether a text is a DNS label.
func isLabel(s string) bool { return len(s) <= 63 && isName(s, "-") }

// isSubdomain reports whether a text is a DNS subdomain.
func isSubdomain(s string) bool {
	if len(s) > 253 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if !isName(part, "-") {
			return false
		}
	}
	return true
}

// isPlainName reports whether a text is certain to be valid as the value of a label, and as a key without a prefix. It
// is much cheaper than the expressions of package validation, which decide about all other texts.
func isPlainName(s string) bool { return len(s) <= 63 && isName(s, "-._") }

// isPlainKey reports whether a text is certain to be valid as the key of a label or annotation.
func isPlainKey(s string) bool {
	prefix, name, ok := strings.Cut(s, "/")
	return isPlainName(s) || ok && isSubdomain(prefix) && isPlainName(name)
}

// isName reports whether a text consists of lower-case letters, digits and, between them, the other characters.
func isName(s, between string) bool {
	for i := range len(s) {
		b := s[i]
		if b >= 'a' && b <= 'z' || b >= '0' && b <= '9' {
			continue
		}
		if i == 0 || i == len(s)-1 || strings.IndexByte(between, b) < 0 {
			return false
		}
	}
	return s != ""
}

// isPortName reports whether a text is a name of a port: IANA_SVC_NAME.
func isPortName(s string) bool {
	return len(s) <= 15 && isName(s, "-") && strings.ContainsFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' }) && !strings.Contains(s, "--")
}

func isPort(n int64) bool { return n > 0 && n < 65536 }

func text(v any) string {
	s, _ := v.(string)
	return s
}

// integer is a number as manifests have it; false for what is none.
func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func listOf(v any) []any {
	l, _ := v.([]any)
	return l
}

// oneOf reports whether a value is absent, empty or one of those.
func oneOf(v any, values ...string) bool {
	s, isText := v.(string)
	return v == nil || isText && (s == "" || slices.Contains(values, s))
}
