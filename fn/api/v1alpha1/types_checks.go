// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Images pins images to digests.
type Images struct {
	// Scope determines which containers are pinned: Injected (the default) are those that the injection adds, and
	// All also the workloads' own, their init containers and ephemeral ones, whether the pod is injected or not.
	// +enum=Injected,All
	Scope string `json:"scope,omitempty"`
	// Pins maps an image as templates name it to the one with its digest.
	// +pattern=^[^\s@]+@sha(256:[a-f0-9]{64}|512:[a-f0-9]{128})$
	Pins map[string]string `json:"pins,omitempty"`
	// Lock names the ImageLock among the items whose digests are used, as prerig images pin writes it. The pins go before
	// it.
	Lock string `json:"lock,omitempty"`
	// OnMissing is what to do with an image that has no pin: Ignore (the default), Warn or Fail.
	// +enum=Ignore,Warn,Fail
	OnMissing string `json:"onMissing,omitempty"`
	// Verify lists which images have to be signed, and by whom. The signatures are verified when prerig images pin
	// makes the lock and by prerig images verify, and not again when the lock is used.
	Verify []ImageVerification `json:"verify,omitempty"`
}

// ImageVerification describes whose signature images need.
type ImageVerification struct {
	// Images is a pattern of repositories, with the registry and without a tag, such as ghcr.io/acme/*: * matches
	// one part of the name, ** any number of them.
	// +required
	Images string `json:"images"`
	// Keys are public keys in PEM, as in cosign.pub. One of them has to have signed the image.
	// +required
	Keys []string `json:"keys"`
}

// Lint sets severities, and lists accepted findings.
type Lint struct {
	// Disabled switches all rules off.
	Disabled bool `json:"disabled,omitempty"`
	// Rules maps a rule's code to its severity: Error, Warning, Info or Off.
	// +enum=Error,Warning,Info,Off
	Rules map[string]string `json:"rules,omitempty"`
	// Suppress lists findings that are accepted, each with the reason. They are not reported.
	Suppress []LintSuppression `json:"suppress,omitempty"`
}

// LintSuppression describes which findings about which objects are accepted, and why.
type LintSuppression struct {
	// Rules are codes, such as PR107; without them all rules are meant.
	// +pattern=^PR[0-9]{3}$
	Rules []string `json:"rules,omitempty"`
	// Kind is the kind of the objects, such as Deployment; * matches any characters. If empty, all kinds match.
	Kind string `json:"kind,omitempty"`
	// Namespace is the namespace of the objects; * matches any characters. If empty, all namespaces match.
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the objects; * matches any characters. If empty, all names match.
	Name string `json:"name,omitempty"`
	// Reason is why the findings are accepted.
	// +pattern=.
	Reason string `json:"reason"`
}
