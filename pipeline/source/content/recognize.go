// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package content

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// Finding is what a document turned out to be: one to work on, one that is passed over for a reason, or one that is
// wrong.
type Finding struct {
	// Reason is why the document is skipped, nil for one to work on.
	Reason *Reason
	// Err is what is wrong with an object.
	Err error
	// Cause is why the text could not be read that is skipped.
	Cause error
}

// Recognize separates the objects among documents from other content of a repository. It decodes only
// documents that a scan cannot classify. A document that looks like an object is never skipped: if it is broken,
// that is an error.
func Recognize(d *manifest.Document) Finding {
	text := d.Text()
	meta, sure := d.Scan()
	switch {
	case d.Empty():
		return Finding{}
	case d.StartsList():
		return Finding{Reason: listReason(text)}
	case isAnnotated(d):
		return Finding{Reason: Template}
	case sure && !(mayBeTemplate(text) && isTemplate(text)) && !hasNoContainers(meta, text):
		return recognizeMeta(d, meta)
	}
	obj, err := d.Object()
	if err != nil {
		return RecognizeBroken(d.Path(), text, err)
	}
	meta.APIVersion, _ = obj["apiVersion"].(string)
	meta.Kind, _ = obj["kind"].(string)
	if hasNoContainers(meta, text) {
		return Finding{Reason: Fragment}
	}
	return recognizeMeta(d, meta)
}

// recognizeMeta judges a mapping by its apiVersion and kind.
func recognizeMeta(d *manifest.Document, meta manifest.Meta) Finding {
	text := d.Text()
	switch {
	case isMisnamedKustomization(d.Path(), meta):
		return Finding{Reason: misnamed}
	case meta.APIVersion != "" && meta.Kind != "":
		if strings.HasPrefix(meta.APIVersion, "kustomize.config.k8s.io/") {
			return Finding{Reason: Kustomization}
		}
		if meta.Kind == manifest.ResourceListKind && strings.HasPrefix(meta.APIVersion, "config.kubernetes.io/") {
			return Finding{Reason: ResourceList}
		}
		if !isWorkload(meta) {
			return Finding{}
		}
		if cause := explainUnfilled(d); cause != nil {
			return Finding{Reason: Unfilled, Cause: cause}
		}
		return Finding{}
	case meta.APIVersion == "" && meta.Kind != "" && hasKey(text, "metadata"):
		return Finding{Err: fmt.Errorf("reading %s: the object has kind %s and no apiVersion, so its type is unknown; add the apiVersion", d, meta.Kind)}
	case meta.Kind == "" && meta.APIVersion != "" && hasKey(text, "metadata"):
		return Finding{Err: fmt.Errorf("reading %s: the object has apiVersion %s and no kind, so its type is unknown; add the kind", d, meta.APIVersion)}
	}
	return Finding{Reason: plainReason(d.Path(), text)}
}

// kustomizationNames are the names that kustomize reads.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// isMisnamedKustomization reports whether a file is a kustomization that kustomize does not find by its name.
func isMisnamedKustomization(path string, meta manifest.Meta) bool {
	base := filepath.Base(path)
	if slices.Contains(kustomizationNames, base) {
		return false
	}
	group, _, _ := strings.Cut(meta.APIVersion, "/")
	return (group == "" || group == "kustomize.config.k8s.io") && slices.Contains(kustomizationNames[:2], strings.ToLower(base))
}

// listReason distinguishes lists of objects from others.
func listReason(text string) *Reason {
	if isTemplate(text) {
		return Template
	}
	if looksLikeObjects(text) {
		return ObjectList
	}
	return list
}

var composeName = lazyregexp.New(`(?i)^(docker-)?compose([.-].*)?\.ya?ml$`)

// plainReason recognizes well-known files that are not objects.
func plainReason(path, text string) *Reason {
	base := filepath.Base(path)
	switch {
	case base == "kustomization.yaml", base == "kustomization.yml":
		return Kustomization
	case composeName.MatchString(base), hasKey(text, "services") && hasKey(text, "version"):
		return compose
	case hasKey(text, "openapi"), hasKey(text, "swagger"):
		return openAPI
	case hasKey(text, "groups") && strings.Contains(text, "rules") && !strings.EqualFold(filepath.Ext(path), ".json"):
		return rules
	}
	return cmp.Or(IstioInput(text), Plain)
}

