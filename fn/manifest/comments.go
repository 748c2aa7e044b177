// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// Comments returns the comments of the document, each from its # to the end of its line. What looks like one in a scalar is none. The
// error says why the text cannot be read.
func (d *Document) Comments() ([]string, error) {
	root, err := d.parseNodes()
	if err != nil {
		return nil, err
	}
	var comments []string
	at := 0
	between := func(end int) { // what stands between two scalars
		for at < end {
			i := strings.IndexByte(d.text[at:end], '#')
			if i < 0 {
				break
			}
			if at += i; at > 0 && !isBlankOrEnd(d.text[at-1]) {
				at++ // in an anchor, say
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
		if n.style == literalStyle || n.style == foldedStyle { // a comment may stand behind its indicator
			at = n.start
			between(lineEnd(d.text, n.start))
		}
		at = max(at, n.end)
	})
	between(len(d.text))
	return comments, nil
}
