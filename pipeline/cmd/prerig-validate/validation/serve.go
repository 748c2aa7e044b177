// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// KubernetesVersion returns the version of the module that answers, such as v1.36.3.
func KubernetesVersion() string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, m := range info.Deps {
			if m.Path == "k8s.io/kubernetes" {
				return m.Version
			}
		}
	}
	return "unknown"
}

// Serve answers the requests of a stream until it ends. The error is about the streams, or that a request took too
// long.
func Serve(in io.Reader, out io.Writer) error {
	silenceLogs()
	debug.SetMemoryLimit(maxMemory)
	reader := bufio.NewReaderSize(in, 64<<10)
	writer := bufio.NewWriterSize(out, 64<<10)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(Greeting{Protocol: Protocol, Kubernetes: KubernetesVersion()}); err != nil {
		return fmt.Errorf("writing the greeting: %w", err)
	}
	var v Validator
	for {
		if reader.Buffered() == 0 {
			if err := writer.Flush(); err != nil {
				return fmt.Errorf("writing answers: %w", err)
			}
		}
		line, tooLong, err := readLine(reader)
		if errors.Is(err, io.EOF) {
			return writer.Flush()
		}
		if err != nil {
			return fmt.Errorf("reading requests: %w", err)
		}
		answer, err := answerInTime(&v, line, tooLong)
		if err := encoder.Encode(answer); err != nil {
			return fmt.Errorf("writing answers: %w", err)
		}
		if err != nil {
			return errors.Join(err, writer.Flush())
		}
	}
}

// silenceLogs keeps what the API server's code logs out of the streams.
func silenceLogs() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	_ = flags.Set("alsologtostderr", "false")
	_ = flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
	utilruntime.PanicHandlers = nil
}

// readLine returns the next line without its end. One that is too long is read to its end and left out.
func readLine(reader *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := reader.ReadSlice('\n')
		if !tooLong {
			line = append(line, part...)
		}
		if len(line) > MaxLine {
			line, tooLong = nil, true
		}
		switch {
		case err == nil:
			return line, tooLong, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (len(line) > 0 || tooLong):
			return line, tooLong, nil
		default:
			return nil, false, err
		}
	}
}

// answerInTime answers a request. It returns an error after [MaxTime].
func answerInTime(v *Validator, line []byte, tooLong bool) (Answer, error) {
	if tooLong {
		return Answer{Error: fmt.Sprintf("the request has more than %d bytes", MaxLine)}, nil
	}
	var request Request
	if err := json.Unmarshal(line, &request); err != nil {
		return Answer{ID: request.ID, Error: "reading the request: " + err.Error()}, nil
	}
	done := make(chan Answer, 1)
	go func() { done <- v.Answer(request) }()
	timer := time.NewTimer(MaxTime)
	defer timer.Stop()
	select {
	case answer := <-done:
		return answer, nil
	case <-timer.C:
		err := fmt.Errorf("validating took longer than %s", MaxTime)
		return Answer{ID: request.ID, Error: err.Error()}, err
	}
}
