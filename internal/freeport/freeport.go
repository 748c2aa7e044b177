// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package freeport finds ports for servers of tests, demos and benchmarks that must know their address before they listen.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports are below those that systems assign to outgoing connections and to listeners on port 0 (32768 to 60999 on Linux): such a
// connection of another program would take the port before the server listens.
const (
	first = 10_000
	end   = 32_000
)

// Find returns n different ports of a host on which no program listens.
func Find(host string, n int) ([]int, error) {
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		port := first + rand.IntN(end-first)
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			if tries > 100 {
				return nil, fmt.Errorf("looking for a free port: %w", err)
			}
			continue
		}
		defer listener.Close() // A port that is still open is not found twice.
		ports = append(ports, port)
	}
	return ports, nil
}

// Address returns an address on loopback, as HOST:PORT, on which no program listens.
func Address() (string, error) {
	ports, err := Find("127.0.0.1", 1)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0]), nil
}
