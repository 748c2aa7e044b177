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

// cluster starts three NATS servers that know each other. A port that somebody else takes meanwhile makes it try again.
func cluster(t *testing.T) (servers []*server.Server, urls string) {
	t.Helper()
	for range 5 {
		servers, urls = members(t)
		if formed(servers) {
			return servers, urls
		}
		for _, s := range servers {
			s.Shutdown()
		}
	}
	t.Fatal("the cluster did not form")
	return nil, ""
}

func formed(servers []*server.Server) bool {
	for _, s := range servers {
		if !s.ReadyForConnections(10 * time.Second) {
			return false
		}
	}
	knowsAll := func(s *server.Server) bool { return len(s.JetStreamClusterPeers()) == 3 } // the leader does
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if slices.ContainsFunc(servers, knowsAll) {
			return true
		}
	}
	return false
}

// members starts three servers on ports that are free now.
func members(t *testing.T) (servers []*server.Server, urls string) {
	t.Helper()
	ports := make([]int, 6)
	listeners := make([]net.Listener, 6)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i], ports[i] = l, l.Addr().(*net.TCPAddr).Port
	}
	var routes []*url.URL
	for _, port := range ports[3:] {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	var all []string
	for i := range 3 {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: ports[i], JetStream: true, StoreDir: t.TempDir(),
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[3+i]}, Routes: routes, NoSigs: true, NoLog: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, s)
		all = append(all, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	for _, l := range listeners {
		l.Close()
	}
	for _, s := range servers {
		go s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	}
	return servers, strings.Join(all, ",")
}

func TestTwoWorkersAndAClusterThatLosesANode(t *testing.T) {
	c := newChaos(t, sized(size{12, 4, 2}, size{300, 20, 30}))
	servers, urls := cluster(t)
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
