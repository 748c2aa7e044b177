// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/istio/release"
)

// TestTextOfMessages checks texts as an istiod of 1.31.1 prints them, and that those which differ between builds are known.
func TestTextOfMessages(t *testing.T) {
	number, path := "15020", "/etc/\"ca\"\\\n\té.pem"
	tests := map[string]struct {
		message  Message
		want     string
		unstable bool
	}{
		"wrapper":             {&Int32Value{Value: 2}, "value:2", false},
		"wrapper of nothing":  {&BoolValue{}, "", false},
		"none":                {(*Int32Value)(nil), "<nil>", false},
		"whole seconds":       {&Duration{Seconds: 45}, "seconds:45", false},
		"parts of a second":   {&Duration{Seconds: 1, Nanos: 5}, "seconds:1 nanos:5", true},
		"message in it":       {&LocalityLoadBalancerSetting{Enabled: &BoolValue{Value: true}}, "enabled:{value:true}", false},
		"empty one in it":     {&LocalityLoadBalancerSetting{Enabled: &BoolValue{}}, "enabled:{}", false},
		"enumeration":         {&OutboundTrafficPolicy{Mode: OutboundTrafficPolicyModeAllowAny}, "mode:ALLOW_ANY", false},
		"string":              {&Zipkin{Address: path}, `address:"/etc/\"ca\"\\\n\té.pem"`, false},
		"control character":   {&Zipkin{Address: "a\x01\x7f"}, `address:"a\x01\x7f"`, false},
		"list of one":         {&DefaultProviders{Tracing: []string{"a"}}, `tracing:"a"`, false},
		"list of two":         {&DefaultProviders{Tracing: []string{"a", number}}, `tracing:"a" tracing:"15020"`, true},
		"map":                 {&ProxyConfig{ProxyMetadata: map[string]string{"A": "b"}}, "proxy_metadata:{…}", true},
		"object without keys": {Struct{}, "", false},
		"object":              {Struct{"a": 1}, "fields:{…}", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(test.message); got != test.want {
				t.Errorf("have %q, want %q", got, test.want)
			}
			if err := CheckText(test.message); (err != nil) != test.unstable {
				t.Errorf("the error is %v, want one: %t", err, test.unstable)
			}
		})
	}
}

// TestJSONOfProtobufsOwnMessages checks the JSON of durations and wrappers: Go's of the struct, and that of protobuf.
func TestJSONOfProtobufsOwnMessages(t *testing.T) {
	r := release.Newest(31)
	for want, m := range map[string]Message{
		`{"seconds":45} "45s"`: &Duration{Seconds: 45},
		`{"value":2} 2`:        &Int32Value{Value: 2},
		`{"value":true} true`:  &BoolValue{Value: true},
		`{"value":7} "7"`:      &Int64Value{Value: 7},
	} {
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		proto, err := ProtoToJSON(m, r)
		if got := string(text) + " " + proto; err != nil || got != want {
			t.Errorf("have %s, %v, want %s", got, err, want)
		}
	}
	if text, err := json.Marshal(&ProxyConfig{DrainDuration: &Duration{Seconds: 3}}); err != nil || !strings.Contains(string(text), `"drainDuration":"3s"`) {
		t.Errorf("have %s, %v", text, err)
	}
}
