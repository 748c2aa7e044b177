// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// rule allows or denies connections to the addresses of a prefix.
type rule struct {
	prefix netip.Prefix
	allow  bool
	// kind is what users call such addresses.
	kind string
	// configured rules go before built-in ones of the same length.
	configured bool
}

// builtIn are the rules for addresses that no server of a pipeline has; some of these hand out credentials to any
// client.
var builtIn = slices.Concat(
	rulesAgainstPrefixes("an unspecified", "0.0.0.0/8", "::/128"),
	rulesAgainstPrefixes("a link-local", "169.254.0.0/16", "fe80::/10"),
	rulesAgainstPrefixes("a multicast", "224.0.0.0/4", "ff00::/8"),
	rulesAgainstPrefixes("a broadcast", "255.255.255.255/32"),
	rulesAgainstPrefixes("a cloud metadata", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
		"fd00:ec2::254/128", "fd20:ce::254/128"),
)

// rulesAgainstPrefixes returns rules against prefixes of one kind.
func rulesAgainstPrefixes(kind string, prefixes ...string) []rule {
	out := make([]rule, len(prefixes))
	for i, p := range prefixes {
		out[i] = rule{prefix: netip.MustParsePrefix(p), kind: kind}
	}
	return out
}

// Private is the word for all addresses that are not of the internet: loopback, private networks, carrier-grade NAT,
// unique local addresses, and those reserved for documentation and tests (the IANA special-purpose address registries).
const Private = "private"

var privatePrefixes = []string{
	"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::1/128", "fc00::/7", "fec0::/10", "64:ff9b:1::/48", "100::/64", "2001:db8::/32",
}

// Rules determine which addresses may be connected to. The most specific prefix that contains an address decides;
// if an allowed and a denied one are equal, the denied one wins. The zero value denies link-local, multicast and
// unspecified addresses and those of cloud providers' metadata, and allows all others.
type Rules struct{ configured []rule }

// NewRules returns rules. Elements are addresses, prefixes such as 10.0.0.0/8, or the word of [Private]. The error
// lists the invalid ones.
func NewRules(allow, deny []string) (Rules, error) {
	var r Rules
	var errs []error
	for name, texts := range map[string][]string{"allow": allow, "deny": deny} {
		for i, text := range texts {
			prefixes, err := parsePrefixes(text)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s[%d]: %w", name, i, err))
			}
			kind := "a denied"
			if text == Private {
				kind = "a private"
			}
			for _, p := range prefixes {
				r.configured = append(r.configured,
					rule{prefix: p, allow: name == "allow", kind: kind, configured: true})
			}
		}
	}
	return r, errors.Join(errs...)
}

func parsePrefixes(text string) ([]netip.Prefix, error) {
	if text == Private {
		out := make([]netip.Prefix, len(privatePrefixes))
		for i, p := range privatePrefixes {
			out[i] = netip.MustParsePrefix(p)
		}
		return out, nil
	}
	if address, err := netip.ParseAddr(text); err == nil {
		text = fmt.Sprintf("%s/%d", address.Unmap().WithZone(""), address.Unmap().BitLen())
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return nil, fmt.Errorf("must be an address, a prefix such as 10.0.0.0/8, or %s, found %q", Private, text)
	}
	return []netip.Prefix{p.Masked()}, nil
}

// Check returns "" for an address that may be connected to, and the kind of the address for others, such as "a
// link-local". An IPv4 address embedded in an IPv6 one is checked as well.
func (r Rules) Check(address netip.Addr) (kind string) {
	address = address.WithZone("").Unmap()
	if kind := r.checkOne(address); kind != "" {
		return kind
	}
	for _, inner := range embeddedIPv4Addresses(address) {
		if kind := r.checkOne(inner); kind != "" {
			return kind
		}
	}
	return ""
}

func (r Rules) checkOne(address netip.Addr) string {
	var best rule
	found := false
	for _, one := range slices.Concat(builtIn, r.configured) {
		if !one.prefix.Contains(address) {
			continue
		}
		longer, equal := one.prefix.Bits() > best.prefix.Bits(), one.prefix.Bits() == best.prefix.Bits()
		// Configured rules take precedence over built-in ones, and denials over permissions.
		if !found || longer || equal && (one.configured && !best.configured || one.configured == best.configured && !one.allow) {
			best, found = one, true
		}
	}
	if !found || best.allow {
		return ""
	}
	return best.kind
}

// embeddedIPv4Addresses returns the IPv4 addresses that an IPv6 address may lead to: by NAT64 (RFC 6052, RFC 8215),
// 6to4 (RFC 3056), Teredo (RFC 4380, obfuscated), ISATAP (RFC 5214), and as an IPv4-compatible address (RFC 4291).
func embeddedIPv4Addresses(address netip.Addr) []netip.Addr {
	if !address.Is6() {
		return nil
	}
	b := address.As16()
	last := [4]byte(b[12:16])
	in := func(prefix string) bool { return netip.MustParsePrefix(prefix).Contains(address) }
	switch {
	case in("64:ff9b::/96"), in("64:ff9b:1::/48"):
		return []netip.Addr{netip.AddrFrom4(last)}
	case in("::/96") && !address.IsUnspecified() && !address.IsLoopback():
		return []netip.Addr{netip.AddrFrom4(last)}
	case in("2002::/16"):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case in("2001::/32"):
		for i := range last {
			last[i] ^= 0xff
		}
		return []netip.Addr{netip.AddrFrom4(last)}
	case [4]byte(b[8:12]) == [4]byte{0, 0, 0x5e, 0xfe}, [4]byte(b[8:12]) == [4]byte{2, 0, 0x5e, 0xfe}:
		return []netip.Addr{netip.AddrFrom4(last)}
	}
	return nil
}
