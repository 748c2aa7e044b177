// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/event"
)

// TestUnsignedSendersCostLittle holds many deliveries of the largest size without a valid signature just before their ends. They
// cost the daemon at most 64 MiB, and who sends rightly is served as soon as they are cut off.
func TestUnsignedSendersCostLittle(t *testing.T) {
	senders := 60
	if full() {
		senders = 250
	}
	c := chaosOn(prepareAlone(t, nil), size{}, 1)
	c.write(c.c.Pipelines+"/app0.yaml", pipelineYAML("app0", c.repository.URL))
	p := c.serve(c.c, false)
	p.mu.Lock()
	dir := fmt.Sprintf("/proc/%d", p.command.Process.Pid)
	p.mu.Unlock()
	if status, err := post(c.address, []byte("{}"), "x"); err != nil || status == http.StatusUnauthorized {
		t.Fatalf("a signed delivery: %d, %v", status, err)
	}
	// The peak is counted from here on.
	if err := os.WriteFile(dir+"/clear_refs", []byte("5"), 0o600); err != nil {
		t.Skipf("the system does not let a test count the peak of a process anew: %v", err)
	}
	before := peak(dir)

	body := bytes.Repeat([]byte("x"), event.MaxBody)
	var all sync.WaitGroup
	answers := make(chan int, senders)
	for range senders {
		all.Go(func() { answers <- holdDelivery(t, c.address, body, 2*time.Second) })
	}
	commit := c.repository.Commit("second", map[string]string{"apps/app0/app.yaml": deployment("app0", "image:2")})
	c.hooks = c.address
	c.eventually("the signed delivery to be taken", func() string {
		if status := c.push(commit); status != http.StatusAccepted && status != http.StatusOK {
			return fmt.Sprintf("it is answered with %d", status)
		}
		return ""
	})
	all.Wait()
	close(answers)
	counts := map[int]int{}
	for status := range answers {
		counts[status]++
	}
	after := peak(dir)
	t.Logf("%d senders were answered with %v; the daemon's peak rose from %d to %d MiB", senders, counts, before>>20, after>>20)
	for status := range counts {
		switch status {
		case 0, http.StatusUnauthorized, http.StatusServiceUnavailable, http.StatusRequestTimeout:
		default:
			t.Errorf("a sender without a valid signature was answered with %d", status)
		}
	}
	// With the race detector memory is several times as much.
	if full() && after > before+64<<20 {
		t.Errorf("they cost %d MiB", (after-before)>>20)
	}
	logged, err := os.ReadFile(c.logs)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(logged, []byte(`"remote":"127.0.0.1:`)) {
		t.Error("no address of a refused sender is logged")
	}
}

// holdDelivery sends all of a delivery but its last byte, that byte after a while, and returns the status of the answer, 0 where
// the connection ended without one.
func holdDelivery(t *testing.T, address string, body []byte, hold time.Duration) (status int) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	go func() {
		head := fmt.Sprintf("POST /hook/git HTTP/1.1\r\nHost: h\r\nX-Signature: sha256=%064d\r\nContent-Length: %d\r\n\r\n", 0, len(body))
		if _, err := conn.Write([]byte(head)); err != nil {
			return
		}
		if _, err := conn.Write(body[:len(body)-1]); err != nil {
			return
		}
		time.Sleep(hold)
		_, _ = conn.Write(body[len(body)-1:])
	}()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}
