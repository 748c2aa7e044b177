// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package defaulter

import (
	"fmt"
	"math/rand/v2"
)

// Generator generates pods in which any field that has a default may be missing, empty, null, the default or
// another value.
type Generator struct {
	rnd *rand.Rand
	// minor is the version of Kubernetes: fields that it does not have are left out.
	minor int
	// rough leaves quantities out that are rounded: the requests of a whole pod are summed up before that in a Pod, and
	// after that in a template.
	rough bool
}

// NewGenerator returns a generator for Kubernetes 1.minor; the same seed makes the same pods.
func NewGenerator(seed uint64, minor int) *Generator {
	return &Generator{rnd: rand.New(rand.NewPCG(seed, seed)), minor: minor} //nolint:gosec // these are no secrets
}

// The first minor versions of Kubernetes that have some fields.
const (
	imageVolumes = 31
	podResources = 32
	fileKeyRefs  = 34
)

// Pod makes the metadata and spec of a pod.
func (g *Generator) Pod() map[string]any {
	resources := map[string]any{}
	if g.minor >= podResources {
		g.rough = true
		g.maybe(resources, "resources", func() any { return g.resources() })
	}
	_, g.rough = resources["resources"]
	spec := map[string]any{"containers": g.containers("app", 1+g.rnd.IntN(3))}
	g.maybe(spec, "initContainers", func() any { return g.containers("init", 1+g.rnd.IntN(2)) })
	g.maybe(spec, "ephemeralContainers", func() any { return g.containers("debug", 1) })
	g.maybe(spec, "volumes", func() any { return g.volumes() })
	g.maybe(spec, "securityContext", g.of(nil, object{}, object{"fsGroup": int64(5)}))
	g.maybe(spec, "restartPolicy", g.of("", "Always", "Never", nil))
	g.maybe(spec, "dnsPolicy", g.of("", "ClusterFirst", "Default", nil))
	g.maybe(spec, "schedulerName", g.of("", "default-scheduler", "mine", nil))
	g.maybe(spec, "terminationGracePeriodSeconds", g.of(int64(0), int64(30), int64(7), int64(-4), nil))
	g.maybe(spec, "enableServiceLinks", g.of(true, false, nil))
	g.maybe(spec, "serviceAccountName", g.of("", "mine", nil))
	g.maybe(spec, "serviceAccount", g.of("", "old", nil))
	g.maybe(spec, "hostNetwork", g.of(true, false, nil))
	g.maybe(spec, "overhead", g.of(object{"cpu": "1000m"}, nil))
	if v, ok := resources["resources"]; ok {
		spec["resources"] = v
	}
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": spec}
}

// object is a map in what a choice offers. What is chosen is copied.
type object map[string]any

// of returns a choice of values.
func (g *Generator) of(values ...any) func() any {
	return func() any {
		v := values[g.rnd.IntN(len(values))]
		if m, ok := v.(object); ok {
			out := map[string]any{}
			for k, e := range m {
				out[k] = e
			}
			return out
		}
		return v
	}
}

// Coin is true half of the time.
func (g *Generator) Coin() bool { return g.rnd.IntN(2) == 0 }

// maybe sets a field half of the time.
func (g *Generator) maybe(m map[string]any, key string, value func() any) {
	if g.rnd.IntN(2) == 0 {
		m[key] = value()
	}
}

var images = []any{
	"", "auto", "nginx", "nginx:latest", "nginx:1.25", "Nginx", "registry.example/a/b", "registry.example:5000/a/b", "registry.example:5000/a/b:v1",
	"a/b@sha256:" + hash, "a/b:latest@sha256:" + hash, "a/b:v1@sha256:" + hash, "a/b@sha256:abc", "a/b@sha257:" + hash, hash, "x/" + hash,
	"a//b", "a/b:", ":latest", "a__b", "a___b", "a-._b", "a--b", "foo_bar:5000/x", "foo.bar_baz/x", "localhost/x", "LOCAL/x", "[::1]:5000/x", "[::1/x",
	"index.docker.io/nginx", "docker.io/Nginx", "registry.example/A:latest", "a b", "a:la-test", "ünix", "a.b/c", "-a.b/c", "a.b-/c", "a.b:x/c", "a.b:/c", "a/b/",
}

