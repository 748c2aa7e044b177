// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package catalog holds the RenderPipelines of a directory of YAML files and says which of them an event could touch. It
// watches the directory; a file that is wrong is told about and stops no other. It writes nothing.
package catalog
