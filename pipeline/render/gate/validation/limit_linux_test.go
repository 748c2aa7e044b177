// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain is also the program, one that takes 4 GB for an object that is named large.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "eat" {
		eat()
		return
	}
	if len(os.Args) == 5 && os.Args[1] == "probe" {
		probe(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	os.Exit(m.Run())
}

var eaten [][]byte

func eat() {
	fmt.Printf("{\"protocol\":%d}\n", protocol)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var request message
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			panic(err)
		}
		if request.Object["name"] == "slow" {
			time.Sleep(300 * time.Millisecond)
		}
		for range 40 {
			if request.Object["name"] != "large" {
				break
			}
			block := make([]byte, 100<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			eaten = append(eaten, block)
		}
		fmt.Printf("{\"id\":%d,\"known\":true}\n", request.ID)
	}
}

// TestAnObjectTakesNoMoreMemoryThanTheProgramMay: the objects are those of sources that are not trusted, and the memory is
// that of the machine or of the daemon's container.
func TestAnObjectTakesNoMoreMemoryThanTheProgramMay(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var requests []Request
	for _, name := range []string{"small", "large", "small"} {
		requests = append(requests, Request{Operation: Create, Object: map[string]any{"name": name}})
	}
	answers, err := Program{Command: []string{self, "eat"}}.Ask(context.Background(), requests)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if large := i == 1; a.Known == large || (a.Error != "") != large {
			t.Errorf("object %d: %+v", i, a)
		}
	}
}

// TestSlowObjectsTogetherAreBounded: each of many objects takes less time than one may, and all together more than they may.
func TestSlowObjectsTogetherAreBounded(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var requests []Request
	for range 1000 {
		requests = append(requests, Request{Operation: Create, Object: map[string]any{"name": "slow"}})
	}
	began := time.Now()
	_, err = Program{Command: []string{self, "eat"}, within: 2 * time.Second}.Ask(context.Background(), requests)
	if err == nil || !strings.Contains(err.Error(), "all objects together") || time.Since(began) > time.Minute {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}
