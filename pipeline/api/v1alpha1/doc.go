// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds RenderPipeline, the object that describes where manifests come from, how they are built,
// which policies are applied and where the result is published. It decodes strictly, so that a typing error is an
// error with the key's path and line, sets defaults and validates. It reads no file and makes no network requests.
package v1alpha1
