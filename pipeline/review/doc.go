// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package review renders a change of pipelines for a reviewer: the body of a pull request, in Markdown. It is a
// pure function of its input: the same values yield the same text.
//
// # Content, the most important first
//
// How many objects change; why the result would be rejected; what is deleted, including dependents; new findings;
// what the source changed, each change once for all objects that have it; what the injection changed, apart from
// that; requests and limits of proxies and applications; images that moved; the sources and the command that
// reproduces the result.
//
// An object is compared with the one of the same group, kind, namespace and name, in whatever file. What the source
// changed is the difference of the two without their injection, as the engine removes it; what the injection
// changed are those lines of the whole difference that the injection has made. Values of Secrets are hidden, and
// encrypted objects are only named.
//
// # Text by others
//
// Names, annotations, commit subjects and lines of manifests can be meant for the host and not for the reader. They
// are shown in code spans and fenced blocks that are longer than any row of backticks in them, never at the
// beginning of a line, with invisible characters written out (<U+202E>), and long ones cut. An invisible word
// joiner separates a word that closes issues from the issue, as hosts search for these in the raw text, too. The
// text has no HTML and no link except to Change.Whole.
//
// # Limits
//
// If a host's limit leaves no room for everything, whole sections are omitted, or the lines of a change but not its
// title, the least important first, and the body lists which.
package review
