// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

// setContainerProbes sets some of a container's probes.
func setContainerProbes(d draw, c object) {
	for _, name := range pickSome(d, 0.3, "livenessProbe", "readinessProbe", "startupProbe") {
		c[name] = drawProbe(d, name)
	}
}

func drawProbe(d draw, name string) object {
	p := drawProbeAction(d)
	for _, field := range pickSome(d, 0.2, "initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold") {
		p[field] = d.intBetween(0, 30)
	}
	if d.happensWithProbability(0.1) {
		p["successThreshold"] = 1
		if name == "readinessProbe" {
			p["successThreshold"] = d.intBetween(0, 3)
		}
	}
	if d.happensWithProbability(0.05) && name != "readinessProbe" {
		p["terminationGracePeriodSeconds"] = d.intBetween(1, 30)
	}
	return p
}

// drawProbeAction makes what a probe does.
func drawProbeAction(d draw) object {
	port := pick[any](d, 80, 8080, 9090, "http0", "p1", "grpc0", "nowhere", 15020, 15021, "8080")
	switch d.IntN(10) {
	case 0, 1, 2, 3:
		return object{"httpGet": drawHTTPGet(d, port)}
	case 4, 5:
		t := object{"port": port}
		if d.happensWithProbability(0.15) {
			t["host"] = "10.0.0.1"
		}
		return object{"tcpSocket": t}
	case 6, 7:
		g := object{"port": pick(d, 8080, 50051)}
		if d.happensWithProbability(0.4) {
			g["service"] = pick(d, "", "shop.Cart")
		}
		return object{"grpc": g}
	case 8:
		return object{"exec": object{"command": jsonList("cat", "/tmp/ready")}}
	}
	return object{"httpGet": object{"port": port}}
}

func drawHTTPGet(d draw, port any) object {
	h := object{"port": port}
	if d.happensWithProbability(0.7) {
		h["path"] = pick(d, "/", "/healthz", "health?x=1&y=<2>", "/a b", "")
	}
	if d.happensWithProbability(0.25) {
		h["scheme"] = pick(d, "HTTP", "HTTPS", "http")
	}
	if d.happensWithProbability(0.15) {
		h["host"] = pick(d, "10.0.0.1", "localhost", "www.example.com")
	}
	if d.happensWithProbability(0.2) {
		h["httpHeaders"] = jsonList(object{"name": "X-A", "value": pick(d, "1", "<&>", "")})
	}
	return h
}
