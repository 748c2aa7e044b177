// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver"
)

// Main is the renderer: it reads a task from in, requests files and writes results to out, and continues with the
// next task as long as each leaves the process unchanged. It returns the exit status. It must be the only thing
// that the process does, and the program calls it as early as possible.
func Main(in io.Reader, out io.Writer) int {
	isolation := isolateProcess(allLayers)
	debug.SetGCPercent(render.CollectAt)
	quietLibraries()
	noticeWarnings()
	connection := render.NewConnection(in, out)
	policies := &policyCache{}
	for used := false; ; used = true {
		task, err := connection.Next()
		if err != nil {
			if errors.As(err, new(*render.RequestError)) {
				_ = connection.SendError(err)
			}
			return 1
		}
		if task.Render == nil {
			return exitStatus(runTask(connection, task, isolation))
		}
		debug.SetMemoryLimit(task.Render.Limits.Memory * 8 / 10)
		w := newRenderWorker(task.Render, connection, policies, used)
		if err := w.runSafely(); err != nil {
			_ = connection.SendError(err)
			return 1
		}
		again := task.Mark != "" && w.isReusable()
		if again {
			_, _ = os.Stderr.WriteString(task.Mark)
			debug.SetGCPercent(200) // a process that lives on is worth collecting
		}
		if connection.SendResponse(w.response, again) != nil || !again {
			return 0
		}
	}
}

func exitStatus(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

// runTask does a task that is not a render, and answers it.
func runTask(connection *render.Connection, task *render.Task, isolation render.Isolation) error {
	if task.Inspect {
		return connection.SendIsolation(isolation)
	}
	debug.SetGCPercent(100) // a check of many objects lasts
	answer, err := answerSafely(connection, task)
	if err != nil {
		return errors.Join(err, connection.SendError(err))
	}
	return answer()
}

// answerSafely does a task, and returns what sends the answer. A panic of a library becomes an error.
func answerSafely(connection *render.Connection, task *render.Task) (answer func() error, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the library gave up: %v", r)
		}
	}()
	ctx := context.Background()
	switch {
	case task.Gate != nil:
		found, err := apiserver.CheckRequest(ctx, task.Gate)
		return func() error { return connection.SendResponse(render.Response{Results: found}, false) }, err
	case task.Admit != nil:
		pods, err := apiserver.Admit(ctx, task.Admit)
		return func() error { return connection.SendPods(pods) }, err
	case task.Mutate != nil:
		mutator := apiserver.NewMutator()
		var answers []fn.AdmissionAnswer
		for _, one := range task.Mutate.Pods {
			answers = append(answers, mutator.Evaluate(one))
		}
		return func() error { return connection.SendAnswers(answers) }, nil
	case task.Chart != nil:
		manifests, err := renderChart(ctx, connection.Files(), task.Chart)
		return func() error { return connection.SendManifests(manifests) }, err
	default:
		return connection.SendDone, checkArchive(task.Archive)
	}
}
