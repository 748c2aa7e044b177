// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// Comments returns the comments of the document, each from its # to the end of its line. A # inside a scalar starts
// no comment. It returns an error if the text cannot be read.
func (d *Document) Comments() ([]string, error) {
	root, err := d.parseNodes()
	if err != nil {
		return nil, err
	}
	var comments []string
	at := 0
	between := func(end int) { // the text between two scalars
		for at < end {
			i := strings.IndexByte(d.text[at:end], '#')
			if i < 0 {
				break
			}
			if at += i; at > 0 && !isBlankOrEnd(d.text[at-1]) {
				at++ // such as one in an anchor
				continue
			}
			stop := lineEnd(d.text, at)
			comments = append(comments, strings.TrimSuffix(d.text[at:stop], "\r"))
			at = stop
		}
	}
	walkNodes(root, func(n *yamlNode) {
		if n.isCollection() || n.start == n.end {
			return
		}
		between(n.start)
		if n.style == literalStyle || n.style == foldedStyle { // a comment may follow its indicator
			at = n.start
			between(lineEnd(d.text, n.start))
		}
		at = max(at, n.end)
	})
	between(len(d.text))
	return comments, nil
}
