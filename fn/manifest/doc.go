// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads and edits Kubernetes manifests, YAML or JSON, without touching what is not edited.
//
// A stream is split into documents whose raw bytes, one after the other, are the stream (Parse, File.Bytes). Peek reads
// what tells an object from others by a scan. Object decodes a document exactly as Kubernetes tools do, which is
// sigs.k8s.io/yaml followed by JSON: yes, no, on, off, y and n are booleans, 012 is ten, 1.0 is the whole number one,
// dates are strings. The directive %YAML 1.2, which kubectl refuses, changes nothing. Duplicate keys, deep nesting, large
// documents and alias bombs are errors with a line.
//
// # Editing
//
// With changes the text so that it decodes to a wanted value, as little as possible:
//
//   - What does not change keeps its bytes: comments, key order, quotes, block and folded scalars, indentation, line
//     breaks, unknown fields.
//   - A changed scalar is rewritten in place, in its own quotes, and keeps its comment. A literal block stays one.
//   - A key that goes takes its lines along, the comments directly above it at its column, and deeper ones below it. A
//     comment after an empty line stays.
//   - New keys come after the last one of their mapping. An own comment below the last key stays with that key.
//   - Elements of lists are known by mountPath, devicePath, name, containerPort and protocol and so on, else by being
//     equal, else by position. Inserted elements are pure insertions and moved ones keep their text.
//   - New text is in block style with the document's own indentation and line breaks; inside a flow collection and in
//     JSON it is flow style, in several lines where the JSON is. An empty {} or [] or a null that gets content becomes
//     block style, but not in JSON, and not where {} or [] stands on a line of its own.
//   - An alias that is to have another value is replaced by that value. When the text at an anchor changes, the aliases
//     that keep the old value are replaced by it. A merge key stays as long as all it gives is wanted; keys that differ
//     are written after it, and else it is replaced by what it gave.
//
// The result is decoded and compared before it is given out. With of the same value is the same document.
//
// # Limits
//
// A document of more than MaxDocument bytes, MaxDepth levels or MaxAliased aliased values is refused; lists in block
// style may be larger, as they are split as text. Some YAML is decoded but not edited, With says so: complex keys (? a),
// %TAG directives, the line breaks NEL, LS and PS, keys that are aliases, tags on collections.
//
// Nothing here logs, keeps state or modifies its arguments; documents are immutable and safe for concurrent use.
package manifest
