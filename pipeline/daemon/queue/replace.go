// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// replaceJob stores a job in the place of the one that the pipeline has, if any, whether it waits or runs: one that runs may fail and
// would have come again. What that one was to do beyond looking at the source is still to be done, and nothing else tells of it. The
// server takes the job only where no other came in between.
func (q *Queue) replaceJob(ctx context.Context, j Job) error {
	subject := q.workSubject(j.Pipeline)
	for last, waiting := uint64(0), (Job{}); ; {
		j.Drift, j.Force = j.Drift || waiting.Drift, j.Force || waiting.Force
		data, err := json.Marshal(j)
		if err != nil {
			return err
		}
		if _, err = q.js.Publish(ctx, subject, data, jetstream.WithExpectLastSequencePerSubject(last)); !isOvertaken(err) {
			return err
		}
		found, err := q.workStream.GetLastMsgForSubject(ctx, subject)
		var api *jetstream.APIError
		switch {
		case err == nil:
			last, waiting = found.Sequence, Job{}
			_ = json.Unmarshal(found.Data, &waiting) // one that cannot be read asks for nothing
		case errors.Is(err, jetstream.ErrMsgNotFound):
			last, waiting = 0, Job{} // it has ended meanwhile
		case errors.As(err, &api) && !isPassing(err):
			_, err = q.js.Publish(ctx, subject, data) // it is damaged, and must not stay for that
			return err
		default:
			return err
		}
	}
}

// isOvertaken reports whether something else was stored last than was expected, or is about to be.
func isOvertaken(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
