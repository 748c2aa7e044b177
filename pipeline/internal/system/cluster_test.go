// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// member is a NATS server of a cluster.
type member struct {
	Name, Dir            string
	Port, Routes, Health int
	All                  []int // ports for routes
}

// node is a NATS server in a process of its own that tests kill. Its configuration is the variable PRERIG_TEST_NATS.
func node() int {
	var m member
	if err := json.Unmarshal([]byte(os.Getenv("PRERIG_TEST_NATS")), &m); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	const host = "127.0.0.1"
	var routes []*url.URL
	for _, port := range m.All {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("%s:%d", host, port)})
	}
	s, err := server.NewServer(&server.Options{
		ServerName: m.Name, Host: host, Port: m.Port, HTTPHost: host, HTTPPort: m.Health, JetStream: true, StoreDir: m.Dir,
		Cluster: server.ClusterOpts{Name: "c", Host: host, Port: m.Routes}, Routes: routes, NoSigs: true, NoLog: true,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	go s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		return 1
	}
	fmt.Println("ready")
	s.WaitForShutdown()
	return 0
}

// startNATS starts a NATS server in this process, for daemons and workers that do not embed one, and returns its URL.
func startNATS(t *testing.T) string {
	t.Helper()
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	go nats.Start()
	t.Cleanup(func() { nats.Shutdown(); nats.WaitForShutdown() })
	if !nats.ReadyForConnections(30 * time.Second) {
		t.Fatal("the NATS server did not start")
	}
	return nats.ClientURL()
}

// nodes are a cluster of three.
type nodes struct {
	t         *testing.T
	members   []member
	processes []*process
	urls      string
}

func cluster(t *testing.T) *nodes {
	t.Helper()
	ports := freePorts(t, 9)
	n := &nodes{t: t}
	var urls []string
	for i := range 3 {
		n.members = append(n.members, member{
			Name: fmt.Sprintf("n%d", i), Dir: t.TempDir(), Port: ports[i], Routes: ports[3+i], Health: ports[6+i], All: ports[3:6],
		})
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	n.urls = strings.Join(urls, ",")
	for _, m := range n.members {
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		n.processes = append(n.processes, supervise(t, filepath.Join(t.TempDir(), "log"), []string{"PRERIG_TEST_NATS=" + string(text)}))
	}
	for i := range n.members {
		if problem := n.unhealthy(i, time.Minute); problem != "" {
			t.Fatalf("the cluster did not form: %s", problem)
		}
	}
	return n
}

// unhealthy waits until a member has caught up with the others; "" means that it has.
func (n *nodes) unhealthy(i int, longest time.Duration) (problem string) {
	for deadline := time.Now().Add(longest); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", n.members[i].Health))
		if err != nil {
			problem = err.Error()
			continue
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		problem = string(text)
		if err == nil && resp.StatusCode == http.StatusOK {
			return ""
		}
	}
	return fmt.Sprintf("%s is not healthy: %s", n.members[i].Name, problem)
}

// whole waits until all members have caught up: another one that went before would take the majority away.
func (n *nodes) whole() {
	for i := range n.members {
		if problem := n.unhealthy(i, 2*time.Minute); problem != "" {
			n.t.Error(problem)
		}
	}
}

// losing kills one member after the other until stop is closed, each once the cluster is whole again and was for a while,
// which it is in the end, too.
func (n *nodes) losing(stop <-chan struct{}) (lost int) {
	for i := rand.IntN(3); ; i = (i + 1) % 3 {
		select {
		case <-stop:
			return lost
		case <-time.After(time.Second + rand.N(4*time.Second)):
		}
		p := n.processes[i]
		p.hold(true)
		if p.kill() {
			lost++
		}
		select {
		case <-stop:
		case <-time.After(time.Second + rand.N(4*time.Second)):
		}
		p.hold(false)
		if !p.awaitUp(time.Minute) {
			n.t.Errorf("%s did not come up", n.members[i].Name)
		}
		n.whole()
	}
}

// consumers is what each member knows of the consumers.
func (n *nodes) consumers() string {
	var out strings.Builder
	for _, m := range n.members {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/jsz?consumers=true", m.Health))
		if err != nil {
			fmt.Fprintf(&out, "%s: %v\n", m.Name, err)
			continue
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Fprintf(&out, "%s: %s %v\n", m.Name, text, err)
	}
	return out.String()
}

// tail returns the last bytes of a file.
func tail(file string, n int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-n):])
}

