// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/prerig/prerig/fn/strict"
)

// ImageTypes are the types of images that Istio publishes. Source: KnownImageTypes in pkg/kube/inject of Istio 1.32.
var ImageTypes = []string{"default", "debug", "distroless"}

// WantImageType describes what IsImageType accepts.
const WantImageType = "default, debug or distroless, or a type of images of your own"

// IsImageType rejects what is almost a type of Istio's images. Distributions of others have their own.
func IsImageType(s string) bool {
	if slices.Contains(ImageTypes, s) {
		return true
	}
	return IsTag(s) && strict.Closest(s, ImageTypes) == ""
}

// WantRegexp describes what IsRegexp accepts.
const WantRegexp = "a regular expression of RE2 with its brackets closed"

// IsRegexp reports whether Envoy accepts a regular expression. The agent replaces {pod_ip}.
func IsRegexp(s string) bool {
	_, err := regexp.Compile(strings.ReplaceAll(s, "{pod_ip}", "10.0.0.1"))
	return err == nil
}

// IsStatTag reports whether a text can be a tag of statistics: it becomes part of a regular expression of Envoy.
func IsStatTag(s string) bool {
	return s != "" && !strings.ContainsAny(s, " \t\r\n=()[]{}*+?|\\^$\"';,")
}

// IsHistogramBuckets reports whether a text is JSON with the bounds of buckets by the prefix of a name. Envoy wants bounds that are
// above 0 and different; their order has no meaning.
func IsHistogramBuckets(s string) bool {
	var byPrefix map[string][]float64
	if json.Unmarshal([]byte(s), &byPrefix) != nil {
		return false
	}
	for _, bounds := range byPrefix {
		sorted := slices.Sorted(slices.Values(bounds))
		if len(sorted) > 0 && sorted[0] <= 0 || len(slices.Compact(sorted)) != len(bounds) {
			return false
		}
	}
	return true
}

// IsGoDuration reports whether a text is a duration of Go that is not negative, such as 5s.
func IsGoDuration(s string) bool {
	d, err := time.ParseDuration(s)
	return err == nil && d >= 0
}

// IsObjectName reports whether an object of Kubernetes such as a ConfigMap may have a name.
func IsObjectName(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }

// IsNamespace reports whether a namespace may have a name.
func IsNamespace(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

// IsTrustDomain reports whether istiod accepts a trust domain. Source: ValidateTrustDomain in pkg/config/validation of Istio 1.32.
func IsTrustDomain(s string) bool { return IsDomain(s) }

// IsListeningPort reports whether a text is a port from 1 to 65535.
func IsListeningPort(s string) bool {
	return IsPort(s) && strings.Trim(strings.TrimSpace(s), "0") != ""
}

// IsAddressWithPort reports whether a text is HOST:PORT.
func IsAddressWithPort(s string) bool {
	at := strings.LastIndexByte(s, ':')
	if at < 0 || !IsListeningPort(s[at+1:]) {
		return false
	}
	host := s[:at]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return IsDomainOrIP(host[1 : len(host)-1])
	}
	return !strings.Contains(host, ":") && IsDomainOrIP(host)
}

// IsStatusCode reports whether a text is a status of HTTP.
func IsStatusCode(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 100 && n <= 599
}
