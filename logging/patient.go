// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// patience is how long a line waits to be written. It is long enough for a
// reader that is busy, and short enough for what waits behind the line: a
// handshake, or the end of the process.
const patience = time.Second

// patient writes lines whose reader may stand still: a pipe is full after 64 KiB,
// and whoever logs would wait for ever. After a line that took longer than
// patience, lines are left out until that one is written, and the next says how
// many. So long as somebody reads, a line is out when Write returns. It is not
// safe for concurrent use.
type patient struct {
	out   zapcore.WriteSyncer
	enc   zapcore.Encoder
	stuck chan error // of the write that still goes on; nil: there is none
	lost  int        // lines left out
}

// Write fails as out does, and not for lines that are left out. It keeps nothing
// of line.
func (p *patient) Write(line []byte) (int, error) {
	if p.waits() {
		p.lost++
		return len(line), nil
	}
	kept := append(p.confession(), line...)
	done := make(chan error, 1)
	go func() {
		_, err := p.out.Write(kept)
		done <- err
	}()
	select {
	case err := <-done:
		return len(line), err
	case <-time.After(patience):
		p.stuck = done
		return len(line), nil
	}
}

// Sync does nothing while a line waits to be written.
func (p *patient) Sync() error {
	if p.waits() {
		return nil
	}
	return p.out.Sync()
}

func (p *patient) waits() bool {
	if p.stuck == nil {
		return false
	}
	select {
	case <-p.stuck:
		p.stuck = nil
		return false
	default:
		return true
	}
}

// confession is the line that says how many are missing, or nothing.
func (p *patient) confession() []byte {
	if p.lost == 0 {
		return nil
	}
	entry := zapcore.Entry{Level: zapcore.WarnLevel, Time: time.Now(), LoggerName: "log", Message: "lines left out: nobody read them in time"}
	buf, err := p.enc.EncodeEntry(entry, []zap.Field{zap.Int("lines", p.lost)})
	p.lost = 0
	if err != nil {
		return nil
	}
	defer buf.Free()
	return bytes.Clone(buf.Bytes())
}
