// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package review writes a change of pipelines as a reviewer reads it: the body of a pull request, in Markdown. It takes values and
// returns text; the same values give the same text.
//
// # What it says, the most important first
//
// How many objects change; why the result would be refused; what is deleted, with what goes with it; new findings; what the source
// changed, each change once for all objects that have it; what the injection changed, apart from that; requests and limits of proxies
// and applications; images that moved; the sources and the command that gives the same again.
//
// An object is compared with the one of the same group, kind, namespace and name, in whatever file. What the source changed is the
// difference of the two without their injection, as the engine takes it out; what the injection changed are those lines of the whole
// difference that the injection has made. Values of Secrets are hidden, and encrypted objects are only named.
//
// # What others have written
//
// Names, annotations, commit subjects and lines of manifests can be meant for the host and not for the reader. They are shown in code
// spans and fenced blocks that are longer than any row of backticks in them, never at the beginning of a line, with characters that
// would not be seen written out (<U+202E>), and long ones cut. An invisible word joiner stands between a word that closes issues and the
// issue, as hosts look for these in the raw text, too. The text has no HTML and no link but to Change.Whole.
//
// # Limits
//
// Where a host's limit leaves no room for all, whole sections are left out, or the lines of a change and not its title, the least
// important first, and the body says which.
package review
