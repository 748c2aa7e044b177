// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package egress_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/process/egress"
)

// What an address is written as, and what it leads to, changes nothing about whether it is refused.
func TestAddressesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		allow, deny []string
		// refused and allowed are addresses.
		refused, allowed string
	}{
		"by default": {nil, nil,
			"169.254.169.254 169.254.0.1 0.0.0.0 0.1.2.3 224.0.0.1 239.255.255.255 255.255.255.255 100.100.100.200 168.63.129.16 " +
				"192.0.0.192 :: fe80::1 fe80::1%eth0 ff02::1 fd00:ec2::254 fd20:ce::254 ::ffff:169.254.169.254 ::169.254.169.254 " +
				"64:ff9b::a9fe:a9fe 64:ff9b:1::a9fe:a9fe 2002:a9fe:a9fe:: 2001:0:1::5601:5601 2001:db8::5efe:a9fe:a9fe 2001:db8::200:5efe:a9fe:a9fe",
			"127.0.0.1 ::1 10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 fd12::1 8.8.8.8 2606:4700::1111 64:ff9b::808:808 ::ffff:10.0.0.1"},
		"private": {nil, []string{"private"},
			"127.0.0.1 127.9.9.9 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 100.127.255.255 198.18.0.1 192.0.2.1 240.0.0.1 ::1 fd12::1 " +
				"fec0::1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::10.0.0.1 64:ff9b::a00:1 64:ff9b:1::808:808 2002:a00:1:: 169.254.169.254 fe80::1",
			"8.8.8.8 172.15.255.255 172.32.0.1 100.63.255.255 100.128.0.1 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::"},
		"private, and some that are ours": {[]string{"10.20.0.0/16", "fd12:3456::/32", "10.9.9.9"}, []string{"private", "10.20.30.0/24"},
			"10.1.2.3 10.20.30.1 10.9.9.8 fd13::1 127.0.0.1", "10.20.0.1 10.9.9.9 fd12:3456::1 64:ff9b::a14:1"},
		"all of the world allowed, and yet no metadata": {[]string{"0.0.0.0/0", "::/0"}, nil, "169.254.169.254 fe80::1 168.63.129.16", "10.0.0.1 8.8.8.8 ::1"},
		"metadata that somebody wants":                  {[]string{"169.254.169.254"}, nil, "169.254.169.253 fe80::1", "169.254.169.254 ::ffff:169.254.169.254"},
		"the word in allow":                             {[]string{"private"}, []string{"0.0.0.0/0", "::/0"}, "8.8.8.8 2606:4700::1111 169.254.169.254", "10.0.0.1 ::1"},
		"the same in both":                              {[]string{"10.0.0.0/8"}, []string{"10.0.0.0/8"}, "10.0.0.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := egress.NewRules(c.allow, c.deny)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range strings.Fields(c.refused) {
				if kind := rules.Check(netip.MustParseAddr(text)); !strings.HasPrefix(kind, "a") {
					t.Errorf("%s is allowed (%q)", text, kind)
				}
			}
			for _, text := range strings.Fields(c.allowed) {
				if kind := rules.Check(netip.MustParseAddr(text)); kind != "" {
					t.Errorf("%s is refused as %s address", text, kind)
				}
			}
		})
	}
}

func TestRulesThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"", "example.com", "10.0.0.0/33", "10.0.0", "Private", "::ffff:10.0.0.0/104"} {
		if _, err := egress.NewRules([]string{"10.0.0.1", text}, nil); err == nil || !strings.HasPrefix(err.Error(), "allow[1]: must be") {
			t.Errorf("%q: got %v", text, err)
		}
		if _, err := egress.NewRules(nil, []string{text}); err == nil || !strings.HasPrefix(err.Error(), "deny[0]: must be") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
