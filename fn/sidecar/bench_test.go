// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import "testing"

// BenchmarkInject injects a ready policy's sidecar into a pod, with its record.
func BenchmarkInject(b *testing.B) {
	for _, name := range []string{"cloud-sql-proxy", "fluent-bit"} {
		b.Run(name, func(b *testing.B) {
			s := compiled(b, "{builtIn: "+name+"}")
			req := request(b, "{metadata: {annotations: {cloud-sql-proxy.prerig.dev/instances: 'a:b:c'}}, spec: {containers: [{name: app, image: i}]}}")
			b.ReportAllocs()
			for b.Loop() {
				got, err := s.Inject(req)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.NewRecord(1, req.Pod, got.Pod); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
