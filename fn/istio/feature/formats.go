// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// What the formats of settings are called in messages.
const (
	WantPort  = "a port"
	WantPorts = "ports separated by commas"
	WantCIDRs = "IP ranges (CIDR) separated by commas"
)

// IsPort reports whether a text is a port, or 0.
func IsPort(s string) bool {
	_, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
	return err == nil
}

// IsCIDR reports whether a text is a range of addresses.
func IsCIDR(s string) bool {
	_, err := netip.ParsePrefix(strings.TrimSpace(s))
	return err == nil
}

// ListOf checks a list with commas, which may be empty.
func ListOf(one func(string) bool) func(string) bool {
	return func(s string) bool {
		return strings.TrimSpace(s) == "" || !slices.ContainsFunc(strings.Split(s, ","), func(e string) bool { return !one(e) })
	}
}

// OrAll also accepts *.
func OrAll(other func(string) bool) func(string) bool {
	return func(s string) bool { return s == "*" || other(s) }
}

// The grammar of names of images: github.com/distribution/reference. The host may have capital letters.
const (
	imageHost  = `(?:(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?`
	imagePath  = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*`
	imageTag   = `[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}`
	imageSHA   = `@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}`
	domainName = `[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*\.?`
)

var (
	imageName   = lazyregexp.New(`^(?:` + imageHost + `/)?` + imagePath + `(?::` + imageTag + `)?(?:` + imageSHA + `)?$`)
	hubName     = lazyregexp.New(`^(?:` + imageHost + `|(?:` + imageHost + `/)?` + imagePath + `)$`)
	tagName     = lazyregexp.New(`^` + imageTag + `(?:` + imageSHA + `)?$`)
	domain      = lazyregexp.New(`^` + domainName + `$`)
	labelValue  = lazyregexp.New(`^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
	placeholder = lazyregexp.New(`\$\{|\$\(|\{\{|%[A-Za-z_]+%|<[A-Za-z_]`)
)

// IsImage reports whether a runtime accepts a text as the name of an image.
func IsImage(s string) bool { return imageName.MatchString(s) }

// IsHub reports whether a text can stand before the name of an image and a slash.
func IsHub(s string) bool { return hubName.MatchString(s) }

// IsTag reports whether a text is the tag of an image, with or without a digest.
func IsTag(s string) bool { return tagName.MatchString(s) }

// IsDomain reports whether a text is a domain of DNS.
func IsDomain(s string) bool { return len(s) <= 253 && domain.MatchString(s) }

// IsDomainOrIP reports whether a text is a host without a port.
func IsDomainOrIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil || IsDomain(s)
}

// IsLabelValue reports whether a label may have a value.
func IsLabelValue(s string) bool { return labelValue.MatchString(s) }

// HasPlaceholder reports whether a text has a part that another tool replaces.
func HasPlaceholder(s string) bool { return placeholder.MatchString(s) }

// ImageProblem returns what is wrong with the name of an image, with the right one where it is known; "" for a right one, and for one
// that another tool may replace.
func ImageProblem(s string) string {
	fixed := strings.TrimSpace(s)
	switch {
	case s == "" || IsImage(s) || HasPlaceholder(s):
		return ""
	case IsImage(fixed):
		return "begins or ends with a space; write " + fixed
	case strings.ContainsAny(fixed, " \t\r\n"):
		return "has a space in it"
	}
	for _, scheme := range []string{"https://", "http://", "docker://"} {
		if rest, found := strings.CutPrefix(s, scheme); found {
			return "begins with " + scheme + "; write " + rest
		}
	}
	switch {
	case strings.Contains(s, "://"):
		return "" // of a tool that builds images
	case strings.Contains(s, "//"):
		return "has two slashes in a row; write " + strings.ReplaceAll(s, "//", "/")
	case IsImage(s[:len(s)-1]):
		return "ends with " + s[len(s)-1:] + "; write " + s[:len(s)-1]
	case IsImage(strings.ToLower(s)) && !hasConstant(s):
		return "has capital letters; write " + strings.ToLower(s)
	case strings.Count(s[strings.LastIndex(s, "/")+1:], ":") > 1 && !strings.Contains(s, "@"):
		return "has two tags"
	}
	return ""
}

// hasConstant reports whether a name has a word of capital letters, such as PROJECT_ID: people replace it.
func hasConstant(s string) bool { return constant.MatchString(s) }

var constant = lazyregexp.New(`[A-Z][A-Z0-9_]{2,}`)