// IstioInput recognizes the inputs of prerig import that are not objects: values of Istio's chart, and a MeshConfig. It returns nil for
// other texts.
func IstioInput(text string) *Reason {
	switch {
	case hasKey(text, "apiVersion") || hasKey(text, "kind"):
		return nil
	case hasKey(text, "sidecarInjectorWebhook"), hasKey(text, "global") && (hasKey(text, "meshConfig") || hasKey(text, "pilot")):
		return istioValues
	case hasKey(text, "defaultConfig"), hasKey(text, "accessLogFile"), hasKey(text, "trustDomain"), hasKey(text, "outboundTrafficPolicy"):
		return meshConfig
	}
	return nil
}

// hasKey reports whether a mapping has the key at its top level. In JSON it may be nested.
func hasKey(text, key string) bool {
	for i := 0; ; {
		n := strings.Index(text[i:], key)
		if n < 0 {
			return false
		}
		at := i + n
		i = at + len(key)
		before, after := strings.TrimRight(text[:at], " \t"), text[i:]
		if q := strings.TrimSuffix(before, `"`); q != before && strings.HasPrefix(after, `"`) {
			if strings.HasPrefix(strings.TrimLeft(after[1:], " \t"), ":") {
				return true
			}
			continue
		}
		if strings.HasPrefix(strings.TrimLeft(after, " \t"), ":") && (at == 0 || text[at-1] == '\n') {
			return true
		}
	}
}

// RecognizeBroken judges a text that cannot be read as YAML or JSON because of err.
func RecognizeBroken(path, text string, err error) Finding {
	switch {
	case isTemplate(text):
		return Finding{Reason: Template}
	case LooksLikeObject(text), apiVersionKey.MatchString(text) && indentedKind.MatchString(text):
		return Finding{Err: err}
	case strings.EqualFold(filepath.Ext(path), ".json") && jsonComment.MatchString(text):
		return Finding{Reason: jsonComments}
	case errors.As(err, new(*manifest.SecondValueError)):
		return Finding{Reason: jsonLines}
	case errors.As(err, new(*manifest.NotTextError)):
		return Finding{Reason: notText, Cause: err}
	}
	return Finding{Reason: unreadable, Cause: err}
}

var (
	jsonComment = lazyregexp.New(`(?m)^\s*(?://|/\*)|[,{\[]\s*//`)
	// The keys of an object at their place in YAML, and in JSON, which does not depend on lines.
	apiVersionKey = lazyregexp.New(`(?m)^(?:\x{feff})?(?:---\s+)?["']?apiVersion["']?[ \t]*:|[{,]\s*"apiVersion"\s*:`)
	kindKey       = lazyregexp.New(`(?m)^(?:\x{feff})?(?:---\s+)?["']?kind["']?[ \t]*:[ \t]*["']?[A-Z]|[{,]\s*"kind"\s*:\s*"[A-Z]`)
	// A kind that was indented by mistake, which is why such a text cannot be read.
	indentedKind = lazyregexp.New(`(?m)^[ \t]+["']?kind["']?[ \t]*:[ \t]*["']?[A-Z]`)
	workloadKey  = lazyregexp.New(`(?m)^["']?kind["']?[ \t]*:[ \t]*["']?(?:Deployment|DaemonSet|StatefulSet|ReplicaSet|ReplicationController|Job|CronJob|Pod)["']?\s*$`)
	elementKey   = lazyregexp.New(`(?m)^- *["']?(?:apiVersion|kind)["']?[ \t]*:|^\s*\[\s*\{\s*"(?:apiVersion|kind)"\s*:`)
)

// LooksLikeObject reports whether a text that cannot be read seems to be meant as an object.
func LooksLikeObject(text string) bool {
	return kindKey.MatchString(text) && apiVersionKey.MatchString(text) || workloadKey.MatchString(text)
}

// looksLikeObjects reports the same for a list.
func looksLikeObjects(text string) bool { return elementKey.MatchString(text) }
