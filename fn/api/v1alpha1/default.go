// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// SetDefaults fills in what has a fixed default. Settings whose default depends on the injector's configuration or on the
// items (version, revision, unknownNamespace, rootNamespace) stay empty.
func (p *InjectionPolicy) SetDefaults() {
	setDefault(&p.Spec.Mode, ModeInject)
	setDefault(&p.Spec.Record, RecordWorkload)
	if i := p.Spec.Istio; i != nil {
		setDefault(&i.NativeSidecars, NativeSidecarsAuto)
		setDefault(&i.Admission, AdmissionDefaulted)
		setDefault(&i.RuntimeWebhook, RuntimeWebhookKeep)
	}
	if i := p.Spec.Images; i != nil {
		setDefault(&i.OnMissing, "Ignore")
		setDefault(&i.Scope, ScopeInjected)
	}
}

// The values of spec.images.scope.
const (
	ScopeInjected = "Injected"
	ScopeAll      = "All"
)

func setDefault[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
