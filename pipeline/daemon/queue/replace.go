// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// replaceJob stores a job in place of the pipeline's current one, if any, whether it is waiting or running: a
// running one may fail and would have been redelivered. Tasks of the old job other than polling the source are
// kept, because no other record of them exists. The server accepts the job only if no other was stored in between.
func (q *Jobs) replaceJob(ctx context.Context, j Job) error {
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
			_ = json.Unmarshal(found.Data, &waiting) // an unreadable job requests no tasks
		case errors.Is(err, jetstream.ErrMsgNotFound):
			last, waiting = 0, Job{} // it has ended meanwhile
		case errors.As(err, &api) && !isTransientError(err):
			_, err = q.js.Publish(ctx, subject, data) // it is damaged, and must not stay for that
			return err
		default:
			return err
		}
	}
}

// isOvertaken reports whether the last stored message is not the expected one, or is about to change.
func isOvertaken(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