// patientFor is how long senders of webhooks wait for an answer: GitHub and GitLab do ten seconds.
const patientFor = 10 * time.Second

// startsIn is how long a daemon that was killed may take until its address is open. It runs from then on.
const startsIn = 3 * time.Second

// senders are many that do not wait for each other, and count what became of the events that they sent to a daemon that
// ran, and was not killed before it could answer.
type senders struct {
	chaos  *chaos
	daemon *process
	group  sync.WaitGroup

	mu             sync.Mutex
	told, answered int
	missed         []string
	longest        time.Duration
}

func (s *senders) send(commit string) {
	s.group.Go(func() {
		begin, before := time.Now(), s.daemon.lastStruck()
		status := s.chaos.tell(commit)
		took := time.Since(begin)
		s.mu.Lock()
		defer s.mu.Unlock()
		if begin.Sub(before) < startsIn || s.daemon.lastStruck() != before {
			return
		}
		s.told++
		if status == http.StatusAccepted && took <= patientFor {
			s.answered, s.longest = s.answered+1, max(s.longest, took)
		} else {
			s.missed = append(s.missed, fmt.Sprintf("%d after %s", status, took.Round(time.Millisecond)))
		}
	})
}

// TestTwoWorkersAndAClusterThatLosesNodes has a planner, two workers and three NATS servers, all of which are killed, the
// servers one at a time. A cluster is there for not being missed then: what is sent meanwhile must be stored.
func TestTwoWorkersAndAClusterThatLosesNodes(t *testing.T) {
	c := newChaos(t, sized(size{12, 4, 2}))
	nats := cluster(t)
	planner := *c.c
	planner.NATS.URL, planner.NATS.Replicas, planner.Workers = nats.urls, 3, 0
	s := &senders{chaos: c, daemon: c.serve(&planner, false)}
	for i := range 2 {
		worker := planner
		worker.Workers, worker.State = 1, filepath.Join(t.TempDir(), fmt.Sprint(i))
		c.serve(&worker, true)
	}
	c.pace, c.sending = time.Second, s.send
	if !full() {
		c.pace = 2 * time.Second
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of what all processes logged, and what the servers know of their consumers:\n%s\n%s", tail(c.logs, 16<<10), nats.consumers())
		}
	})
	stop := make(chan struct{})
	var group sync.WaitGroup
	lost := 0
	group.Go(func() { lost = nats.losing(stop) })
	c.quiet = sync.OnceFunc(func() { s.group.Wait(); close(stop); group.Wait() })
	defer c.quiet()
	c.run()
	t.Logf("NATS servers were killed %d times; of %d events to a daemon that ran, %d were stored within %s, the slowest of them after %s; others were answered: %v",
		lost, s.told, s.answered, patientFor, s.longest.Round(time.Millisecond), s.missed)
	if lost == 0 {
		t.Error("no NATS server was killed")
	}
	// A small test may be hit by an election that needs a second vote, and then by several events at once; and on a machine that does
	// other things each takes longer. Idle machines miss less than a tenth.
	allowed := s.told / 3
	if least := c.size.pushes / 6; s.told < least || len(s.missed) > allowed {
		t.Errorf("%d of %d events to a daemon that ran were not stored in time, want at most %d, of at least %d", len(s.missed), s.told, allowed, least)
	}
}