// hash is 64 digits in base 16.
const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (g *Generator) containers(name string, n int) []any {
	var out []any
	for i := range n {
		c := map[string]any{"name": fmt.Sprintf("%s-%d", name, i)}
		g.maybe(c, "image", g.of(images...))
		g.maybe(c, "imagePullPolicy", g.of("", "Always", "IfNotPresent", nil))
		g.maybe(c, "terminationMessagePath", g.of("", "/dev/termination-log", "/x", nil))
		g.maybe(c, "terminationMessagePolicy", g.of("", "File", "FallbackToLogsOnError", nil))
		g.maybe(c, "ports", func() any { return g.ports() })
		g.maybe(c, "env", func() any { return g.env() })
		g.maybe(c, "resources", func() any { return g.resources() })
		for _, key := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
			g.maybe(c, key, func() any { return g.probe() })
		}
		g.maybe(c, "lifecycle", func() any { return g.lifecycle() })
		if name == "init" {
			g.maybe(c, "restartPolicy", g.of("Always", nil))
		}
		out = append(out, c)
	}
	return out
}

func (g *Generator) ports() []any {
	var out []any
	for i := range g.rnd.IntN(3) {
		p := map[string]any{"containerPort": int64(8080 + i)}
		g.maybe(p, "protocol", g.of("", "TCP", "UDP", nil))
		g.maybe(p, "hostPort", g.of(int64(0), int64(99), nil))
		g.maybe(p, "name", g.of("http", nil))
		out = append(out, p)
	}
	return out
}

func (g *Generator) env() []any {
	out := []any{map[string]any{"name": "A", "value": "b"}}
	field := map[string]any{"fieldPath": "metadata.name"}
	g.maybe(field, "apiVersion", g.of("", "v1", nil))
	file := map[string]any{"volumeName": "v", "path": "p", "key": "k"}
	g.maybe(file, "optional", g.of(true, false, nil))
	out = append(out, map[string]any{"name": "B", "valueFrom": map[string]any{"fieldRef": field}})
	if g.minor >= fileKeyRefs {
		out = append(out, map[string]any{"name": "C", "valueFrom": map[string]any{"fileKeyRef": file}})
	}
	return out
}

func (g *Generator) resources() any {
	out := map[string]any{}
	for _, key := range []string{"limits", "requests"} {
		g.maybe(out, key, func() any {
			list := map[string]any{}
			g.maybe(list, "cpu", g.of("1000m", "2", int64(1), "0.1", "1.5", "0"))
			if !g.rough {
				g.maybe(list, "ephemeral-storage", g.of("100u", "1.0005"))
			}
			g.maybe(list, "memory", g.of("1Gi", "1024Mi", "128Mi", int64(1024), "1e3"))
			g.maybe(list, "hugepages-2Mi", g.of("4Mi", "2048Ki"))
			g.maybe(list, "example.com/gpu", g.of("1", int64(2)))
			return list
		})
	}
	return g.of(out, nil)()
}

func (g *Generator) probe() any {
	p := map[string]any{}
	for _, key := range []string{"timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"} {
		g.maybe(p, key, g.of(int64(0), int64(1), int64(3), int64(10), nil))
	}
	switch g.rnd.IntN(4) {
	case 0:
		p["httpGet"] = g.httpGet()
	case 1:
		p["tcpSocket"] = map[string]any{"port": "http"}
	case 2:
		grpc := map[string]any{"port": int64(8080)}
		g.maybe(grpc, "service", g.of("", "s", nil))
		p["grpc"] = grpc
	default:
		p["exec"] = map[string]any{"command": []any{"true"}}
	}
	return g.of(p, p, p, nil)()
}

func (g *Generator) httpGet() map[string]any {
	get := map[string]any{"port": int64(8080)}
	g.maybe(get, "path", g.of("", "/", "/ready", nil))
	g.maybe(get, "scheme", g.of("", "HTTP", "HTTPS", nil))
	return get
}

func (g *Generator) lifecycle() any {
	out := map[string]any{}
	g.maybe(out, "preStop", func() any { return map[string]any{"httpGet": g.httpGet()} })
	g.maybe(out, "postStart", func() any { return map[string]any{"exec": map[string]any{"command": []any{"true"}}} })
	return out
}
