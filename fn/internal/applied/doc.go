// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package applied checks that what an injection writes can be applied to a cluster. The webhook writes pods, and Prerig writes manifests
// that someone applies: a comparison with the webhook never finds what only an apply rejects. Each workload is injected, injected again
// with another version of the sidecars, and freed of the injection. Each result is sent to prerig-validate, which
// answers with Kubernetes' own validation, for a new object and for an update of the one before, and with the types of
// server-side apply.
//
// A failure is a result that is rejected although the workload itself is not, where the injection reported no error for the workload.
package applied
