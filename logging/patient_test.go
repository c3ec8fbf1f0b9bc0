// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package logging_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/logging"
)

// pipe is an Output of which somebody has to read line by line.
type pipe chan string

func (p pipe) Write(line []byte) (int, error) {
	p <- string(line)
	return len(line), nil
}

func (pipe) Sync() error { return nil }

func TestReaderThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := make(pipe)
		l, err := logging.New(logging.Config{Format: logging.FormatJSON, Output: out})
		if err != nil {
			t.Fatal(err)
		}
		log, start := l.Zap(), time.Now()
		for range 100 {
			log.Info("unread", zap.String("text", "x"))
		}
		if waited := time.Since(start); waited > 2*time.Second {
			t.Errorf("100 lines kept their writer waiting for %v", waited)
		}
		if err := log.Sync(); err != nil {
			t.Error(err)
		}
		if got := <-out; !strings.Contains(got, `"msg":"unread"`) {
			t.Errorf("first line: %s", got)
		}
		synctest.Wait()

		go log.Info("read again")
		lost, last, _ := strings.Cut(<-out, "\n")
		if !strings.Contains(lost, `"level":"warn"`) || !strings.Contains(lost, `"lines":99}`) {
			t.Errorf("what was left out: %s", lost)
		}
		if !strings.Contains(last, `"msg":"read again"`) {
			t.Errorf("last line: %s", last)
		}
		synctest.Wait()
	})
}

// So long as somebody reads, however slowly, nothing is missing and a line is
// out when the call returns.
func TestSlowReaderGetsEveryLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := make(pipe)
		l, err := logging.New(logging.Config{Output: out})
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		go func() {
			for range out {
				read++
				time.Sleep(900 * time.Millisecond)
			}
		}()
		for i := range 10 {
			l.Zap().Info("line")
			synctest.Wait()
			if read != i+1 {
				t.Fatalf("%d lines read after %d were logged", read, i+1)
			}
		}
		close(out)
		time.Sleep(time.Second) // lets the reader end
	})
}
