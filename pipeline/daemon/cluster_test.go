// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// cluster starts three NATS servers that know each other.
func cluster(t *testing.T) (servers []*server.Server, urls string) {
	t.Helper()
	// The ports are held until all are known, so that none comes twice.
	ports := make([]int, 6)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	var routes []*url.URL
	for _, port := range ports[3:] {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	dir := t.TempDir()
	var all []string
	for i := range 3 {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: ports[i], JetStream: true, StoreDir: filepath.Join(dir, fmt.Sprint(i)),
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[3+i]}, Routes: routes, NoSigs: true, NoLog: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, s)
		all = append(all, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	return servers, strings.Join(all, ",")
}

func TestTwoWorkersAndAClusterThatLosesANode(t *testing.T) {
	c := newChaos(t, sized(size{12, 4, 2}, size{300, 20, 30}))
	servers, urls := cluster(t)
	for _, s := range servers {
		go s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	}
	deadline := time.Now().Add(60 * time.Second)
	formed := func(s *server.Server) bool { return len(s.JetStreamClusterPeers()) == 3 } // the leader knows
	for !slices.ContainsFunc(servers, formed) {
		if time.Now().After(deadline) {
			t.Fatal("the cluster did not form")
		}
		time.Sleep(100 * time.Millisecond)
	}
	planner := *c.c
	planner.NATS.URL, planner.NATS.Replicas, planner.Workers = urls, 3, 0
	c.add(&process{config: &planner})
	for i := range 2 {
		worker := planner
		worker.Workers, worker.State = 1, filepath.Join(t.TempDir(), fmt.Sprint(i))
		c.add(&process{worker: true, config: &worker})
	}
	lost := time.AfterFunc(2*time.Second, func() { servers[1].Shutdown() })
	defer lost.Stop()
	c.run()
}
