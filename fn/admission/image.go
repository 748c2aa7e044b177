// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import "strings"

// maxPath is the longest path of a repository in a reference, in bytes.
const maxPath = 255

// isLatest reports whether an image has the tag latest, or neither a tag nor a digest, which means the same. A
// reference that is not valid has no tag at all (source: ParseImageName in pkg/util/parsers of k8s.io/kubernetes, and
// what it calls in github.com/distribution/reference).
func (s Server) isLatest(image string) bool {
	name, digest, digested := strings.Cut(image, "@")
	tag, tagged := "", false
	if slash, colon := strings.LastIndexByte(name, '/'), strings.LastIndexByte(name, ':'); colon > slash {
		name, tag, tagged = name[:colon], name[colon+1:], true
	}
	switch {
	case tagged && tag != "latest", !tagged && digested, digested && !validDigest(digest):
		return false
	case len(name) == 64 && isHex(name) && !tagged:
		return false // the id of an image, which is no name
	}
	return s.validName(name)
}

// validName reports whether a repository's name is valid: perhaps a registry, and a path of lower case.
func (s Server) validName(name string) bool {
	first, rest, more := strings.Cut(name, "/")
	if !more {
		return validPath("library/" + name)
	}
	capitals := strings.ToLower(first) != first && s.isRuleInEffect(registryNames)
	if first != "localhost" && !strings.ContainsAny(first, ".:") && !capitals {
		return validPath(name) // no registry
	}
	if validRegistry(first) && (first[0] != '[' || s.isRuleInEffect(registryNames)) {
		if (first == "docker.io" || first == "index.docker.io") && !strings.Contains(rest, "/") {
			rest = "library/" + rest
		}
		return validPath(rest)
	}
	return validPath(name)
}

// validPath reports whether the parts of a path are letters and digits in lower case with single separators between
// them: a period, one or two underscores, or hyphens.
func validPath(path string) bool {
	if len(path) > maxPath {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if !validPart(part) {
			return false
		}
	}
	return true
}

func validPart(part string) bool {
	if part == "" || !isLowerOrDigit(part[0]) || !isLowerOrDigit(part[len(part)-1]) {
		return false
	}
	for i := 0; i < len(part); {
		if isLowerOrDigit(part[i]) {
			i++
			continue
		}
		end := i
		for end < len(part) && !isLowerOrDigit(part[end]) {
			end++
		}
		separator := part[i:end]
		switch {
		case separator == ".", separator == "_", separator == "__", strings.Trim(separator, "-") == "":
		default:
			return false
		}
		i = end
	}
	return true
}

// validRegistry reports whether a text is a host, perhaps with a port.
func validRegistry(s string) bool {
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		if host, port = s[:i], s[i+1:]; port == "" || strings.Trim(port, "0123456789") != "" {
			return false
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		return ok && inner != "" && strings.Trim(inner, "0123456789abcdefABCDEF:") == ""
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; !isLowerOrDigit(c) && c != '-' && (c < 'A' || c > 'Z') {
				return false
			}
		}
	}
	return true
}

// validDigest reports whether a digest is ALGORITHM:HEX of one of the known algorithms.
func validDigest(s string) bool {
	algorithm, sum, _ := strings.Cut(s, ":")
	return isHex(sum) && len(sum) == map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}[algorithm]
}

func isHex(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdef") == "" }

func isLowerOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
