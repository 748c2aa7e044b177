// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads and edits Kubernetes manifests, YAML or JSON, and preserves every byte that is not edited.
//
// A stream is split into documents whose concatenated raw bytes are the stream (Parse, File.Bytes). Peek scans a
// document for the fields that identify its object. Object decodes a document exactly as Kubernetes tools do, which
// is sigs.k8s.io/yaml followed by JSON: yes, no, on, off, y and n are booleans, 012 is ten, 1.0 is the whole number
// one, dates are strings. The directive %YAML 1.2, which kubectl rejects, has no effect. Duplicate keys, deep
// nesting, large documents and alias bombs are errors with a line.
//
// # Editing
//
// With changes the text so that it decodes to a wanted value, and changes as little as possible:
//
//   - An unchanged node keeps its bytes: comments, key order, quotes, block and folded scalars, indentation, line
//     breaks, unknown fields.
//   - A changed scalar is rewritten in place, in its own quotes, and keeps its comment. A literal block stays one.
//   - The lines of a removed key are removed with it, as are the comments directly above it at its column, and deeper
//     ones below it. A comment after an empty line stays.
//   - New keys follow the last one of their mapping. A comment of its own below the last key stays with that key.
//   - Elements of lists are matched by mountPath, devicePath, name, containerPort and protocol and so on, otherwise by
//     equality, otherwise by position. Inserted elements are pure insertions and moved ones keep their text.
//   - New text is in block style with the document's own indentation and line breaks; inside a flow collection and in
//     JSON it is flow style, in several lines if the JSON is. An empty {} or [] or a null that gets content becomes
//     block style, but not in JSON, and not if {} or [] is alone on its line.
//   - An alias that gets another value is replaced by that value. When the text at an anchor changes, the aliases
//     that keep the old value are replaced by it. A merge key stays as long as all values it contributes are wanted;
//     keys that differ are written after it. Otherwise its values replace it.
//
// The result is decoded and compared before it is returned. With of the same value returns the same document.
//
// # Limits
//
// A document of more than MaxDocument bytes, MaxDepth levels or MaxAliased aliased values is rejected; lists in
// block style may be larger, as they are split as text. Some YAML is decoded but not edited, and With returns an
// error for it: complex keys (? a), %TAG directives, the line breaks NEL, LS and PS, keys that are aliases, tags on
// collections.
//
// The package does not log, keeps no state and does not modify its arguments; documents are immutable and safe for
// concurrent use.
package manifest
